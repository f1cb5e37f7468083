"""A clock that is set, or a machine that slept, is not work: the same ends as without it, and it is told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from becket.app.record.verify import verified
from becket.app.serve import MOST_AGED, RETAINED, FolderSweep, retain
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.testing.people import person
from becket.testing.world import World
from becket_lab.simulated.judge import judge
from becket_lab.simulated.play import Play

HOURS = 25 * 3600.0
DAYS = 6 * 86_400.0  # within the week for which a green is remembered
DECADE = 10 * 365 * 86_400.0
JUMPS = (HOURS, -HOURS, DECADE)

Ends = tuple[list[tuple[str, str, int]], list[object]]
"""How the runs ended, and what main held after each promotion: a commit's own name holds the time."""


def played(folder: Path, seed: int, commits: int, jumps: tuple[float, ...] = ()) -> Ends:
    """So many commits of people against heal; the clock is set at points that the seed chooses."""

    async def story() -> Ends:
        play = Play(folder, seed, 240.0)
        chance = random.Random(f"{seed} {jumps}")
        for jump in jumps:
            play.time.plan(play.time.clock() + chance.uniform(1.0, 6000.0), _setter(play, jump))
        await play.run(commits)
        judgement = await judge(play)
        assert not judgement.wrong, judgement.wrong[:5]
        runs = await play.system.store.list_runs(RunFilter(limit=None, oldest_first=True))
        alerts = [alert for alert in await play.system.store.alerts(()) if alert.key == "clock:leapt"]
        assert len(alerts) == bool(jumps)
        return [(run.status.value, run.reason, run.counted) for run in runs], [
            play.on.files(moved.new) for moved in play.moves
        ]

    return asyncio.run(story())


def _setter(play: Play, jump: float) -> Callable[[], Awaitable[None]]:
    async def set_the_clock() -> None:
        play.time.jump(jump)

    return set_the_clock


def test_heal_ends_the_same_when_the_clock_is_set_four_times(tmp_path: Path) -> None:
    assert played(tmp_path / "set", 1, 8, (HOURS, -HOURS, DECADE, -HOURS)) == played(tmp_path / "plain", 1, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_heal_ends_the_same_whenever_the_clock_is_set(tmp_path: Path, seed: int) -> None:
    plain = played(tmp_path / "plain", seed, 15)
    assert len(plain[0]) > 5
    for number, jumps in enumerate([(HOURS,), (-HOURS,), (DAYS,), (HOURS, -HOURS, DAYS, -HOURS)]):
        assert played(tmp_path / str(number), seed, 15, jumps) == plain, f"seed {seed}, {jumps}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 8])
def test_a_decade_makes_gates_run_again_and_breaks_nothing(tmp_path: Path, seed: int) -> None:
    """No green is remembered for so long: what follows takes longer, so another commit may be the newest by then."""
    assert len(played(tmp_path / "set", seed, 15, (DECADE,))[0]) == len(played(tmp_path / "plain", seed, 15)[0])


ASKS = """
version: 1
loop_id: asks
goal: A person said yes.
trigger: [{manual: {}}]
max_iterations: 3
deadline: 3h
budget: {wall: 10m}
stop_conditions: [approval.approved, look.pass]
wait_conditions:
  approval.asked: {wake: approval, for: 2h}
phases:
  plan:
    objective: Ask, and work for two minutes.
    actions:
      - {id: work, uses: test.work}
      - {id: ask, uses: approval.ask, with: {question: "Well?", about: "this", expires: 1h}}
  verify:
    objective: Look.
    verifiers: [{id: look, run: "true", in: scratch}]
"""


def asking(tmp_path: Path, jump: float, slept: float, meanwhile: bool) -> World:
    """The leap happens in the middle of the work, or before it."""
    world = World(tmp_path, store="sqlite")

    async def work(context: ActionContext, params: Record) -> Result:
        world.clock.advance(60)
        if meanwhile:
            world.clock.jump(jump)
            world.clock.suspend(slept)
            await context.now()
        world.clock.advance(60)
        return Result()

    world.action(ActionDef(name="test.work", summary="Take two minutes.", run=work))
    world.loop(ASKS)
    return world


async def end_well(world: World, run: Run) -> Run:
    (asked,) = await world.store.approvals(run.run_id)
    await world.store.decide_approval(asked.approval_id, True, person("owner"), asked.bound_to, "")
    await world.settle()
    assert (await verified(world.app, run.run_id, rerun=False)).ok
    return await world.store.get_run(run.run_id)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_run_that_waits_is_neither_late_nor_lost_when_the_clock_is_set(tmp_path: Path, jump: float) -> None:
    world = asking(tmp_path, jump, 0.0, meanwhile=False)

    async def story() -> None:
        run = await world.run("asks")
        assert run.status is RunStatus.waiting
        world.clock.jump(jump)
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert run.status is RunStatus.waiting
        await world.pass_time(1800)
        ended = await end_well(world, run)
        assert (ended.status, ended.reason) == (RunStatus.completed, "stop_conditions_met")
        (alert,) = [one for one in await world.store.alerts(()) if one.key == "clock:leapt"]
        assert f"{jump / 3600:+.2f} h" in alert.text

    asyncio.run(story())


@pytest.mark.parametrize("jump", JUMPS)
def test_a_wait_that_nobody_answers_still_ends_in_its_time(tmp_path: Path, jump: float) -> None:
    world = asking(tmp_path, jump, 0.0, meanwhile=False)

    async def story() -> None:
        run = await world.run("asks")
        world.clock.jump(jump)
        await world.settle()
        for _ in range(8):
            await world.pass_time(900)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.ready_for_handoff

    asyncio.run(story())


@pytest.mark.parametrize(("jump", "slept"), [*((jump, 0.0) for jump in JUMPS), (0.0, HOURS)])
def test_a_leap_in_the_middle_of_a_step_is_not_its_work(tmp_path: Path, jump: float, slept: float) -> None:
    world = asking(tmp_path, jump, slept, meanwhile=True)

    async def story() -> None:
        run = await world.run("asks")
        assert run.status is RunStatus.waiting, run.reason
        assert run.wall_used == pytest.approx(120, abs=1)
        ended = await end_well(world, run)
        assert ended.status is RunStatus.completed

    asyncio.run(story())


def test_a_clock_set_ten_years_ahead_does_not_make_every_run_old_at_once(tmp_path: Path) -> None:
    world = asking(tmp_path, 0.0, 0.0, meanwhile=False)

    async def story() -> None:
        run = await world.run("asks")
        await end_well(world, run)
        await retain(world.app)
        world.clock.jump(DECADE)
        await world.settle()
        await retain(world.app)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed
        (cursor,) = await world.store.cursors(RETAINED)
        assert float(cursor.value) < world.clock() - DECADE + 2 * MOST_AGED

    asyncio.run(story())


@pytest.mark.parametrize("jump", JUMPS)
def test_what_an_ended_run_left_is_swept_however_the_clock_was_set(tmp_path: Path, jump: float) -> None:
    """A kill between the end and the cleaning leaves the folder; a clock set back puts that end into the future."""
    world = asking(tmp_path, jump, 0.0, meanwhile=False)

    async def story() -> None:
        run = await end_well(world, await world.run("asks"))
        left = world.app.places.of_run(run.run_id)
        left.mkdir(parents=True)
        world.clock.jump(jump)
        await world.settle()
        sweep = FolderSweep(world.app)
        await sweep.look()
        assert left.exists()  # its own run may still be at it
        await sweep.look()
        assert not left.exists()

    asyncio.run(story())
