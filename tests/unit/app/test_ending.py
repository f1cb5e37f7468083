"""How an end is told, from the report alone. What a person sees of it is in tests/acceptance/test_ends.py."""

from __future__ import annotations

import pytest
import report_samples as samples

from becket.app.record.report import model as told
from becket.app.record.report.ending import cause, ending_of
from becket.app.record.report.markdown import markdown_of

SUMMARY = "step unit: 1 failing\nFAIL tests/test_gcd.py::test_gcd  at tests/test_gcd.py:9\n    assert 1 == 2\n\n--- log"
TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nOSError: the disk is full'


def ended(reason: str, status: str = "ready_for_handoff", **more: object) -> told.EndFacts:
    run = samples.run(status, reason).model_copy(
        update={"subject": f"main@{samples.BASE}", "detail": more.pop("detail", {}), "loop_id": "heal"}
    )
    red = samples.gate("base", "red", failing=("test_gcd",), summary=SUMMARY)
    report = samples.proven().model_copy(update={"run": run, "gates": (red,), "conditions": (), **more})
    end = ending_of(report)
    assert end is not None
    return end


@pytest.mark.parametrize(
    ("reason", "headline", "following"),
    [
        ("repair_ready", "a proven repair by fixer waits for you", "becket proposals accept "),
        ("proposed", "a proven repair by fixer waits for you", "becket proposals accept "),  # as older journals have it
        ("no_agent", "no agent is configured that could repair it", "becket run heal"),
        ("agent_gave_up", "fixer gave up", "becket runs show "),
        ("never_green", "it was never green here, so no agent was called", "becket gates try"),
        ("agent.auth_missing", "fixer has no login or key", "becket doctor"),
        ("change.denied", "fixer's change of the tests was denied by a person", "becket runs retry "),
        ("change.expired", "nobody decided about fixer's change of the tests", "becket runs retry "),
    ],
)
def test_a_red_branch_is_named_with_its_commit_and_what_keeps_it_red(
    reason: str, headline: str, following: str
) -> None:
    end = ended(reason, calls=(samples.call("fixer", "changed"),))
    assert end.headline == f"main is red at {samples.BASE[:7]}; {headline}"
    assert end.next.startswith(following)


def test_who_repairs_by_hand_reads_the_test_the_last_words_the_guard_and_the_hosts() -> None:
    detail = {
        "agent": "fixer", "said": "I think\nthe sign is wrong.", "denied": ["pypi.org:443"], "why": TRACE,
        "against": ["the guard sent it back: gcd.py:3: adds a power", "unit: 1 of 214 fail"],
    }  # fmt: skip
    end = ended("fix_exhausted", detail=detail, calls=(), proofs=())
    assert end.change
    assert end.lines == (
        "FAIL tests/test_gcd.py::test_gcd at tests/test_gcd.py:9",
        "    assert 1 == 2",
        "fixer said: I think the sign is wrong.",
        "fixer was not allowed to reach pypi.org:443 (`hosts` in becket.yaml)",
        "OSError: the disk is full",
        "the guard sent it back: gcd.py:3: adds a power",
        "the last change that was tried, which is not proven:",
    )


@pytest.mark.parametrize("reason", ["no_progress", "iterations_exhausted", "deadline_passed", "budget_exhausted"])
def test_the_end_of_tries_shows_the_last_change_and_calls_it_unproven_unless_it_is(reason: str) -> None:
    told_as = "the last change that was tried, which is not proven:"
    end = ended(reason, proofs=())
    assert end.change
    assert end.lines[-1] == told_as
    assert told_as not in ended(reason).lines


def handed(reason: str, **more: object) -> told.HandoffFacts:
    facts = {
        "handoff_id": "hnd_1", "owner": "ada", "reason": reason, "next_step": "", "state": "done", "taken_by": "ada",
        "commands": (), "settled_at": samples.BEGAN, **more,
    }  # fmt: skip
    return told.HandoffFacts.model_validate(facts)


@pytest.mark.parametrize(
    ("handoff", "headline", "how", "following"),
    [
        (handed("repair_ready", accepted_by="bob", note="settled: main is proven at 1a2b by run_2"),
         "the proven repair by fixer was accepted by bob", "main is proven at 1a2b by run_2", "becket status"),
        (handed("repair_ready", state="declined", note="declined: we rewrite it"),
         "the proven repair by fixer was declined by ada", "declined: we rewrite it", "becket runs retry "),
        (handed("repair_ready", note="declined to wait, merged it myself"),
         "the proven repair by fixer is settled", "declined to wait, merged it myself", "becket runs retry "),
        (handed("repair_ready", taken_by="becket", note="settled: merged by hand at 1a2b"),
         "the proven repair by fixer is settled", "merged by hand at 1a2b", "becket status"),
        (handed("no_agent", note="mended {by} hand"),
         "heal handed it over, and ada settled it", "mended {by} hand", "becket runs retry "),
        (handed("no_agent", taken_by="becket", note="settled: retried as run_2"),
         "heal handed it over, and it is settled", "retried as run_2", "becket status"),
    ],
)  # fmt: skip
def test_what_is_settled_is_told_with_who_when_and_how_and_not_as_something_to_do(
    handoff: told.HandoffFacts, headline: str, how: str, following: str
) -> None:
    end = ended(handoff.reason, calls=(samples.call("fixer", "changed"),), handoffs=(handoff,))
    assert end.headline == f"main was red at {samples.BASE[:7]}; {headline}"
    assert end.lines == (f"2023-11-14 22:13:20 UTC: {how}",)
    assert end.next.startswith(following)


@pytest.mark.parametrize("state", ["open", "taken", "accepted"])
def test_what_is_not_settled_is_still_somebodys(state: str) -> None:
    one = handed("repair_ready", state=state, settled_at=None)
    assert ended("repair_ready", handoffs=(one,)).next.startswith("becket proposals accept ")


def test_a_denied_change_is_named_by_file_and_rule_beside_the_failing_tests() -> None:
    refusal = told.RemarkFacts(rule="test-changed", path="tests/test_gcd.py", line=9, message="is looser", more="")
    guard = told.GuardFacts(iteration=1, says="candidate.test_change_asked", refusals=(refusal,))
    lines = ended("change.denied", guards=(guard,)).lines
    assert "FAIL tests/test_gcd.py::test_gcd at tests/test_gcd.py:9" in lines
    assert "tests/test_gcd.py:9 test-changed: is looser" in lines


def test_failing_tests_that_are_not_listed_are_counted_as_tests() -> None:
    failing = tuple(f"tests/test_gcd.py::test_{number}" for number in range(6))
    summary = "step unit: 6 failing\n" + "\n".join(f"FAIL {name}\n    a\n    b\n    c" for name in failing)
    red = samples.gate("base", "red", failing=failing, summary=summary)
    lines = ended("no_agent", gates=(red,)).lines
    assert sum(line.startswith("FAIL ") for line in lines) == 3
    assert "... 3 more failing tests" in lines


@pytest.mark.parametrize(
    ("color", "would", "planned", "said"),
    [
        ("red", {"outcome": "again", "reason": "stop_conditions_unmet"}, {"agent": "fixer"},
         "main is red at bbbbbbb; fixer would have been called"),
        ("red", {"outcome": "handoff", "reason": "never_green"}, None,
         "main is red at bbbbbbb; it would have been handed over: what is red was never green here"),
        ("green", {"outcome": "completed", "reason": "stop_conditions_met"}, None,
         "main is green at bbbbbbb; nothing would have been left to do"),
    ],
)  # fmt: skip
def test_a_dry_run_says_how_the_branch_stands_and_what_would_have_happened(
    color: str, would: dict[str, str], planned: dict[str, str] | None, said: str
) -> None:
    plan = () if planned is None else (told.ConditionFacts(name="plan.fix", at=1.0, evidence=dict(planned)),)
    more = {"gates": (samples.gate("base", color),), "conditions": plan, "detail": {"would": would}}
    end = ended("dry_run", "completed_dry_run", **more)
    assert end.headline == f"Dry run: {said}. Nothing left this machine"


def test_nobody_is_told_to_start_the_daemon_that_is_up() -> None:
    proven = told.ConditionFacts(name="main_proven", at=1.0, evidence={"sha": samples.BASE, "repaired": ""})
    run = samples.run("completed", "stop_conditions_met")
    report = samples.report(run, conditions=(proven,))
    assert [ending_of(report, watched=up).next for up in (False, True)] == ["becket up -d", "becket status"]  # type: ignore[union-attr]


def test_of_a_stack_trace_only_the_last_line_is_a_reason() -> None:
    assert cause(TRACE) == "OSError: the disk is full"
    assert cause("one\ntwo") == "one two"


def test_the_condition_itself_may_name_the_next_command() -> None:
    assert ended("contended", detail={"next": "becket proposals accept run_1"}).next == "becket proposals accept run_1"


def test_an_open_run_has_no_end_and_a_report_begins_with_it_where_there_is_one() -> None:
    assert ending_of(samples.running()) is None
    report = samples.proven()
    told_end = markdown_of(report.model_copy(update={"end": ending_of(report)}))
    assert f"Next: `{ending_of(report).next}`" in told_end  # type: ignore[union-attr]


def test_tokens_that_nobody_told_are_not_nought() -> None:
    silent = samples.call(
        "fixer", "changed", priced="unknown", turns=0, input_tokens=0, cached_tokens=0, output_tokens=0
    )
    assert "not told" in markdown_of(samples.proven().model_copy(update={"calls": (silent,)}))
