"""The dead-man's switch: three named cases, and alarms that end only by being delivered (L42, L43)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from trigger_stage import CLOSED, OPEN, TOLD, Stage, at, play

from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.contract.handoff import Handoff
from becket.kernel.contract.run import Move, Run
from becket.kernel.contract.store import Alert, AlertState, End
from becket.kernel.engine.deadman import (
    LAST_RETRY,
    STRIKES,
    Alarm,
    AlarmKind,
    DeadManSwitch,
    SignsOfLife,
    signs_of_life,
)
from becket.kernel.engine.intake import StartRequest
from becket.kernel.engine.schedule import PREFIX, Scheduler
from becket.kernel.store import open_memory
from becket.testing.people import person


class Switch:
    """A switch over a stage's journal, with a store of its own and a receiver that can be out of reach."""

    def __init__(self, stage: Stage, expected: bool = True) -> None:
        self.stage = stage
        self.own = open_memory(stage.clock)
        self.said: list[str] = []
        self.reachable = True
        self.unreadable: Exception | None = None
        self.expected = expected
        self.certain: tuple[Alarm, ...] = ()
        self.deadman = self.another()

    def another(self) -> DeadManSwitch:
        return DeadManSwitch(self.read, self.own, self.tell, self.stage.clock, certain=lambda: self.certain)

    async def read(self) -> SignsOfLife:
        if self.unreadable is not None:
            raise self.unreadable
        return await signs_of_life(self.stage.store, self.stage.loops, daemon_expected=self.expected)

    async def tell(self, alert: Alert) -> bool:
        if self.reachable:
            self.said.append(alert.key)
        return self.reachable

    async def watch(
        self, seconds: float, daemon: bool = False, scheduler: Scheduler | None = None, step: float = 10
    ) -> None:
        """Ticks, with or without the daemon doing its part."""
        for _ in range(int(seconds // step)):
            self.stage.clock.advance(step)
            if daemon:
                await self.stage.store.beat("w", 30, {})
            if scheduler is not None:
                await scheduler.tick()
            await self.deadman.tick()

    async def states(self) -> dict[str, AlertState]:
        return {alert.key: alert.state for alert in await self.own.alerts()}


def test_a_daemon_that_dies_is_told_once_and_its_return_once() -> None:
    """L43, case one: the process that fires everything is gone."""

    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        await switch.watch(300, daemon=True)
        assert switch.said == []
        await switch.watch(600)
        assert switch.said == ["daemon_dead"]
        await switch.watch(600, daemon=True)
        assert switch.said == ["daemon_dead", "well:daemon_dead"]
        assert set((await switch.states()).values()) == {CLOSED}
        await switch.watch(300)
        assert switch.said[2:] == ["daemon_dead"], "closed and raised again is told again"
        await switch.own.close()

    play(story)


def test_a_daemon_that_left_in_good_order_is_not_missed_unless_it_should_be_up() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage, expected=False)
        await stage.join()
        await switch.watch(60, daemon=True)
        await stage.store.leave("w")
        await switch.watch(600)
        assert switch.said == []
        switch.expected = True
        await switch.watch(10)
        assert switch.said == ["daemon_dead"]
        await switch.own.close()

    play(story)


def test_a_schedule_that_falls_silent_is_told_although_the_daemon_lives() -> None:
    """L43, case two: 337 fires that nobody missed."""

    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("nightly", {"schedule": {"cron": "0 * * * *", "grace": "60s"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.tick()
        await switch.watch(2 * 3600, daemon=True, scheduler=scheduler, step=60)
        assert switch.said == []
        await switch.watch(3600 + 120, daemon=True, step=60)
        assert switch.said == []
        await switch.watch(20, daemon=True)
        (silent,) = switch.said
        assert silent.startswith("schedule_silent:nightly:")
        await switch.watch(60, daemon=True, scheduler=scheduler)
        assert switch.said[1:] == [f"well:{silent}"]
        await switch.own.close()

    play(story)


def test_a_schedule_nobody_took_up_and_one_whose_file_broke_are_missed_too() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("broken", {"schedule": {"cron": "0 * * * *"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.tick()
        stage.loops.breaks("broken")
        await switch.watch(3600 + 200, daemon=True, scheduler=scheduler)
        assert [key.rpartition(":")[0] for key in switch.said] == ["schedule_silent:broken"]
        stage.loops.put("orphan", {"schedule": {"cron": "0 0 1 1 *"}})
        await switch.watch(200, daemon=True)
        assert [key.rpartition(":")[0] for key in switch.said[1:]] == ["schedule_silent:orphan"]
        await switch.own.close()

    play(story)


def test_a_silent_schedule_is_not_called_well_because_the_daemon_died_too() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("nightly", {"schedule": {"cron": "0 * * * *"}})
        await Scheduler(stage.store, stage.loops, stage.intake).tick()
        await switch.watch(3600 + 200, daemon=True)
        await switch.watch(300)
        assert [key.partition(":")[0] for key in switch.said] == ["schedule_silent", "daemon_dead"]
        stage.loops.remove("nightly")
        await Scheduler(stage.store, stage.loops, stage.intake).tick()
        switch.expected = False
        await switch.watch(300)
        assert len(switch.said) == 2, "what is not wanted any more is neither ill nor well"
        assert set((await switch.states()).values()) == {CLOSED}
        await switch.own.close()

    play(story)


def test_a_paused_loop_is_not_silent() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("nightly", {"schedule": {"cron": "0 * * * *"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await stage.store.set_control("loop:nightly", True, person("me"), "")
        await switch.watch(3 * 3600, daemon=True, scheduler=scheduler, step=60)
        assert switch.said == []
        assert await stage.runs() == []
        await switch.own.close()

    play(story)


def test_a_fire_that_has_its_run_is_not_silent_whatever_the_cursor_says() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("nightly", {"schedule": {"cron": "0 12 1 6 *", "tz": "Europe/Berlin"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.tick()
        (before,) = await stage.store.cursors(PREFIX)
        stage.clock.set(at("2026-06-01 12:00", "Europe/Berlin"))
        await scheduler.tick()
        (after,) = await stage.store.cursors(PREFIX)
        await stage.store.fire(after, before, ())
        await stage.store.beat("w", 30, {})
        await switch.watch(600, daemon=True)
        assert switch.said == []
        await switch.own.close()

    play(story, "2026-05-01 12:00")


async def one_run(stage: Stage, move: Move, expires_in: float | None = None, **ask: Any) -> Run:
    started = await stage.intake.start(StartRequest(loop_id="heal", **ask))
    assert started.run is not None
    if move is not Move.hand_off:
        return await stage.end(started.run, move)
    claim = await stage.store.claim(started.run.run_id, started.run.segment, "w", 60)
    assert claim is not None
    now = stage.clock()
    handoff = Handoff(
        handoff_id=f"h_{started.run.run_id}", run_id=started.run.run_id, loop_id="heal", subject="s", owner="me",
        reason="stuck", next_step="look", created_at=now, updated_at=now,
        expires_at=None if expires_in is None else now + expires_in,
    )  # fmt: skip
    await stage.store.end(started.run.run_id, claim.run.epoch, End(move=Move.hand_off, reason="stuck", handoff=handoff))
    return await stage.store.get_run(started.run.run_id)


def test_a_run_that_nobody_takes_over_is_told_until_somebody_does() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("heal")
        run = (await stage.intake.start(StartRequest(loop_id="heal"))).run
        assert run is not None
        assert await stage.store.claim(run.run_id, 1, "lost", 30) is not None
        await switch.watch(55, daemon=True)
        assert switch.said == []
        await switch.watch(30, daemon=True)
        assert switch.said == [f"run_stuck:{run.run_id}"]
        await stage.store.requeue_lost()
        assert await stage.store.claim(run.run_id, 2, "w", 60) is not None
        await switch.watch(20, daemon=True)
        assert switch.said == [f"run_stuck:{run.run_id}", f"well:run_stuck:{run.run_id}"]
        await switch.own.close()

    play(story)


def test_a_loop_that_only_fails_is_told_until_it_does_not() -> None:
    """L43, case three: it fires, and every run fails."""

    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("heal")
        await one_run(stage, Move.complete)
        for _ in range(STRIKES - 1):
            await one_run(stage, Move.fail)
        await one_run(stage, Move.complete_dry_run, dry_run=True)
        await one_run(stage, Move.fail, dry_run=True)
        cancelled = await stage.intake.start(StartRequest(loop_id="heal"))
        assert cancelled.run is not None
        await stage.store.ask_cancel(cancelled.run.run_id, person("me"), "")
        await switch.watch(60, daemon=True)
        assert switch.said == []
        last = await one_run(stage, Move.fail)
        await switch.watch(60, daemon=True)
        assert switch.said == ["loop_failing:heal"]
        (alert,) = await switch.own.alerts((TOLD,))
        assert alert.data["runs"][0] == last.run_id
        await one_run(stage, Move.fail)
        await switch.watch(60, daemon=True)
        assert switch.said == ["loop_failing:heal"]
        await one_run(stage, Move.hand_off)
        await switch.watch(60, daemon=True)
        assert switch.said == ["loop_failing:heal", "well:loop_failing:heal"]
        await switch.own.close()

    play(story)


def test_handoffs_that_nobody_answers_are_a_failing_loop() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("heal")
        for _ in range(STRIKES):
            await one_run(stage, Move.hand_off, expires_in=100)
        await switch.watch(60, daemon=True)
        assert switch.said == []
        await switch.watch(60, daemon=True)
        await stage.store.wake_due()
        await switch.watch(10, daemon=True)
        assert switch.said == ["loop_failing:heal"]
        (alert,) = await switch.own.alerts((TOLD,))
        assert "never answered" in alert.text
        await switch.own.close()

    play(story)


def test_only_a_delivery_mutes_and_a_failed_one_is_tried_again_ever_more_rarely() -> None:
    """L42: a failed reaction must not mute the alert."""

    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        switch.reachable = False
        tries: list[float] = []

        async def tell(alert: Alert) -> bool:
            tries.append(stage.clock())
            return await Switch.tell(switch, alert)

        switch.deadman = DeadManSwitch(switch.read, switch.own, tell, stage.clock)
        await switch.watch(6 * 3600)
        assert await switch.states() == {"daemon_dead": OPEN}
        gaps = [round(later - earlier) for earlier, later in pairwise(tries)]
        assert gaps[:4] == [10, 60, 120, 240]
        assert max(gaps) == LAST_RETRY
        switch.reachable = True
        await switch.watch(LAST_RETRY)
        assert switch.said == ["daemon_dead"]
        assert await switch.states() == {"daemon_dead": TOLD}
        await switch.own.close()

    play(story)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_tell_that_breaks_or_hangs_is_no_delivery_and_stops_no_other(hangs: bool) -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        stage.loops.put("heal")
        await stage.join()
        for _ in range(STRIKES):
            await one_run(stage, Move.fail)

        async def tell(alert: Alert) -> bool:
            if alert.key != "daemon_dead":
                return await switch.tell(alert)
            if hangs:
                await asyncio.Event().wait()
            raise ConnectionError("no route")

        switch.deadman = DeadManSwitch(switch.read, switch.own, tell, stage.clock, tell_within=0.01)
        await switch.watch(200)
        assert switch.said == ["loop_failing:heal"]
        assert (await switch.states())["daemon_dead"] is OPEN
        await switch.own.close()

    play(story)


def test_a_delivery_that_proved_void_is_told_again() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await switch.watch(200)
        await switch.own.alert_told("daemon_dead", delivered=False)
        await switch.watch(10)
        assert switch.said == ["daemon_dead", "daemon_dead"]
        await switch.own.close()

    play(story)


def test_an_alarm_that_ended_before_anybody_could_be_told_is_told_all_the_same() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        switch.reachable = False
        await switch.watch(200)
        await stage.join()
        await switch.watch(600, daemon=True)
        switch.reachable = True
        await switch.watch(1200, daemon=True)
        assert switch.said == ["daemon_dead", "well:daemon_dead"]
        await switch.own.close()

    play(story)


def test_an_end_that_was_not_delivered_is_withdrawn_when_the_trouble_comes_back() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await switch.watch(200)
        switch.reachable = False
        await stage.join()
        await switch.watch(60, daemon=True)
        assert (await switch.states())["well:daemon_dead"] is OPEN
        await switch.watch(200)
        switch.reachable = True
        await switch.watch(1200)
        assert switch.said == ["daemon_dead", "daemon_dead"]
        assert (await switch.states())["well:daemon_dead"] is CLOSED
        await switch.own.close()

    play(story)


def test_a_restarted_watchdog_remembers_what_it_told() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await switch.watch(200)
        switch.deadman = switch.another()
        await switch.watch(30)
        assert switch.said == ["daemon_dead"], "not judged yet, and not called well either"
        await switch.watch(300)
        assert switch.said == ["daemon_dead"]
        await switch.own.close()

    play(story)


@pytest.mark.parametrize("jump", [8 * 3600, -8 * 3600])
def test_a_machine_that_slept_or_changed_its_clock_raises_no_false_alarm(jump: float) -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        stage.loops.put("nightly", {"schedule": {"cron": "0 * * * *", "missed": "skip"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await switch.watch(60, daemon=True, scheduler=scheduler)
        stage.clock.advance(jump)
        await switch.deadman.tick()
        await switch.watch(20)
        await switch.watch(300, daemon=True, scheduler=scheduler)
        assert switch.said == []
        await switch.watch(200)
        assert switch.said == ["daemon_dead"], "forgiven once, not for ever"
        await switch.own.close()

    play(story)


def test_a_switch_that_is_looked_at_rarely_still_judges() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        for _ in range(4):
            stage.clock.advance(600)
            await switch.deadman.tick()
        assert switch.said == ["daemon_dead"]
        await switch.own.close()

    play(story)


def test_a_journal_that_cannot_be_read_is_an_alarm_and_makes_nothing_well() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await switch.watch(200)
        switch.unreadable = StoreUnavailable("the disk is gone")
        await switch.watch(60)
        assert switch.said == ["daemon_dead"]
        await switch.watch(60)
        assert switch.said == ["daemon_dead", "blind"]
        (alert,) = [alert for alert in await switch.own.alerts((TOLD,)) if alert.key == "blind"]
        assert "the disk is gone" in alert.text
        switch.unreadable = None
        await switch.watch(60)
        assert switch.said == ["daemon_dead", "blind", "well:blind"]
        await switch.own.close()

    play(story)


def test_other_alerts_of_the_store_are_left_alone() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage, expected=False)
        await switch.own.raise_alert("service:web", "it restarts too often", {})
        await switch.own.raise_alert("disk", "it is full", {})
        await switch.own.alert_told("disk", delivered=True)
        await switch.watch(300)
        assert switch.said == []
        assert await switch.states() == {"service:web": OPEN, "disk": TOLD}
        await switch.own.close()

    play(story)


STUCK = Alarm(case=AlarmKind.stuck, text="It does not end.", well="It ended.")
GAVE_UP = Alarm(case=AlarmKind.gave_up, text="Given up; type `becket up --detach`.", well="It stays up.")


def test_what_is_certain_is_told_and_taken_back_although_the_journal_cannot_be_read() -> None:
    async def story(stage: Stage) -> None:
        switch = Switch(stage)
        await stage.join()
        switch.unreadable = OSError("the disk hangs")
        switch.certain = (STUCK, GAVE_UP)
        await switch.watch(20)
        assert sorted(switch.said) == ["gave_up", "stuck"]
        switch.certain = ()
        await switch.watch(20)
        assert switch.said[2:] == ["well:stuck"], "that the daemon stays up again is not known yet"
        switch.unreadable = None
        await switch.watch(20, daemon=True)
        assert switch.said[3:] == ["well:gave_up"]
        await switch.own.close()

    play(story)
