"""What follows an iteration: a table over the order of outcomes, and the three kinds of no progress."""

from __future__ import annotations

import pytest

from becket.kernel.contract.condition import Condition, Conditions
from becket.kernel.contract.run import Decision, Outcome, Run, RunStatus, Step, StepState, Subject
from becket.kernel.contract.spec import Autonomy, LoopSpec, Phase
from becket.kernel.contract.store import Carried
from becket.kernel.engine.decide import Situation, added, carry, decide, wait_rows

SPEC = LoopSpec.model_validate(
    {
        "version": 1,
        "loop_id": "table",
        "goal": "a table",
        "trigger": [{"manual": {}}],
        "max_iterations": 3,
        "deadline": "1h",
        "autonomy": "merge",
        "stop_conditions": ["stop"],
        "handoff_conditions": ["stuck"],
        "wait_conditions": {
            "asleep": {"wake": "bell", "poll": "30s", "for": "1h"},
            "dull": {"wake": "bell", "for": "1h", "then": "fail"},
            "later": {"wake": "clock", "for": "1h"},
        },
        "phases": {
            "act": {
                "objective": "make",
                "actions": [{"id": "make", "run": "true", "outputs": {"text": "stdout"}}],
                "persist_outputs": ["make.text"],
            },
            "verify": {"objective": "check", "verifiers": [{"id": "check", "run": "true"}]},
        },
    }
)

RUN = Run(
    run_id="run_1", loop_id="table", subject=Subject(name="s"), status=RunStatus.running, segment=1, epoch=1,
    iteration=1, counted=1, spec_digest="d", inputs={}, trigger="manual", group=None, dry_run=False, held=False,
    cancel_asked=False, autonomy=None, parent=None, retry_of=None, chain=0, reason="", detail={}, waiting_on=(),
    waits_since={}, wall_used=0.0, worker="w", by="me", created_at=0.0, updated_at=0.0, deadline_at=1e9, ended_at=None,
    event_count=1, head="",
)  # fmt: skip


def step(state: StepState = StepState.done, **more: object) -> Step:
    facts = {"run_id": "run_1", "iteration": 1, "phase": Phase.act, "id": "make", "state": state}
    return Step.model_validate(facts | {"started_at": 0.0, "ended_at": 1.0} | more)


PASSED = step(phase=Phase.verify, id="check", outputs={"says": "pass"})


def situation(*raised: str, steps: tuple[Step, ...] = (PASSED,), **more: object) -> Situation:
    run = RUN.model_copy(
        update={key: more.pop(key) for key in list(more) if key in Run.model_fields and key != "autonomy"}
    )
    facts: dict[str, object] = {
        "spec": SPEC, "run": run, "conditions": Conditions(tuple(Condition(name=name) for name in raised)),
        "steps": steps, "receipts": (), "carried": Carried(), "autonomy": Autonomy.merge, "failing": "", "now": 1000.0,
        "kept": frozenset({"make.text"}), "uncounted": frozenset({"main_moved"}),
    }  # fmt: skip
    return Situation(**(facts | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "outcome", "reason"),
    [
        (situation("stop", "stuck", cancel_asked=True), Outcome.cancelled, "cancelled"),
        (situation("stop", failing="make"), Outcome.failed, "action_failed"),
        (situation("stop", "stuck", "asleep"), Outcome.handoff, "stuck"),
        (situation("stop", "asleep"), Outcome.wait, "asleep"),
        (situation("stop", "effect_unknown"), Outcome.handoff, "effect_unknown"),
        (situation("stop", "effect_refused"), Outcome.handoff, "effect_refused"),
        (situation("stop"), Outcome.completed, "stop_conditions_met"),
        (situation("stop", "deadline_passed"), Outcome.completed, "stop_conditions_met"),
        (situation("deadline_passed"), Outcome.handoff, "deadline_passed"),
        (situation("asleep", "deadline_passed"), Outcome.handoff, "deadline_passed"),
        (situation("budget_exhausted"), Outcome.handoff, "budget_exhausted"),
        (situation(), Outcome.again, "stop_conditions_unmet"),
        (situation(counted=3), Outcome.handoff, "iterations_exhausted"),
        (situation("main_moved", counted=3), Outcome.again, "stop_conditions_unmet"),
        (situation(autonomy=Autonomy.observe), Outcome.handoff, "observe_only"),
        (situation("stop", autonomy=Autonomy.observe), Outcome.completed, "stop_conditions_met"),
        (situation("asleep", waits_since={"asleep": -2600.0}), Outcome.handoff, "wait_expired"),
        (situation("dull", waits_since={"dull": -2600.0}), Outcome.failed, "wait_expired"),
        (situation("stuck", dry_run=True), Outcome.completed, "dry_run"),
        (situation("action_error", dry_run=True), Outcome.failed, "dry_run_failed"),
    ],
)
def test_the_order_of_outcomes(now: Situation, outcome: Outcome, reason: str) -> None:
    decision = decide(now)
    assert (decision.outcome, decision.reason) == (outcome, reason)


def test_without_a_verifier_that_passed_no_stop_condition_counts() -> None:
    skipped = PASSED.model_copy(update={"state": StepState.skipped})
    for steps in ((), (skipped,), (step(outputs={"says": "pass"}), skipped)):
        found = decide(situation("stop", steps=steps))
        assert (found.outcome, found.detail) == (
            Outcome.again, {"unproven": ["no verifier passed in this iteration"]}
        )  # fmt: skip


@pytest.mark.parametrize("says", ["fail", "undecided"])
def test_a_verifier_that_did_not_pass_is_no_completion_even_if_a_stop_condition_asks_for_it(says: str) -> None:
    verdict = Condition(object="check", name=says, evidence={"exit_code": 7, "said": "", "log": "abc"})
    looked = PASSED.model_copy(
        update={
            "state": StepState.failed, "error_kind": says, "outputs": {"says": says}, "conditions": (verdict,),
        }
    )  # fmt: skip
    spec = SPEC.model_copy(update={"stop_conditions": (verdict.ref,), "max_iterations": 1})
    found = decide(situation(steps=(looked,), spec=spec, conditions=Conditions((verdict,))))
    assert (found.outcome, found.reason) == (Outcome.handoff, "iterations_exhausted")
    assert found.detail["unproven"] == ["verify.check did not pass"]
    assert found.detail["errors"] == [f"verify.check: {says} (exit_code 7)"]


def test_a_dry_run_says_what_it_would_have_decided() -> None:
    assert decide(situation("stuck", dry_run=True)).detail["would"]["reason"] == "stuck"


def test_an_iteration_caused_by_a_moved_main_is_not_counted() -> None:
    assert decide(situation("main_moved")).counts is False


def test_waits_are_due_at_their_poll_their_clock_or_their_end() -> None:
    later = Conditions((Condition(name="later", evidence={"until": 1060.0}),))
    rows = {row.condition: row for row in wait_rows(situation(), ["asleep", "dull"])}
    assert (rows["asleep"].due, rows["asleep"].expires) == (1030.0, 4600.0)
    assert (rows["dull"].due, rows["dull"].expires) == (4600.0, 4600.0)
    assert wait_rows(situation(conditions=later), ["later"])[0].due == 1060.0


def test_the_same_result_again_is_no_progress() -> None:
    """L23: the same candidate tree twice ends at a person, not in another call."""
    decision = decide(situation(steps=(step(progress="tree1"),), carried=Carried(progress=("tree1",))))
    assert (decision.outcome, decision.reason) == (Outcome.handoff, "no_progress")


def failing(error: str) -> Step:
    return step(StepState.failed, error=error, error_kind="exit_1")


def test_the_same_failure_three_times_is_no_progress_even_if_its_numbers_vary() -> None:
    """L23: digits in messages (times, addresses) do not make a failure a new one."""
    carried = Carried()
    outcomes: list[Decision] = []
    for number in (1, 2, 3):
        now = situation(steps=(failing(f"timed out after {number}17 ms"),), carried=carried)
        outcomes.append(decide(now))
        carried = carry(now).model_copy(update={"last": ""})
    assert [decision.reason for decision in outcomes] == ["stop_conditions_unmet"] * 2 + ["no_progress"]


def test_different_failures_are_not_the_same_failure() -> None:
    carried = Carried()
    for word in ("apple", "pear", "plum"):
        now = situation(steps=(failing(word),), carried=carried)
        assert decide(now).outcome is Outcome.again
        carried = carry(now)


def test_an_iteration_that_adds_nothing_is_no_progress() -> None:
    now = situation(steps=(step(outputs={"text": "same"}),))
    again = situation(steps=(step(outputs={"text": "same"}),), carried=Carried(last=added(now)))
    other = situation(steps=(step(outputs={"text": "new"}),), carried=Carried(last=added(now)))
    assert decide(again).reason == "no_progress"
    assert decide(other).outcome is Outcome.again


def test_a_wake_up_that_finds_nothing_new_is_not_held_against_the_run() -> None:
    """A poll that sees the same as the last one is what polls do."""
    seen = added(situation("woken", steps=(step(outputs={"text": "same"}),)))
    now = situation("woken", steps=(step(outputs={"text": "same"}),), carried=Carried(last=seen))
    assert decide(now).outcome is Outcome.again


def test_only_persisted_outputs_reach_the_next_iteration() -> None:
    carried = carry(situation(steps=(step(outputs={"text": "kept", "other": "gone"}),)))
    assert carried.outputs == {"make": {"text": "kept"}}
