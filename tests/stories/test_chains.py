"""A chain of starts that lint cannot see ends at the bound: told, and with a clean journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.app.record.verify import verified
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import InvalidDocument
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import AlertState, RunFilter
from becket.testing.world import World

SNAKE = """
version: 1
loop_id: snake
goal: It bites its tail.
trigger: [{manual: {}}TRIGGER]
subject: "snake/{start}"
max_iterations: 1
deadline: 2h
stop_conditions: [bite.pass]
phases:
  act:
    objective: Start it again.
    actions: [ACTION]
  verify:
    objective: Look.
    verifiers: [{id: bite, run: "true", in: scratch}]
"""
STARTS = "{id: again, uses: run.start, with: {loop: snake}}"
HIDDEN = "{id: again, uses: test.again}"


async def _again(context: ActionContext, params: Record) -> Result:
    return Result(outputs={"run": (await context.start_run("snake", None, {}, again=False)).run_id})


AGAIN = ActionDef(name="test.again", summary="Start the same loop.", run=_again, outputs=("run",))


def snake(action: str, trigger: str = "") -> str:
    return SNAKE.replace("ACTION", action).replace("TRIGGER", trigger)


async def runs_of(world: World, loop_id: str = "snake") -> list[Run]:
    return list(await world.store.list_runs(RunFilter(loop_id=loop_id, oldest_first=True, limit=500)))


def test_a_loop_that_starts_itself_is_refused_when_it_is_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.loop(snake(STARTS))
    with pytest.raises(InvalidDocument, match="self-feeding"):
        asyncio.run(world.run("snake"))


def test_with_a_bound_it_ends_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.loop(snake(STARTS.replace("loop: snake", "loop: snake, max_chain: 2")))

    async def story() -> None:
        await world.run("snake")
        runs = await runs_of(world)
        assert [run.chain for run in runs] == [0, 1, 2]
        assert [run.status for run in runs] == [RunStatus.completed, RunStatus.completed, RunStatus.ready_for_handoff]

    asyncio.run(story())


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_what_lint_cannot_see_ends_at_the_depth_with_an_alert_and_a_clean_journal(tmp_path: Path, store: str) -> None:
    world = World(tmp_path, store=store)
    world.action(AGAIN)
    world.loop(snake(HIDDEN))

    async def story() -> None:
        await world.run("snake")
        runs = await runs_of(world)
        assert [run.chain for run in runs] == list(range(11))
        assert all(run.status is RunStatus.completed for run in runs[:-1])
        assert runs[-1].status is RunStatus.ready_for_handoff
        (failed,) = [step for step in await world.store.steps(runs[-1].run_id) if step.error]
        assert failed.error_kind == "chain_too_long"
        assert "`becket run snake`" in failed.error
        (alert,) = await world.store.alerts(())
        assert (alert.key, alert.data["cause"]) == ("chain:snake", runs[-1].run_id)
        for run in runs:
            assert (await verified(world.app, run.run_id, rerun=False)).ok
        assert (await world.run("snake")).status is RunStatus.completed, "a person begins a new chain"

    asyncio.run(story())


def test_a_chain_of_events_ends_at_the_depth_and_the_run_that_posted_says_so(tmp_path: Path) -> None:
    """The name of the event is lint's blind spot here: another action posts it."""
    world = World(tmp_path)

    async def post(context: ActionContext, params: Record) -> Result:
        run = context.run
        await world.app.triggers.post("snake.bit", {}, run.run_id, run.chain + 1, run.run_id)
        return Result()

    world.action(ActionDef(name="test.post", summary="Post it.", run=post))
    world.loop(snake("{id: bit, uses: test.post}", ", {event: {name: snake.bit}}"))

    async def story() -> None:
        await world.run("snake")
        runs = await runs_of(world)
        assert [run.chain for run in runs] == list(range(11))
        notes = [event for event in await world.store.events(runs[-1].run_id) if event.kind is EventKind.note]
        assert ["11 starts in a row" in str(event.data["text"]) for event in notes] == [True]
        for run in runs:
            assert (await verified(world.app, run.run_id, rerun=False)).ok

    asyncio.run(story())


def test_a_flood_of_events_is_held_back_bounded_and_told_and_comes_in_later(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("becket.yaml", "version: 1\nstarts: {per_minute: 5}\n")
    world.loop(snake('{id: see, run: "true", in: scratch}', ", {event: {name: came}}"))

    async def story() -> None:
        for number in range(300):
            await world.app.triggers.post("came", {}, f"e{number}")
        assert len(await runs_of(world)) == 5
        assert len(await world.store.cursors("held:snake:")) == 200
        told = {alert.key: alert for alert in await world.store.alerts(())}
        assert {"pace:snake", "flood:snake"} == set(told)
        assert told["flood:snake"].count == 95
        world.clock.advance(61)
        await world.app.triggers.tick()
        assert len(await runs_of(world)) == 10

    asyncio.run(story())


def test_when_all_that_was_held_back_has_come_in_its_alert_is_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("becket.yaml", "version: 1\nstarts: {per_minute: 5}\n")
    world.loop(snake('{id: see, run: "true", in: scratch}', ", {event: {name: came}}"))

    async def alerts() -> set[str]:
        return {alert.key for alert in await world.store.alerts((AlertState.open, AlertState.told))}

    async def story() -> None:
        for number in range(12):
            await world.app.triggers.post("came", {}, f"e{number}")
        await world.store.alert_told("pace:snake", delivered=True)
        world.clock.advance(61)
        await world.app.triggers.tick()
        assert len(await runs_of(world)) == 10
        assert await alerts() == {"pace:snake"}
        world.clock.advance(61)
        await world.app.triggers.tick()
        assert len(await runs_of(world)) == 12
        assert await alerts() == set()

    asyncio.run(story())
