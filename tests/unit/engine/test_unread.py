"""While a loop file does not load, nobody knows its triggers: what happens meanwhile is kept for it (L42)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from trigger_stage import OPEN, Killed, Stage, killed_at, play

from becket.kernel.contract.run import Move, Started
from becket.kernel.engine.causes import posted
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.engine.schedule import PREFIX as SCHEDULES
from becket.kernel.engine.schedule import Scheduler
from becket.kernel.engine.trigger_alerts import TriggerAlerts
from becket.kernel.engine.triggers import Triggers
from becket.kernel.engine.unread_causes import ALERT, KEEP, LEFT_OUT, PREFIX, UnreadCauses
from becket.kernel.store import open_sqlite


def triggers(stage: Stage) -> Triggers:
    return Triggers(stage.store, stage.loops, stage.intake, stage.repo, "main")  # type: ignore[arg-type]


def listening(stage: Stage, loop_id: str, **more: Any) -> None:
    stage.loops.put(loop_id, {"event": {"name": "ci.failed", **more}}, {"after": {"loop": "build"}})


async def built(stage: Stage, move: Move = Move.complete, **ask: Any) -> None:
    """A run of `build` ends."""
    started = await stage.intake.start(StartRequest(loop_id="build", **ask))
    assert started.run is not None
    await stage.end(started.run, move)


def loops_of(started: tuple[Started, ...]) -> list[str]:
    return [item.run.loop_id for item in started if item.run is not None and item.created]


async def stage_with_a_broken_file(stage: Stage) -> Triggers:
    await stage.join()
    stage.loops.put("build")
    for loop_id in ("good", "bad"):
        listening(stage, loop_id)
    stage.loops.breaks("bad")
    return triggers(stage)


def test_events_and_ended_runs_start_the_loop_once_its_file_is_mended() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        assert loops_of(await now.post("ci.failed", {"job": {"id": 7}}, "e1", chain=2)) == ["good"]
        await built(stage)
        assert loops_of(await now.follow()) == ["good"]
        assert await stage.store.unfollowed() == (), "the next hundred runs must not be hidden behind it"
        assert (await stage.alerts(OPEN))[ALERT].data == {"files": ["bad.yaml"]}
        assert await stage.store.next_due() is None, "the engine must not spin"
        assert await now.tick() == ()

        stage.clock.advance(KEEP / 2)
        stage.loops.mend("bad")
        later = triggers(stage)
        assert loops_of(await later.tick()) == ["bad", "bad"]
        by_event, by_end = sorted(await stage.runs("bad"), key=lambda run: run.trigger, reverse=True)
        assert (by_event.subject.fields["data.job.id"], by_event.chain) == (7, 2)
        assert (by_end.subject.fields["loop"], by_end.chain) == ("build", 1)
        assert await stage.store.cursors(PREFIX) == ()
        assert await later.tick() == ()
        assert loops_of(await later.post("ci.failed", {}, "e1")) == []

    play(story)


def test_what_the_mended_file_does_not_listen_to_starts_nothing() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        await now.post("ci.failed", {"branch": "main"}, "e1")
        await now.post("ci.passed", {}, "e2")
        await built(stage, Move.fail)
        await now.follow()
        listening(stage, "bad", match={"branch": "dev"})
        assert await now.tick() == ()
        assert await stage.store.cursors(PREFIX) == ()

    play(story)


def test_a_file_that_comes_later_is_not_told_of_the_past_and_a_removed_one_is_forgotten() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        await now.post("ci.failed", {}, "e1")
        listening(stage, "new")
        assert await now.tick() == ()
        stage.loops.mend("bad")
        stage.loops.remove("bad")
        assert await now.tick() == ()
        assert await stage.store.cursors(PREFIX) == ()
        assert await stage.runs("new") == []

    play(story)


def test_each_of_several_broken_files_has_its_say_when_it_can() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        listening(stage, "worse")
        await now.post("ci.failed", {}, "e1")
        stage.loops.breaks("worse")
        await now.post("ci.failed", {}, "e2")
        stage.loops.mend("bad")
        assert loops_of(await now.tick()) == ["bad", "bad"]
        assert len(await stage.store.cursors(PREFIX)) == 1
        assert (await stage.alerts(OPEN))[ALERT].data == {"files": ["worse.yaml"]}
        stage.loops.mend("worse")
        assert loops_of(await now.tick()) == ["worse"]
        assert await stage.fields("worse", "id") == ["e1", "e2"]

    play(story)


def test_an_event_posted_again_is_kept_for_the_files_that_broke_since() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        await now.post("ci.failed", {}, "e1")
        listening(stage, "other", match={"x": "1"})
        stage.loops.breaks("other")
        await now.post("ci.failed", {}, "e1")
        listening(stage, "other")
        stage.loops.mend("bad")
        assert sorted(loops_of(await now.tick())) == ["bad", "other"]

    play(story)


def test_a_dry_run_is_not_kept() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        await built(stage, Move.complete_dry_run, dry_run=True)
        assert await now.follow() == ()
        assert await stage.store.cursors(PREFIX) == ()

    play(story)


def test_a_start_that_fails_after_the_mending_is_held_like_any_other() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        await now.post("ci.failed", {}, "e1")
        needs = {"who": {"type": "string"}}
        stage.loops.put("bad", {"event": {"name": "ci.failed"}}, inputs=needs)
        assert await now.tick() == ()
        assert "start:bad:event" in await stage.alerts(OPEN)
        stage.loops.put("bad", {"event": {"name": "ci.failed"}}, inputs={"who": {"type": "string", "default": "me"}})
        stage.clock.advance(60)
        assert loops_of(await now.tick()) == ["bad"]

    play(story)


def test_nothing_is_kept_for_ever_and_nothing_disappears_silently() -> None:
    """L44"""

    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        await now.post("ci.failed", {}, "e1")
        stage.clock.advance(KEEP - 60)
        await now.tick()
        assert len(await stage.store.cursors(PREFIX)) == 1
        stage.clock.advance(120)
        await now.tick()
        assert await stage.store.cursors(PREFIX) == ()
        assert (await stage.alerts(OPEN))[LEFT_OUT].data == {"of": "event:e1", "files": ["bad.yaml"]}
        stage.loops.mend("bad")
        assert await now.tick() == ()

    play(story)


def test_so_many_are_kept_and_no_more() -> None:
    """L44: a file that stays broken must not fill the journal."""

    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        kept = UnreadCauses(stage.store, stage.loops, TriggerAlerts(stage.store), most=3)
        for number in (0, 1, 2, 2, 3):
            await kept.keep(posted("ci.failed", {}, f"e{number}", 0, None), ["bad.yaml"])
        assert len(await stage.store.cursors(PREFIX)) == 3
        assert (await stage.alerts(OPEN))[LEFT_OUT].data["of"] == "event:e3"
        stage.loops.mend("bad")
        assert loops_of(await now.tick()) == ["bad"] * 3

    play(story)


def test_the_alert_is_raised_once_told_anew_for_other_files_and_withdrawn() -> None:
    async def story(stage: Stage) -> None:
        now = await stage_with_a_broken_file(stage)
        for _ in range(3):
            await now.tick()
        await triggers(stage).tick()
        alert = (await stage.alerts(OPEN))[ALERT]
        assert (alert.count, alert.data) == (1, {"files": ["bad.yaml"]})
        assert "bad.yaml" in alert.text
        await stage.store.alert_told(ALERT, delivered=True)
        stage.loops.breaks("good")
        await now.tick()
        assert (await stage.alerts(OPEN))[ALERT].data == {"files": ["bad.yaml", "good.yaml"]}
        await stage.store.alert_told(ALERT, delivered=True)
        stage.loops.mend("bad")
        stage.loops.mend("good")
        await now.tick()
        assert ALERT not in await stage.alerts()
        stage.loops.breaks("bad")
        await now.tick()
        assert ALERT in await stage.alerts(OPEN)

    play(story)


@pytest.mark.parametrize(
    "point",
    [
        "store.fire.before_commit",  # the cause is being kept
        "store.fire.after_commit",
        "follow.before_mark",
        "follow.after_mark",
        "store.start_run.before_commit",  # the file is mended
        "store.start_run.after_commit",
        "store.drop_cursors.before_commit",
        "store.drop_cursors.after_commit",
    ],
)
def test_a_crash_neither_loses_nor_doubles_what_is_kept(tmp_path: Path, point: str) -> None:
    async def story() -> None:
        stage = Stage()
        await stage.store.close()

        def reopen() -> None:
            stage.store = open_sqlite(tmp_path / "journal.db", stage.clock)
            stage.intake = Intake(stage.store, stage.loops, stage.repo, "main", lambda: None)  # type: ignore[arg-type]

        reopen()
        await stage.join()
        stage.loops.put("build")
        stage.loops.put("bad", {"after": {"loop": "build"}})
        await built(stage)
        stage.loops.breaks("bad")
        crashes = 0
        for act in ("follow", "tick"):
            with killed_at(point):
                try:
                    await getattr(triggers(stage), act)()
                except Killed:
                    crashes += 1
            await stage.store.close()
            reopen()
            await triggers(stage).follow()
            stage.loops.mend("bad")
        assert crashes == 1
        for _ in range(2):
            await triggers(stage).follow()
            await triggers(stage).tick()
        assert len(await stage.runs("bad")) == 1
        assert await stage.store.unfollowed() == ()
        assert await stage.store.cursors(PREFIX) == ()
        await stage.store.close()

    asyncio.run(story())


def test_a_schedule_keeps_its_place_while_its_loop_may_be_in_a_broken_file() -> None:
    """L43: also where the file has another name than its loop, so that nobody can say whose it is."""

    async def story(stage: Stage) -> None:
        stage.loops.put("nightly", {"schedule": {"cron": "0 * * * *", "missed": "once"}})
        stage.loops.put("other")
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.sync()
        loop = stage.loops.get("nightly")
        stage.loops.remove("nightly")
        stage.loops.breaks("other")
        stage.clock.advance(2 * 3600)
        assert await scheduler.tick() == ()
        assert len(await stage.store.cursors(SCHEDULES)) == 1
        stage.loops.mend("other")
        stage.loops.put("nightly", *[trigger.model_dump(exclude_none=True) for trigger in loop.spec.trigger])
        stage.clock.advance(600)
        assert loops_of(await scheduler.tick()) == ["nightly"]
        stage.loops.remove("nightly")
        await scheduler.tick()
        assert await stage.store.cursors(SCHEDULES) == ()

    play(story)
