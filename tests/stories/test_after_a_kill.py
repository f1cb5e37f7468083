"""What the crash matrix found, told one by one: each of these was lost, doubled or changed by a kill once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from becket.app.record.verify import verify_run
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.run import Run, RunStatus, Step, StepState
from becket.kernel.contract.spec import EffectClass
from becket.kernel.engine.steps import GRACE
from becket.kernel.store import FileArtifacts
from becket.testing.crashes import Crashed, crashing
from becket.testing.effects import RecordedEffect
from becket.testing.people import person
from becket.testing.world import World

LOOP = """
version: 1
loop_id: story
goal: A story is told to its end.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 1h
stop_conditions: [look.pass]
"""
VERIFY = """
  verify:
    objective: look
    verifiers: [{id: look, run: "test -d .", in: scratch}]
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def loop(phases: str, more: str = "") -> str:
    return f"{LOOP}{more}\nphases:{phases}{VERIFY}"


def act(action: str) -> str:
    return f"\n  act:\n    objective: do\n    actions: [{action}]"


async def killed(work: Coroutine[Any, Any, object]) -> None:
    with pytest.raises(Crashed):
        await work


async def after_a_kill(world: World, point: str, nth: int = 1) -> tuple[Run, dict[str, Step]]:
    """The run of a story that is killed at a point, restarted, and seen to its end."""
    run = await world.start("story")
    with crashing(point, nth):
        await killed(world.settle())
    await world.restart()
    await world.settle()
    return await world.store.get_run(run.run_id), {step.id: step for step in await world.store.steps(run.run_id)}


def test_the_receipt_of_a_command_that_left_survives_whoever_ran_it(world: World) -> None:
    """The effect's row knew that it was done; the proof of it died with the process."""
    world.loop(loop(act('{id: ship, run: "echo gone", in: scratch, effects: {name: ship.it}}')))

    async def story() -> None:
        run, steps = await after_a_kill(world, "step.action_done")
        assert run.status is RunStatus.completed
        (receipt,) = [item for item in await world.store.receipts(run.run_id) if item.action_id == "ship"]
        assert steps["ship"].receipts == (receipt.digest,)
        assert all(check.ok for check in await verify_run(world.app, run.run_id, rerun=False))

    asyncio.run(story())


def test_a_budget_that_is_used_up_by_what_was_done_does_not_undo_it(world: World) -> None:
    """Bounds stop what has not begun; on the second pass they stopped what had been done, and the check after it."""

    async def spend(context: ActionContext, params: Record) -> Result:
        await context.spend("usd", 3.0)
        return Result(outputs={"n": 1})

    world.action(ActionDef(name="test.spend", summary="spends", run=spend, outputs=("n",)))
    world.loop(loop(act("{id: s, uses: test.spend}"), more="budget: {usd: 3}"))
    run, _ = asyncio.run(after_a_kill(world, "walk.step_recorded"))
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")


def test_a_notice_in_flight_is_delivered_although_its_run_waits_for_days(world: World) -> None:
    """L36: the one message that asks a person to answer was nobody's business until the person had answered."""
    outside = RecordedEffect("http.post", trouble=[Crashed()])  # type: ignore[list-item]
    world.outside(outside)
    more = "wait_conditions: {outside.busy: {wake: bell, for: 7d}}"
    phases = (
        act('{id: ready, run: "exit 3", in: scratch, raises: {"3": outside.busy}}')
        + "\n  notify:\n    objective: tell\n    actions:"
        + " [{id: told, uses: http.post, with: {url: https://example.invalid/}}]"
    )
    world.loop(loop(phases, more))

    async def story() -> None:
        run = await world.start("story")
        await killed(world.settle())
        await world.restart()
        await world.settle()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.waiting
        await world.pass_time(60)
        assert len(outside.deliveries) == 1

    asyncio.run(story())


def test_waiting_for_an_attempt_of_an_earlier_life_is_not_the_actions_time(world: World) -> None:
    """An action with a short limit was given up while the door waited for the dead process's request to settle."""
    outside = RecordedEffect("far.away", class_=EffectClass.keyed, timeout=100.0, trouble=[Crashed()])  # type: ignore[list-item]
    world.outside(outside)
    left: list[float] = []

    async def send(context: ActionContext, params: Record) -> Result:
        await context.perform(EffectCall(name="far.away", target="x"))
        left.append(context.timer.when() - asyncio.get_running_loop().time())  # type: ignore[attr-defined]
        return Result(outputs={"n": 1})

    async def no_wait(seconds: float) -> None:
        world.clock.advance(seconds)

    world.action(ActionDef(name="test.send", summary="sends", run=send, outputs=("n",), effects=("far.away",)))
    world.loop(loop(act("{id: s, uses: test.send, timeout: 2s}")))

    async def story() -> None:
        await world.start("story")
        await killed(world.settle())
        await world.restart()
        world.app.door._sleep = no_wait
        await world.settle()

    asyncio.run(story())
    assert left[0] > 2 + GRACE + 50


def test_a_second_look_at_a_cancelled_run_does_not_cancel_its_notice(world: World) -> None:
    """L36: the dispatcher tells of the wish at every look; notify always runs all the same."""

    async def told(context: ActionContext, params: Record) -> Result:
        world.app.engine.interrupt(context.run.run_id)
        await asyncio.sleep(0)
        return Result(outputs={"n": 1})

    world.action(ActionDef(name="test.told", summary="tells", run=told, outputs=("n",)))
    phases = act('{id: long, run: "exec sleep 60", in: scratch}')
    world.loop(loop(phases + "\n  notify:\n    objective: tell\n    actions: [{id: told, uses: test.told}]"))

    async def story() -> None:
        run = await world.start("story")
        settling = asyncio.create_task(world.settle())
        while not await world.store.live_children():
            await asyncio.sleep(0.01)
        await world.store.ask_cancel(run.run_id, person("me"), "enough")
        world.app.engine.interrupt(run.run_id)
        await settling
        steps = {step.id: step.state for step in await world.store.steps(run.run_id)}
        assert steps["told"] is StepState.done

    asyncio.run(story())


def test_an_ended_run_leaves_no_folder_behind(world: World) -> None:
    """L44: scratch and logs of every run since the start would have stayed until the next one."""
    world.loop(loop(act('{id: write, run: "echo x > file", in: scratch}')))
    run = asyncio.run(world.run("story"))
    assert run.status is RunStatus.completed
    assert not world.app.places.of_run(run.run_id).exists()


def test_a_half_made_copy_of_a_killed_process_does_not_stay_for_ever(tmp_path: Path) -> None:
    """L44: nobody knew the name of what had not been renamed yet."""
    artifacts = FileArtifacts(tmp_path)
    with crashing("artifacts.before_rename"), pytest.raises(Crashed):
        artifacts.put(b"whole")
    old, young = tmp_path / "incoming" / "old", tmp_path / "incoming" / "young"
    for torn in (old, young):
        torn.write_bytes(b"tor")
    os.utime(old, (time.time() - 100_000,) * 2)
    digest, _ = FileArtifacts(tmp_path).put(b"whole")
    assert (old.exists(), young.exists(), artifacts.check(digest)) == (False, True, True)
