"""Runs from start to end on a real repository: every way a run can move, told as stories."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import ActionFailed, EffectFailed, UsageError
from becket.kernel.contract.handoff import ApprovalState, HandoffState
from becket.kernel.contract.run import Run, RunStatus, Step, StepState
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import RunFilter
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.effects import RecordedEffect
from becket.testing.people import person
from becket.testing.world import World

HEAD = """
version: 1
loop_id: story
goal: A story is told.
trigger: [{manual: {}}]
max_iterations: 4
deadline: 1h
autonomy: propose
"""

VERIFY = """
  verify:
    objective: look
    verifiers: [{id: look, run: "true", in: scratch}]
"""


def loop(phases: str, stop: str = "look.pass", more: str = "", head: str = HEAD) -> str:
    verify = "" if "  verify:" in phases else VERIFY
    return f"{head}stop_conditions: [{stop}]\n{more}\nphases:{phases.rstrip()}\n{verify.lstrip(chr(10))}"


@pytest.fixture(params=["memory", "sqlite"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(tmp_path, store=request.param)


def tell(world: World, text: str, **ask: object) -> tuple[Run, dict[str, Step]]:
    """Run the loop and give the run with its last iteration's steps by id."""
    world.loop(text)

    async def story() -> tuple[Run, dict[str, Step]]:
        run = await world.run("story", **ask)
        return run, {step.id: step for step in await world.store.steps(run.run_id)}

    return asyncio.run(story())


def act(action: str) -> str:
    return f"\n  act:\n    objective: do\n    actions:\n      - {action}\n"


def test_a_run_that_meets_its_stop_conditions_is_completed_with_the_evidence(world: World) -> None:
    run, steps = tell(world, loop(act('{id: say, run: "echo hello", in: scratch, outputs: {text: stdout}}')))
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")
    assert steps["say"].outputs == {"text": "hello"}
    assert run.detail["look.pass"]["exit_code"] == 0


def test_an_output_that_was_declared_and_not_made_is_a_failure(world: World) -> None:
    run, steps = tell(world, loop(act('{id: say, run: "true", in: scratch, outputs: {text: "file:none.txt"}}')))
    assert steps["say"].error_kind == "no_output"
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_progress")


def test_text_from_outside_never_becomes_shell_code(world: World, tmp_path: Path) -> None:
    """L24: an output that looks like shell is data wherever it is used."""
    decoy = tmp_path / "decoy"
    phases = f"""
  discover:
    objective: read
    actions:
      - id: evil
        run: "printf '%s' '$(touch {decoy})\\"; touch {decoy}; \\"'"
        in: scratch
        outputs: {{text: stdout}}
  act:
    objective: use
    actions:
      - {{id: use, run: 'printf "%s" "{{evil.text}}"', in: scratch, outputs: {{text: stdout}}}}
"""
    _, steps = tell(world, loop(phases))
    assert steps["use"].outputs == steps["evil"].outputs
    assert not decoy.exists()


def test_a_failing_action_is_tried_again_as_often_as_the_spec_says(world: World) -> None:
    text = '{id: flaky, run: "echo x >> n; test $(wc -l < n) -ge 3", in: scratch, retry: 2}'
    run, steps = tell(world, loop(act(text)))
    assert run.status is RunStatus.completed
    assert steps["flaky"].attempts == 3


def test_after_a_failed_action_the_rest_of_its_phase_is_left_out_and_the_run_closes_in_order(world: World) -> None:
    phases = """
  act:
    objective: do
    actions:
      - {id: bad, run: "exit 7", in: scratch}
      - {id: never, run: "true", in: scratch}
  persist:
    objective: keep
    actions: [{id: kept, run: "true", in: scratch}]
  notify:
    objective: tell
    actions: [{id: told, uses: notify.console, with: {text: "{decision.outcome}"}}]
"""
    run, steps = tell(world, loop(phases))
    assert "never" not in steps
    assert "look" not in steps
    assert steps["kept"].state is StepState.done
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_progress")
    assert world.console.getvalue().split() == ["again", "again", "handoff"]


def test_on_error_continue_and_fail(world: World) -> None:
    carried, steps = tell(world, loop(act('{id: bad, run: "exit 7", in: scratch, on_error: continue}')))
    assert (carried.status, steps["bad"].state) == (RunStatus.completed, StepState.failed)
    failed, _ = tell(world, loop(act('{id: bad, run: "exit 7", in: scratch, on_error: fail}')))
    assert (failed.status, failed.reason) == (RunStatus.failed, "action_failed")
    assert "bad" in failed.detail["errors"][0]


@pytest.mark.parametrize(("code", "says"), [(0, "pass"), (1, "fail"), (2, "undecided")])
def test_a_verifier_by_command_says_pass_fail_or_undecided(world: World, code: int, says: str) -> None:
    phases = f"""
  verify:
    objective: look
    verifiers: [{{id: look, run: "exit {code}", in: scratch}}]
"""
    run, steps = tell(world, loop(phases))
    assert run.status is (RunStatus.completed if says == "pass" else RunStatus.ready_for_handoff)
    assert steps["look"].outputs == {"says": says}


def test_a_verifier_that_cannot_run_is_undecided_and_never_a_pass(world: World) -> None:
    """L11: a crashed check is not a green one."""
    phases = '\n  verify:\n    objective: look\n    verifiers: [{id: look, run: "kill -9 $$", in: scratch}]\n'
    run, steps = tell(world, loop(phases))
    assert steps["look"].outputs == {"says": "undecided"}
    assert run.status is RunStatus.ready_for_handoff


def test_exit_codes_and_json_become_conditions_of_one_group(world: World) -> None:
    phases = """
  discover:
    objective: see
    actions:
      - id: tests
        run: 'echo "{\\"state\\": \\"stale\\", \\"n\\": 3}"; exit 3'
        in: scratch
        parse: json
        raises: {"0": base.green, "1-5": base.red, "*": base.broken, "json:state=stale": index.stale}
        outputs: {n: "json:n"}
"""
    run, steps = tell(world, loop(phases, stop="base.red, index.stale"))
    assert run.status is RunStatus.completed
    assert steps["tests"].outputs == {"n": 3}
    assert [condition.ref for condition in steps["tests"].conditions] == ["base.red", "index.stale"]


def test_a_report_without_an_executed_test_is_a_failure(world: World) -> None:
    """L11: zero tests never pass."""
    text = (
        '{id: t, run: "echo \'<testsuite/>\' > r.xml", in: scratch, parse: "junit:r.xml", outputs: {n: "json:tests"}}'
    )
    _, steps = tell(world, loop(act(text)))
    assert steps["t"].error_kind == "no_tests"


WAITING = """
  act:
    objective: ask the outside
    actions:
      - id: ready
        run: "test -e done && exit 0 || exit 3"
        in: scratch
        raises: {"0": outside.ready, "3": outside.busy}
"""
WAITS = "wait_conditions: {outside.busy: {wake: bell, poll: 30s, for: 10m, then: handoff}}"


def test_a_run_waits_as_a_row_and_wakes_by_its_signal(world: World) -> None:
    world.loop(loop(WAITING, stop="outside.ready", more=WAITS))

    async def story() -> Run:
        run = await world.run("story")
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("outside.busy",))
        (world.app.places.of_run(run.run_id) / "scratch" / "done").touch()
        assert await world.store.signal(run.run_id, "bell", {}, "s1") == "woke"
        await world.settle()
        return await world.store.get_run(run.run_id)

    run = asyncio.run(story())
    assert (run.status, run.counted) == (RunStatus.completed, 1)


def test_polls_do_not_use_up_iterations_and_the_wait_ends_at_a_person(world: World) -> None:
    world.loop(loop(WAITING, stop="outside.ready", more=WAITS))

    async def story() -> Run:
        run = await world.run("story")
        for _ in range(8):
            await world.pass_time(31)
            assert (await world.store.get_run(run.run_id)).status is RunStatus.waiting
        await world.pass_time(600)
        return await world.store.get_run(run.run_id)

    run = asyncio.run(story())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "wait_expired")
    assert run.counted == 1
    assert run.iteration >= 9


def test_the_deadline_ends_a_waiting_run_at_a_person(world: World) -> None:
    head = HEAD.replace("deadline: 1h", "deadline: 5m")
    world.loop(loop(WAITING, stop="outside.ready", more=WAITS.replace("poll: 30s, ", ""), head=head))

    async def story() -> Run:
        run = await world.run("story")
        await world.pass_time(301)
        return await world.store.get_run(run.run_id)

    run = asyncio.run(story())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "deadline_passed")


def spender(world: World) -> None:
    async def spend(context: ActionContext, params: Record) -> Result:
        world.clock.advance(40)
        await context.spend("usd", 3.0)
        return Result(outputs={"n": context.run.iteration})

    world.action(ActionDef(name="test.spend", summary="spends", run=spend, outputs=("n",)))


@pytest.mark.parametrize("budget", ["{wall: 1m}", "{usd: 5}"])
def test_a_used_up_budget_ends_at_a_person(world: World, budget: str) -> None:
    """L23: no retry spiral burns more than the loop was given."""
    spender(world)
    run, _ = tell(world, loop(act("{id: s, uses: test.spend}"), stop="never", more=f"budget: {budget}").replace(
        'run: "true", in: scratch}', 'run: "true", in: scratch}, {id: never_seen, run: "exit 1", in: scratch}'
    ).replace("[never]", "[never_seen.pass]"))  # fmt: skip
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "budget_exhausted")
    assert run.iteration == 2


@pytest.mark.parametrize("kind", ["usd", "tokens", "agent_time"])
def test_a_budget_of_nothing_holds_up_nobody_who_needs_none(world: World, kind: str) -> None:
    run, _ = tell(world, loop(act('{id: s, run: "true", in: scratch}'), more=f"budget: {{{kind}: 0}}"))
    assert run.status is RunStatus.completed, run.detail


def test_a_budget_of_nothing_is_used_up_by_the_first_that_is_used(world: World) -> None:
    spender(world)
    twice = act("{id: s, uses: test.spend}\n      - {id: t, uses: test.spend}")
    run, _ = tell(world, loop(twice, more="budget: {usd: 0}"))
    assert (run.status, run.reason, run.detail["used"]) == (RunStatus.ready_for_handoff, "budget_exhausted", 3.0)


@pytest.mark.parametrize("amount", [math.nan, math.inf, -1.0])
def test_what_is_no_amount_is_not_spent(world: World, amount: float) -> None:
    """L21: with one NaN in the sums, no budget would ever be passed again."""

    async def spend(context: ActionContext, params: Record) -> Result:
        with pytest.raises(ActionFailed, match="usd is no amount that can be spent"):
            await context.spend("usd", amount)
        await context.spend("usd", 3)
        return Result()

    world.action(ActionDef(name="test.spend", summary="spends", run=spend))
    run, _ = tell(world, loop(act("{id: s, uses: test.spend}")))
    assert run.status is RunStatus.completed, run.detail


def test_a_cancelled_run_stops_its_action_and_still_notifies(world: World) -> None:
    phases = (
        act('{id: long, run: "sleep 60", in: scratch}')
        + """
  notify:
    objective: tell
    actions: [{id: told, uses: notify.console, with: {text: "{decision.outcome}"}}]
"""
    )
    world.loop(loop(phases))

    async def story() -> Run:
        run = await world.start("story")
        task = asyncio.create_task(world.settle())
        while not await world.store.live_children():
            await asyncio.sleep(0.01)
        await world.store.ask_cancel(run.run_id, person("me"), "enough")
        world.app.engine.interrupt(run.run_id)
        await task
        assert await world.store.live_children() == ()
        return await world.store.get_run(run.run_id)

    run = asyncio.run(story())
    assert (run.status, run.reason) == (RunStatus.cancelled, "cancelled")
    assert world.console.getvalue().strip() == "cancelled"


def test_a_dry_run_does_everything_local_and_lets_nothing_out(world: World) -> None:
    outside = RecordedEffect("http.post")
    world.outside(outside)
    phases = act("{id: post, uses: http.post, with: {url: https://example.invalid/, body: {a: 1}}}")
    run, _ = tell(world, loop(phases), dry_run=True)
    assert (run.status, run.detail["would"]["outcome"]) == (RunStatus.completed_dry_run, "completed")
    assert outside.deliveries == []
    (effect,) = asyncio.run(world.store.effects(run.run_id))
    assert effect.state is EffectState.dry_run


def test_an_effect_above_the_autonomy_is_refused_and_shown(world: World) -> None:
    """L18: how far a loop may go is explicit."""
    world.outside(RecordedEffect("http.post"))
    head = HEAD.replace("autonomy: propose", "autonomy: merge")
    phases = act('{id: move, uses: git.update_ref, with: {ref: refs/heads/x, new: "{sha}"}}')
    run, _ = tell(world, loop(phases, head=head, more='subject: "{sha}"'))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "effect_refused")


def test_an_effect_whose_outcome_is_unknown_outweighs_met_stop_conditions(world: World) -> None:
    lost = EffectFailed("no answer", ambiguous=True)
    world.outside(RecordedEffect("http.post", class_=EffectClass.blind, trouble=[lost]))

    async def no_wait(seconds: float) -> None:
        world.clock.advance(seconds)

    world.app.door._sleep = no_wait
    run, _ = tell(world, loop(act("{id: post, uses: http.post, with: {url: https://example.invalid/}}")))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "effect_unknown")


def test_a_notice_that_cannot_be_delivered_now_comes_later_and_does_not_change_the_outcome(world: World) -> None:
    """L36: done is done; the message about it is delivered when the outside is back."""
    outside = RecordedEffect("http.post", trouble=[EffectFailed("down", retryable=True)])
    world.outside(outside)
    phases = """
  notify:
    objective: tell
    actions: [{id: told, uses: http.post, with: {url: https://example.invalid/}}]
"""
    world.loop(loop(phases))

    async def story() -> Run:
        run = await world.run("story")
        assert outside.deliveries == []
        await world.pass_time(60)
        return run

    assert asyncio.run(story()).status is RunStatus.completed
    assert len(outside.deliveries) == 1


def test_the_same_subject_is_worked_on_once(world: World) -> None:
    world.loop(loop(WAITING, stop="outside.ready", more=WAITS + '\nsubject: "same"'))

    async def story() -> None:
        first = await world.run("story")
        again = await world.start("story")
        assert again.run_id == first.run_id

    asyncio.run(story())


def test_newest_waits_and_the_superseded_run_says_so(world: World) -> None:
    """L2: of many waiting commits only the newest is worth proving."""
    busy = WAITING
    more = 'subject: "{start}"\nconcurrency: {group: "{repo}", on_busy: newest_waits}'
    world.loop(loop(busy, stop="outside.ready", more=more))

    async def story() -> list[RunStatus]:
        runs = [await world.start("story") for _ in range(3)]
        await world.settle()
        return [(await world.store.get_run(run.run_id)).status for run in runs]

    assert asyncio.run(story())[:2] == [RunStatus.cancelled, RunStatus.cancelled]


def test_a_held_run_does_not_start_and_a_paused_loop_neither(world: World) -> None:
    world.loop(loop(act('{id: say, run: "true", in: scratch}')))

    async def story() -> None:
        held = await world.start("story")
        await world.store.hold(held.run_id, person("me"), on=True)
        await world.settle()
        assert (await world.store.get_run(held.run_id)).status is RunStatus.queued
        await world.store.set_control("loop:story", on=True, by=person("me"), note="wait")
        await world.store.hold(held.run_id, person("me"), on=False)
        await world.settle()
        assert (await world.store.get_run(held.run_id)).status is RunStatus.queued
        await world.store.set_control("loop:story", on=False, by=person("me"), note="")
        await world.settle()
        assert (await world.store.get_run(held.run_id)).status is RunStatus.completed

    asyncio.run(story())


def test_an_edited_spec_never_changes_a_running_loop_unless_it_is_migrated_at_a_wait(world: World) -> None:
    world.loop(loop(WAITING, stop="outside.ready", more=WAITS))

    async def story(migrate: bool) -> Run:
        run = await world.run("story")
        world.loop(loop(WAITING.replace("test -e done", "true"), stop="outside.ready", more=WAITS))
        if migrate:
            new = world.app.loops.get("story")
            await world.store.migrate(run.run_id, new.digest, new.text, person("me"))
        await world.store.signal(run.run_id, "bell", {}, f"s{migrate}")
        await world.settle()
        world.loop(loop(WAITING, stop="outside.ready", more=WAITS))
        return await world.store.get_run(run.run_id)

    assert asyncio.run(story(migrate=False)).status is RunStatus.waiting
    assert asyncio.run(story(migrate=True)).status is RunStatus.completed


def test_autonomy_comes_from_the_current_configuration(world: World) -> None:
    world.loop(loop(act("{id: post, uses: http.post, with: {url: https://example.invalid/}}")))
    world.outside(RecordedEffect("http.post", needs=world.app.policy.autonomy(world.app.loops.get("story").spec)))
    world.write("becket.yaml", "version: 1\nautonomy: observe\n")
    run = asyncio.run(world.run("story"))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "effect_refused")


def test_a_child_that_ends_badly_is_seen_by_its_parent(world: World) -> None:
    world.loop(loop(act('{id: bad, run: "exit 1", in: scratch, on_error: fail}')))
    world.loop(
        loop(
            act("{id: go, uses: run.start, with: {loop: story, subject: child}}")
            + "      - {id: g, uses: run.gather}\n",
            stop="children.completed",
            more="handoff_conditions: [children.unfinished]\n"
            "wait_conditions: {children.pending: {wake: child, for: 1h}}",
        ).replace("loop_id: story", "loop_id: parent")
    )

    async def story() -> Run:
        return await world.run("parent")

    run = asyncio.run(story())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "children.unfinished")


def test_a_run_that_follows_another_starts_once_and_the_chain_is_bounded(world: World) -> None:
    world.loop(loop(act('{id: say, run: "true", in: scratch}')))
    follower = loop(act('{id: say, run: "true", in: scratch}')).replace("loop_id: story", "loop_id: echo")
    world.loop(
        follower.replace(
            "trigger: [{manual: {}}]",
            "trigger: [{after: {loop: story, max_chain: 2}}, {after: {loop: echo, max_chain: 2}}]",
        )
    )

    async def story() -> int:
        await world.run("story")
        await world.settle()
        return len(await world.store.list_runs(RunFilter(loop_id="echo")))

    assert asyncio.run(story()) == 2


def test_a_handoff_names_owner_reason_evidence_and_next_step(world: World) -> None:
    run, _ = tell(world, loop(act('{id: bad, run: "echo because; exit 9", in: scratch}')))

    async def story() -> None:
        (handoff,) = await world.store.handoffs(run_id=run.run_id)
        assert handoff.state is HandoffState.open
        assert run.run_id in handoff.next_step
        assert "because" in handoff.evidence["errors"][0]
        await world.store.change_handoff(handoff.handoff_id, HandoffState.taken, person("me"), "")
        done = await world.store.change_handoff(handoff.handoff_id, HandoffState.done, person("me"), "mended")
        assert done.state is HandoffState.done

    asyncio.run(story())


def test_an_approval_is_for_one_text_only(world: World) -> None:
    """L41: what was approved is what goes out; another text needs another decision."""
    phases = """
  plan:
    objective: ask
    actions:
      - {id: text, run: "cat \\"$BECKET_INPUT_FILE\\"", outputs: {is: stdout}}
      - {id: ask, uses: approval.ask, with: {question: "publish?", about: "{text.is}"}}
"""
    more = (
        "inputs: {file: {type: path}}\nsubject: s\n"
        "wait_conditions: {approval.asked: {wake: approval, for: 1d}}\nhandoff_conditions: [approval.expired]"
    )
    world.loop(loop(phases, stop="approval.approved", more=more))
    world.commit({"note.txt": "one"})

    async def story() -> None:
        run = await world.run("story", inputs={"file": "note.txt"})
        (first,) = await world.store.approvals(run.run_id)
        with pytest.raises(UsageError):
            await world.store.decide_approval(first.approval_id, True, person("o"), "another hash", "")
        with pytest.raises(UsageError):
            await world.store.decide_approval(first.approval_id, True, person("m", "member"), None, "")
        (world.app.places.of_run(run.run_id) / "tree" / "note.txt").write_text("two")
        await world.store.decide_approval(first.approval_id, True, person("o"), first.bound_to, "")
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert run.status is RunStatus.waiting
        states = {approval.state for approval in await world.store.approvals(run.run_id)}
        assert states == {ApprovalState.approved, ApprovalState.asked}
        await world.pass_time(8 * 86400)
        run = await world.store.get_run(run.run_id)
        assert run.status is RunStatus.ready_for_handoff

    asyncio.run(story())


def agent_world(tmp_path: Path, *acts: Act) -> tuple[World, ScriptedAgent]:
    agent = ScriptedAgent(acts)
    world = World(tmp_path, agents={"fixer": agent})
    phases = (
        act('{id: fix, uses: agent.work, retry: 1, with: {agent: fixer, brief: "mend {subject}"}}')
        + """
  verify:
    objective: look
    verifiers: [{id: mended, run: "grep -q good it.txt"}]
"""
    )
    world.loop(loop(phases, stop="mended.pass", more="budget: {agent_time: 1h}\nsubject: it"))
    world.commit({"it.txt": "bad\n"})
    return world, agent


def test_an_agent_is_believed_by_its_diff_and_never_by_its_words(tmp_path: Path) -> None:
    """L20: it says that all tests pass; the tree says that nothing was done."""
    world, agent = agent_world(tmp_path, Act(), Act(deed=writes("it.txt", "good\n")))
    run = asyncio.run(world.run("story"))
    assert run.status is RunStatus.completed
    assert agent.briefs == ["mend it", "mend it"]
    first = asyncio.run(world.store.steps(run.run_id, 1))
    assert first[0].outputs["outcome"] == AgentOutcome.nothing_done


def test_an_agent_that_crashed_is_called_again_within_the_same_action(tmp_path: Path) -> None:
    world, agent = agent_world(tmp_path, Act(ended=False), Act(deed=writes("it.txt", "good\n")))
    run = asyncio.run(world.run("story"))
    assert (run.status, run.iteration, len(agent.briefs)) == (RunStatus.completed, 1, 2)


def test_a_dry_run_calls_no_agent(tmp_path: Path) -> None:
    world, agent = agent_world(tmp_path)
    run = asyncio.run(world.run("story", dry_run=True))
    assert agent.briefs == []
    assert run.status is RunStatus.completed_dry_run


def test_an_action_that_raises_what_it_did_not_declare_fails(world: World) -> None:
    async def stray(context: ActionContext, params: Record) -> Result:
        return Result(conditions=(Condition(name="surprise"),))

    declared = (ConditionGroup(names=("expected",)),)
    world.action(ActionDef(name="test.stray", summary="strays", run=stray, raises=declared))
    _, steps = tell(world, loop(act("{id: s, uses: test.stray}")))
    assert steps["s"].error_kind == "undeclared"


def test_a_strange_exception_is_the_actions_failure_and_not_the_runtimes(world: World) -> None:
    async def broken(context: ActionContext, params: Record) -> Result:
        raise RuntimeError("token=ghp_0123456789abcdefghijklmnopqrstuvwxyz")

    world.action(ActionDef(name="test.broken", summary="breaks", run=broken))
    run, steps = tell(world, loop(act("{id: s, uses: test.broken}")))
    assert run.status is RunStatus.ready_for_handoff
    assert "ghp_" not in steps["s"].error


def test_an_error_in_the_runtime_itself_is_written_as_failed(world: World) -> None:
    world.loop(loop(act('{id: say, run: "true", in: scratch}')))

    async def story() -> Run:
        run = await world.start("story")
        world.app.engine.runtime.policy.budget = _broken  # type: ignore[method-assign]
        await world.settle()
        return await world.store.get_run(run.run_id)

    run = asyncio.run(story())
    assert (run.status, run.reason) == (RunStatus.failed, "internal_error")


def _broken(*_: object) -> None:
    raise ActionFailed("the policy is broken")
