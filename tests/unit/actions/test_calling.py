"""Calls of agents from an action: the chain, the budgets, sessions, people's messages, and an end whatever happens."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from becket.app.record.verify import verify_run
from becket.kernel.contract.agent import Agent, AgentOutcome, Usage
from becket.kernel.contract.calls import AgentCall, SettledBy
from becket.kernel.contract.run import Run, RunStatus, Step
from becket.parts.agents.adapters.inbox import Inbox, put
from becket.parts.agents.messages import MAIL
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.crashes import Crashed, crashing
from becket.testing.people import person
from becket.testing.world import World, run_git

CONFIG = """
version: 1
sandbox: {use: none, without: [files, processes, network]}
agents:
  first: {driver: command, run: "true", limits: {time: 20m, turns: 7, tokens: 9000, usd: 2}, fallback: [second]}
  second: {driver: command, run: "true"}
"""

LOOP = """
version: 1
loop_id: mend
goal: It is good.
trigger: [{manual: {}}]
max_iterations: 4
deadline: 8d
autonomy: propose
budget: {agent_time: 2h, usd: 5}
stop_conditions: [mended.pass]
handoff_conditions: [agent.auth_missing]
wait_conditions:
  agent.quota_wait: {wake: clock, for: 7d, then: handoff}
phases:
  act:
    objective: Let the agent do it.
    actions:
      - {id: work, uses: agent.work, retry: 1, timeout: 15m, with: {agent: first, brief: "Make it good."}}
    persist_outputs: [work.sessions]
  verify:
    objective: See the file, not the words.
    verifiers: [{id: mended, run: "grep -q good it.txt"}]
"""

MENDS = Act(writes("it.txt", "good\n"))
HALF = writes("half.txt", "half a thought\n")


def quota(until: float | None, *, leaves: bool = False) -> Act:
    deed = HALF if leaves else Act().deed
    return Act(deed, hint=AgentOutcome.quota_wait, error="usage limit", until=until)


def make_world(
    folder: Path, *, loop: str = LOOP, config: str = CONFIG, store: str = "memory", **agents: Agent
) -> World:
    world = World(folder, agents=agents, store=store)
    world.loop(loop)
    world.commit({"becket.yaml": config, "it.txt": "bad\n"})
    return world


async def steps_of(world: World, run: Run) -> list[Step]:
    return [step for step in await world.store.steps(run.run_id) if step.id == "work" and step.outputs]


async def calls_of(world: World, run: Run) -> list[AgentCall]:
    return list(reversed(await world.store.calls(run.run_id)))


def test_the_next_agent_of_the_chain_begins_afresh_and_nothing_is_lost(tmp_path: Path) -> None:
    """L7, L23: no quota here, so the other one is asked at once; what the first left is saved and not in its way."""
    first, second = ScriptedAgent([quota(None, leaves=True)]), ScriptedAgent([MENDS])
    world = make_world(tmp_path, first=first, second=second)

    async def story() -> None:
        run = await world.run("mend")
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        (step,) = await steps_of(world, run)
        assert [(call["agent"], call["outcome"]) for call in step.outputs["calls"]] == [
            ("first", "quota_wait"), ("second", "changed"),
        ]  # fmt: skip
        assert step.outputs["paths"] == ["it.txt"]
        assert [call.end and call.end.outcome for call in await calls_of(world, run)] == ["quota_wait", "changed"]
        assert "half" in run_git(world.root, ["show", f"refs/becket/rescue/{run.run_id}:half.txt"])

    asyncio.run(story())


UNPRICED = "{driver: codex, model: local}"


@pytest.mark.parametrize(
    ("unpriced", "asked", "ends"),
    [
        ("first", ["second"], RunStatus.completed),
        ("second", ["first"], RunStatus.waiting),
        ("first second", [], RunStatus.ready_for_handoff),
    ],
)
def test_an_agent_that_no_budget_could_be_held_for_is_passed_over(
    tmp_path: Path, unpriced: str, asked: list[str], ends: RunStatus
) -> None:
    """L23: the others of its chain have their turn, and what they said counts."""
    lines = dict.fromkeys(("first", "second"), '{driver: command, run: "true"}')
    lines |= dict.fromkeys(unpriced.split(), UNPRICED)
    lines["first"] = lines["first"].replace("}", ", fallback: [second]}")
    agents = "".join(f"  {name}: {line}\n" for name, line in lines.items())
    config = f"version: 1\nsandbox: none\nbudgets: {{day: {{usd: 4}}}}\nagents:\n{agents}"
    first, second = ScriptedAgent([quota(None)]), ScriptedAgent([MENDS])
    world = make_world(tmp_path, config=config, first=first, second=second)

    async def story() -> None:
        run = await world.run("mend")
        assert run.status is ends, (run.reason, run.detail)
        assert [call.agent for call in await calls_of(world, run)] == asked

    asyncio.run(story())


def test_where_nobody_has_quota_the_run_waits_for_the_first_that_has(tmp_path: Path) -> None:
    first, second = ScriptedAgent([]), ScriptedAgent([])
    world = make_world(tmp_path, first=first, second=second)
    now = world.clock()
    first.acts = [quota(now + 7200), MENDS]
    second.acts = [quota(now + 600)]

    async def story() -> None:
        run = await world.run("mend")
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",))
        await world.pass_time(599)
        assert len(first.briefs) == 1
        await world.pass_time(2)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed
        assert len(first.briefs) == 2

    asyncio.run(story())


def test_who_only_failed_is_not_left_alone_until_another_has_quota(tmp_path: Path) -> None:
    """L23: the first one's server was down for a moment, and the fallback's quota is out for days."""
    first, second = ScriptedAgent([Act(ended=False), MENDS]), ScriptedAgent([])
    world = make_world(tmp_path, first=first, second=second)
    second.acts = [quota(world.clock() + 5 * 86400)]

    async def story() -> None:
        run = await world.run("mend")
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",))
        await world.pass_time(901)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed

    asyncio.run(story())


def test_a_quota_without_a_time_is_looked_at_again_soon(tmp_path: Path) -> None:
    world = make_world(tmp_path, first=ScriptedAgent([quota(None), MENDS]), second=ScriptedAgent([quota(None)]))

    async def story() -> None:
        run = await world.run("mend")
        assert run.status is RunStatus.waiting
        await world.pass_time(301)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed

    asyncio.run(story())


def test_nobody_is_logged_in(tmp_path: Path) -> None:
    """The first one's trouble is told, with everybody who was asked."""
    out = Act(hint=AgentOutcome.auth_missing, error="no login at ~/.first")
    world = make_world(tmp_path, first=ScriptedAgent([out]), second=ScriptedAgent([Act(ended=False)]))
    run = asyncio.run(world.run("mend"))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "agent.auth_missing")
    assert run.detail["reason"] == "no login at ~/.first"
    assert [call["agent"] for call in run.detail["asked"]] == ["first", "second"]


def test_a_whole_chain_that_crashed_is_tried_again(tmp_path: Path) -> None:
    crash = Act(ended=False, error="killed")
    first, second = ScriptedAgent([crash, crash]), ScriptedAgent([crash, MENDS])
    world = make_world(tmp_path, first=first, second=second)
    run = asyncio.run(world.run("mend"))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert (len(first.briefs), len(second.briefs)) == (2, 2)


def test_an_agent_gets_its_own_limits_within_the_time_of_its_step(tmp_path: Path) -> None:
    first = ScriptedAgent([MENDS])
    world = make_world(tmp_path, first=first)
    asyncio.run(world.run("mend"))
    (seen,) = first.seen
    assert 600 < seen.limits.seconds <= 900, "the step has 15 minutes, the agent 20"
    assert (seen.limits.turns, seen.limits.tokens, seen.limits.usd) == (7, 9000, 2)
    assert seen.call_context.watcher is not None
    assert seen.call_context.files is not None
    assert seen.call_context.home is not None


@pytest.mark.parametrize(
    ("loop", "config"),
    [
        (LOOP.replace("usd: 5", "usd: 0.01"), CONFIG),
        (LOOP, CONFIG + "budgets: {day: {usd: 0.01}}\n"),
        (LOOP, CONFIG + "budgets: {loops: {mend: {month: {usd: 0.01}}}}\n"),
    ],
)
def test_a_spent_budget_goes_to_a_person(tmp_path: Path, loop: str, config: str) -> None:
    """L23: the call is not made; what was spent and on what is in the handoff."""
    first = ScriptedAgent([Act(usage=Usage(seconds=1, output_tokens=10, usd=0.01))])
    world = make_world(tmp_path, loop=loop, config=config, first=first)
    run = asyncio.run(world.run("mend"))
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "budget_exhausted"), run.detail
    assert len(first.briefs) == 1


def test_an_agent_that_overshoots_is_reported(tmp_path: Path) -> None:
    act = Act(writes("it.txt", "good\n"), usage=Usage(seconds=1, turns=8, output_tokens=9100, usd=0.5))
    world = make_world(tmp_path, first=ScriptedAgent([act]))

    async def story() -> None:
        (call,) = await calls_of(world, await world.run("mend"))
        assert call.end is not None
        assert call.end.over == ("turns: 8 of 7", "tokens: 9100 of 9000")

    asyncio.run(story())


def test_the_next_iteration_resumes_the_session_at_the_same_path_in_the_same_home(tmp_path: Path) -> None:
    first = ScriptedAgent([Act(session="s-1"), MENDS])
    world = make_world(tmp_path, first=first)
    run = asyncio.run(world.run("mend"))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    before, after = first.seen
    assert (before.session, after.session) == (None, "s-1")
    assert before.workspace == after.workspace
    assert before.call_context.home == after.call_context.home


@pytest.mark.parametrize("outcome", [AgentOutcome.refused, AgentOutcome.model_error])
def test_a_session_that_broke_is_not_resumed(tmp_path: Path, outcome: AgentOutcome) -> None:
    """A context that is too long, or that the model refuses, stays so."""
    first = ScriptedAgent([Act(session="s-1"), Act(session="s-1", hint=outcome, error="no"), MENDS])
    world = make_world(tmp_path, config=CONFIG.replace(", fallback: [second]", ""), first=first)
    world.loop(LOOP.replace("retry: 1, ", ""))
    asyncio.run(world.run("mend"))
    sessions = [seen.session for seen in first.seen]
    # A failed step has no outputs: only what an outcome says can end a session.
    assert sessions == ([None, "s-1", None] if outcome is AgentOutcome.refused else [None, "s-1", "s-1"])


def test_what_a_person_said_to_nobody_is_on_top_of_the_next_brief(tmp_path: Path) -> None:
    """A message that the driver could not deliver is not lost, and is told once."""
    first = ScriptedAgent([Act(unheard=("The fixture is right.",)), Act(), MENDS])
    world = make_world(tmp_path, first=first)
    asyncio.run(world.run("mend"))
    assert "The fixture" not in first.briefs[0]
    assert first.briefs[1].index("The fixture is right.") < first.briefs[1].index("Make it good.")
    assert first.briefs[1].startswith("# A person says")
    assert "The fixture" not in first.briefs[2]


def test_a_message_waits_until_somebody_can_work(tmp_path: Path) -> None:
    """Who has no quota has not heard it; a message that came while a call ended is not lost either."""
    first, second = ScriptedAgent([]), ScriptedAgent([quota(None)])
    world = make_world(tmp_path, first=first, second=second)

    def somebody_says(tree: Path) -> None:
        files = first.seen[-1].call_context.files
        assert files is not None
        put(files.inbox, "Look at the parser.")

    first.acts = [Act(somebody_says, hint=AgentOutcome.quota_wait, error="usage limit"), MENDS]

    async def story() -> None:
        run = await world.run("mend")
        put(world.app.places.of_run(run.run_id) / MAIL, "And hurry.")
        assert "Look at the parser." in second.briefs[0]
        await world.pass_time(301)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed
        assert first.briefs[1].index("Look at the parser.") < first.briefs[1].index("And hurry.")

    asyncio.run(story())


def test_a_call_that_is_stopped_is_booked_at_what_it_used_and_its_work_is_saved(tmp_path: Path) -> None:
    """L7, L19: everything it told until then counts; the time is ours to know."""
    used = Usage(seconds=400.0, turns=2, input_tokens=1000, output_tokens=50, usd=0.25)
    first = ScriptedAgent([Act(HALF, usage=used, hangs=True)])
    world = make_world(tmp_path, first=first)

    async def story() -> None:
        run = await world.start("mend")
        working = asyncio.create_task(world.settle())
        await first.hanging.wait()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        (call,) = await calls_of(world, run)
        assert call.end is not None
        assert (call.end.outcome, call.end.usage.tokens, call.end.usage.usd) == ("cancelled", 1050, 0.25)
        assert 0 < call.end.usage.seconds < 400
        spent = await world.store.spent(run_id=run.run_id)
        assert (spent["tokens"], spent["usd"]) == (1050, 0.25)
        assert "half" in run_git(world.root, ["show", f"refs/becket/rescue/{run.run_id}:half.txt"])
        kept = {ref.name for ref in await world.store.artifacts(run.run_id)}
        assert "agent-first-1.events.jsonl" in kept

    asyncio.run(story())


@pytest.mark.parametrize("told", [None, Usage(seconds=5.0, output_tokens=70, usd=0.1)])
def test_a_call_whose_end_nobody_saw_is_settled_by_its_files_or_its_booking_stands(
    tmp_path: Path, told: Usage | None
) -> None:
    """L23: after a crash of ours, what cannot be known counts as used."""
    first = ScriptedAgent([Act(), MENDS], left=told)
    world = make_world(tmp_path, store="sqlite", first=first)

    async def story() -> None:
        run = await world.start("mend")
        with crashing("fix.agent_ended"), pytest.raises(Crashed):
            await world.settle()
        await world.restart()
        await world.settle()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed
        before, after = await calls_of(world, run)
        assert after.end is not None
        if told is None:
            assert before.end is not None
            assert (before.end.outcome, before.end.by) == ("cancelled", SettledBy.booking)
            assert (await world.store.spent(run_id=run.run_id))["usd"] == pytest.approx(2 + after.end.usage.usd)
            said = [item.detail for item in await verify_run(world.app, run.run_id, rerun=False) if item.ok]
            assert [text for text in said if "2 usd" in text and text.endswith("nothing tells of it counts as booked")]
        else:
            assert before.end is not None
            assert (before.end.outcome, before.end.usage, before.end.by) == ("cancelled", told, SettledBy.files)

    asyncio.run(story())


def test_leave_for_a_call_that_never_began_costs_nothing(tmp_path: Path) -> None:
    """L23: killed between the booking and the call."""
    world = make_world(tmp_path, store="sqlite", first=ScriptedAgent([MENDS]))

    async def story() -> None:
        run = await world.start("mend")
        with crashing("money.call_booked"), pytest.raises(Crashed):
            await world.settle()
        await world.restart()
        await world.settle()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed
        before, after = await calls_of(world, run)
        assert before.end is not None
        assert after.end is not None
        assert (before.end.usage, before.end.by) == (Usage(), SettledBy.never_made)
        assert (await world.store.spent(run_id=run.run_id))["usd"] == after.end.usage.usd

    asyncio.run(story())


def test_an_agent_that_raises_is_settled_too(tmp_path: Path) -> None:
    """A fault of a driver is a failed step, and no booking without an end."""
    first = ScriptedAgent([])  # a call beyond the script raises
    world = make_world(tmp_path, first=first)

    async def story() -> None:
        run = await world.run("mend")
        assert run.status is RunStatus.ready_for_handoff
        assert {call.end.outcome for call in await calls_of(world, run) if call.end} == {"crashed"}
        assert all(call.end for call in await calls_of(world, run))

    asyncio.run(story())


def test_what_a_call_printed_is_kept_without_secrets(tmp_path: Path) -> None:
    """L25."""
    token = "ghp_" + "a1B2" * 9
    first = ScriptedAgent([])
    world = make_world(tmp_path, first=first)

    def prints(tree: Path) -> None:
        files = first.seen[-1].call_context.files
        assert files is not None
        files.log.write_text(f"token {token}\n")
        files.raw.write_text(f'{{"token": "{token}"}}\n')
        writes("it.txt", "good\n")(tree)

    first.acts = [Act(prints, said=f"I used {token}")]

    async def story() -> None:
        run = await world.run("mend")
        kept = {ref.name: ref.digest for ref in await world.store.artifacts(run.run_id)}
        for name in ("agent-first-1.log", "agent-first-1.raw.jsonl", "agent-first-1.events.jsonl"):
            content = world.app.artifacts.read(kept[name]).decode()
            assert content
            assert token not in content

    asyncio.run(story())


def test_a_run_that_ends_with_a_call_nobody_saw_end_does_not_eat_the_budget_of_the_day(tmp_path: Path) -> None:
    """L23: killed at work, then cancelled: no later life of the step settles the call, so the run's end does."""
    used = Usage(seconds=5.0, output_tokens=70, usd=0.1)
    world = make_world(tmp_path, store="sqlite", first=ScriptedAgent([Act(HALF)], left=used))

    async def story() -> None:
        run = await world.start("mend")
        with crashing("fix.agent_ended"), pytest.raises(Crashed):
            await world.settle()
        await world.store.ask_cancel(run.run_id, person("ada"), "enough")
        await world.restart()
        await world.settle()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.cancelled
        (call,) = await calls_of(world, run)
        assert call.end is not None
        assert (call.end.outcome, call.end.usage) == ("cancelled", used)
        assert (await world.store.spent(since=1.0))["usd"] == pytest.approx(0.1)
        assert not world.app.places.of_run(run.run_id).exists()

    asyncio.run(story())


def test_leave_that_a_cancelled_run_never_used_is_given_back(tmp_path: Path) -> None:
    """L23: its folder may never have been made."""
    world = make_world(tmp_path, store="sqlite", first=ScriptedAgent([MENDS]))

    async def story() -> None:
        run = await world.start("mend")
        with crashing("money.call_booked"), pytest.raises(Crashed):
            await world.settle()
        await world.store.ask_cancel(run.run_id, person("ada"), "enough")
        await world.restart()
        await world.settle()
        assert (await world.store.spent(run_id=run.run_id)).get("usd", 0.0) == 0.0

    asyncio.run(story())


@pytest.mark.parametrize("point", ["fix.agent_ended", "money.call_made", "money.call_settled", "step.action_done"])
@pytest.mark.parametrize("way", ["letter", "heard", "unheard"])
def test_whoever_does_the_work_again_hears_what_was_said(tmp_path: Path, point: str, way: str) -> None:
    """L7: killed before the step is written, the agent is called anew: with the words that the first one had."""
    first = ScriptedAgent([])
    world = make_world(tmp_path, store="sqlite", first=first)

    def hears(tree: Path) -> None:
        files = first.seen[-1].call_context.files
        assert files is not None
        if way != "letter":
            put(files.inbox, "Mind the fixture.")
        if way == "heard":
            assert Inbox(files).take() is not None

    first.acts = [Act(hears), MENDS]

    async def story() -> None:
        run = await world.start("mend")
        if way == "letter":
            put(world.app.places.of_run(run.run_id) / MAIL, "Mind the fixture.")
        with crashing(point), pytest.raises(Crashed):
            await world.settle()
        await world.restart()
        await world.settle()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed
        assert first.briefs[1].count("Mind the fixture.") == 1

    asyncio.run(story())


def test_a_fallback_hears_what_was_said_to_whom_it_stands_in_for(tmp_path: Path) -> None:
    first, second = ScriptedAgent([]), ScriptedAgent([MENDS])
    world = make_world(tmp_path, first=first, second=second)

    def hears(tree: Path) -> None:
        files = first.seen[-1].call_context.files
        assert files is not None
        put(files.inbox, "Mind the fixture.")
        assert Inbox(files).take() is not None

    first.acts = [Act(hears, hint=AgentOutcome.quota_wait, error="usage limit")]
    asyncio.run(world.run("mend"))
    assert "Mind the fixture." in second.briefs[0]
