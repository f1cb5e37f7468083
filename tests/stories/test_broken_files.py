"""A person's slip of the pen while the engine works: nothing at work ends, nothing is lost, and somebody is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.app.compose import App
from becket.app.keyboard import at_keyboard
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import EffectRefused, UsageError
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.contract.store import Alert, AlertState, RunFilter
from becket.testing.effects import RecordedEffect
from becket.testing.world import World

LOOP = """
version: 1
loop_id: NAME
goal: It was done.
trigger: [TRIGGER]
max_iterations: 2
deadline: 1h
autonomy: propose
stop_conditions: [look.pass]
phases:
  act:
    objective: Do it.
    actions: [ACTION]
  verify:
    objective: Look.
    verifiers: [{id: look, run: "true", in: scratch}]
"""
GOOD = "version: 1\nautonomy: propose\n"
TYPO = "version: 1\nautonmy: merge\n"


def loop(name: str = "story", trigger: str = "{manual: {}}", action: str = '{id: a, run: "true", in: scratch}') -> str:
    return LOOP.replace("NAME", name).replace("TRIGGER", trigger).replace("ACTION", action)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("becket.yaml", GOOD)
    return world


async def config_alerts(world: World) -> list[Alert]:
    found = await world.store.alerts((AlertState.open, AlertState.told))
    return [alert for alert in found if alert.key == "config"]


@pytest.mark.parametrize("text", [TYPO, "", "version: 2\n", "version: 1\nbranch: ${NOT_SET_ANYWHERE}\n"])
def test_a_typo_in_becket_yaml_ends_no_run_at_work_and_lets_nothing_out(world: World, text: str) -> None:
    """L18, L37: the last good configuration counts; what a person wanted to change is not guessed."""
    refused: list[str] = []

    async def save_and_send(context: ActionContext, params: Record) -> Result:
        world.write("becket.yaml", text)
        try:
            await context.perform(EffectCall(name="http.post", target="somewhere", payload={}))
        except EffectRefused as error:
            refused.append(str(error))
        world.write("becket.yaml", GOOD + "handoff_to: null\n")
        await context.perform(EffectCall(name="http.post", target="elsewhere", payload={}))
        world.write("becket.yaml", text)
        return Result()

    outside = RecordedEffect("http.post", EffectClass.keyed, Autonomy.propose)
    world.outside(outside)
    world.action(ActionDef(name="test.save", summary="x", run=save_and_send, effects=("http.post",)))
    world.loop(loop(action="{id: save, uses: test.save}"))
    run = asyncio.run(world.run("story"))
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met"), run.detail
    assert len(refused) == 1
    assert [call.target for _, call in outside.deliveries] == ["elsewhere"]
    assert world.app.config.autonomy is Autonomy.propose


def test_a_broken_becket_yaml_is_told_once_and_withdrawn_when_it_is_mended(world: World) -> None:
    world.loop(loop())
    spec = world.app.loops.get("story").spec

    async def story() -> None:
        await world.app.settings.watch(world.store)
        assert await world.store.alerts() == ()
        for _ in range(2):
            world.write("becket.yaml", TYPO)
            assert world.app.policy.autonomy(spec) is Autonomy.observe
            for _ in range(3):
                await world.app.settings.watch(world.store)
            (alert,) = await config_alerts(world)
            assert (alert.state, alert.count) == (AlertState.open, 1)
            assert "becket.yaml:2:1: unknown-key" in alert.text
            await world.store.alert_told("config", delivered=True)
            world.write("becket.yaml", GOOD)
            assert world.app.policy.autonomy(spec) is Autonomy.propose
            await world.app.settings.watch(world.store)
            assert await config_alerts(world) == []
        world.write("becket.yaml", TYPO)
        await world.app.settings.watch(world.store)
        world.write("becket.yaml", GOOD)
        await world.restart()
        await world.app.settings.watch(world.store)
        assert await config_alerts(world) == [], "the next process withdraws what an earlier one said"

    asyncio.run(story())


def test_a_becket_yaml_that_goes_away_does_not_raise_anybodys_rights(world: World) -> None:
    """L41: between the two steps of a save there is no file, and without one everybody would be the owner."""
    world.write("becket.yaml", "version: 1\nautonomy: observe\npeople: {ann: {os_user: nobody-here}}\n")
    world.loop(loop())
    spec = world.app.loops.get("story").spec
    assert at_keyboard(world.app.config).role == "member"
    (world.root / "becket.yaml").unlink()
    assert at_keyboard(world.app.config).role == "member"
    assert world.app.policy.autonomy(spec) is Autonomy.observe
    asyncio.run(world.app.settings.watch(world.store))
    (alert,) = asyncio.run(config_alerts(world))
    assert "is gone" in alert.text
    world.write("becket.yaml", GOOD)
    assert world.app.policy.autonomy(spec) is Autonomy.propose


def test_opening_with_a_broken_becket_yaml_is_a_usage_error(world: World) -> None:
    world.write("becket.yaml", TYPO)
    with pytest.raises(UsageError, match="unknown-key"):
        App.open(world.state)
    world.write("becket.yaml", GOOD)
    app = App.open(world.state)
    world.write("becket.yaml", TYPO)
    assert app.config.autonomy is Autonomy.propose, "it was good when it was opened"
    asyncio.run(app.store.close())


def test_an_editors_lock_or_a_stray_folder_among_the_loops_disturbs_nobody(world: World) -> None:
    async def litter(context: ActionContext, params: Record) -> Result:
        folder = world.root / ".becket/loops"
        (folder / ".#story.yaml").symlink_to("somebody@somewhere.123")
        (folder / "gone.yaml").symlink_to("nowhere")
        (folder / "folder.yaml").mkdir()
        return Result()

    world.action(ActionDef(name="test.litter", summary="x", run=litter))
    world.loop(loop(action="{id: litter, uses: test.litter}"))
    run = asyncio.run(world.run("story"))
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")
    assert world.app.loops.get("story").spec.loop_id == "story"


def test_what_happens_while_a_loop_file_is_broken_starts_it_once_when_it_is_mended(world: World) -> None:
    """L42: events are not lost because somebody was editing."""
    world.loop(loop())
    world.loop(loop("second", "{after: {loop: story}}, {event: {name: x.y}}"))
    path = world.root / ".becket/loops/second.yaml"
    text = path.read_text()

    async def story() -> None:
        path.write_text(text + "\n  oops")
        await world.run("story")
        assert await world.app.triggers.post("x.y", {}, "e1") == ()
        await world.restart()
        assert [alert.key for alert in await world.store.alerts((AlertState.open,))] == ["loop_files"]
        path.write_text(text)
        for _ in range(2):
            await world.app.triggers.tick()
            await world.settle()
        runs = await world.store.list_runs(RunFilter(loop_id="second"))
        assert sorted(run.trigger for run in runs) == ["after", "event"]
        assert {run.status for run in runs} == {RunStatus.completed}

    asyncio.run(story())
