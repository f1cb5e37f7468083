"""agent.fix: several agents at once, each in a clone of its own, for its share of the budgets."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World

CONFIG = """
version: 1
sandbox: {use: none, without: [files, processes, network]}
agents: {fixer: {driver: command, run: "true"}}
heal: {attempts: 2}
"""
LOOP = """
version: 1
loop_id: fixes
goal: There is a candidate.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 8d
autonomy: propose
budget: {agent_time: 1h, tokens: TOKENS}
stop_conditions: [candidate.exists]
handoff_conditions: [agent.refused]
wait_conditions:
  agent.quota_wait: {wake: clock, for: 7d, then: handoff}
phases:
  discover:
    objective: Know the commit.
    actions:
      - {id: base, uses: git.read_base}
      - {id: text, uses: once.brief, with: {brief: Mend it., base: "{base.sha}"}}
  act:
    objective: Let agents do it.
    actions:
      - {id: fix, uses: agent.fix, with: {brief: "{text.brief}", base: "{base.sha}", subject: Mend it}}
  verify:
    objective: Nobody moved a ref.
    verifiers: [{id: refs, uses: refs_moved_only_by_people}]
"""
MENDS = Act(writes("it.txt", "good\n"))


def make_world(folder: Path, *acts: Act, tokens: int = 1_000_000) -> tuple[World, ScriptedAgent]:
    agent = ScriptedAgent(acts)
    world = World(folder, agents={"fixer": agent})
    world.loop(LOOP.replace("TOKENS", str(tokens)))
    world.commit({"becket.yaml": CONFIG, "it.txt": "bad\n"})
    return world, agent


async def calls_of(world: World, run: Run) -> list[AgentCall]:
    return list(reversed(await world.store.calls(run.run_id)))


def test_agents_that_work_at_once_do_not_take_all_from_each_other(tmp_path: Path) -> None:
    """L23: each has its share, a folder and a HOME of its own."""
    world, agent = make_world(tmp_path, MENDS, MENDS, tokens=1000)
    run = asyncio.run(world.run("fixes"))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    one, other = agent.seen
    assert one.limits.tokens == 500
    assert other.limits.tokens is not None
    assert 250 <= other.limits.tokens <= 500, "half of what is left, whether the first still works or not"
    assert one.workspace != other.workspace
    assert one.call_context.home != other.call_context.home


def test_one_that_gets_no_budget_does_not_undo_the_others_work(tmp_path: Path) -> None:
    world, agent = make_world(tmp_path, MENDS, tokens=1)
    run = asyncio.run(world.run("fixes"))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert len(agent.briefs) == 1


def test_agents_that_are_stopped_are_all_settled(tmp_path: Path) -> None:
    """L19: nothing goes on after the stop, and no booking is left open."""
    world, agent = make_world(tmp_path, Act(hangs=True), Act(hangs=True))

    async def story() -> None:
        run = await world.start("fixes")
        working = asyncio.create_task(world.settle())
        while len(agent.seen) < 2:
            await agent.hanging.wait()
            await asyncio.sleep(0)
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        assert [call.end and call.end.outcome for call in await calls_of(world, run)] == ["cancelled"] * 2

    asyncio.run(story())


def test_one_that_waits_for_its_quota_is_waited_for_where_nobody_repaired_it(tmp_path: Path) -> None:
    quota = Act(hint=AgentOutcome.quota_wait, error="usage limit")
    world, _ = make_world(tmp_path, Act(), quota, MENDS, MENDS)

    async def story() -> None:
        run = await world.run("fixes")
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",)), (run.reason, run.detail)
        await world.pass_time(301)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed

    asyncio.run(story())


def test_a_checkout_that_cannot_be_read_any_more_is_a_crash(tmp_path: Path) -> None:
    """L4: what nobody can look at is never taken for nothing done."""

    def removes_its_checkout(tree: Path) -> None:
        shutil.rmtree(tree)

    world, _ = make_world(tmp_path, Act(removes_its_checkout), Act(removes_its_checkout), MENDS, MENDS)

    async def story() -> None:
        run = await world.run("fixes")
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        ends = [call.end.outcome for call in await calls_of(world, run) if call.end is not None]
        assert ends == ["crashed", "crashed", "changed", "changed"]

    asyncio.run(story())
