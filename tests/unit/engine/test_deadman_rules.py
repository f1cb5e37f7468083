"""What the dead-man's switch takes for an alarm, and what for its end, whatever the clock does (L42, L43)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import Alert, WorkerInfo
from becket.kernel.engine.deadman import (
    ALLOWANCE,
    AlarmEnding,
    AlarmKind,
    DeadManSwitch,
    LoopSign,
    RunEnd,
    RunSign,
    ScheduleSign,
    SignsOfLife,
    ending,
    judge,
)
from becket.kernel.engine.schedule import PREFIX
from becket.kernel.store import open_memory

NOW = 10_000.0


def worker(beat: float, role: str = "daemon", dead: bool = False) -> WorkerInfo:
    return WorkerInfo(worker_id="w", pid=1, host="h", role=role, version="0", started_at=0, beat_at=beat, dead=dead)


def schedule(expected: float | None, started: bool = False, grace: float = 60.0) -> ScheduleSign:
    name = f"{PREFIX}nightly:abc"
    return ScheduleSign(loop_id="nightly", name=name, cron="0 2 * * *", expected=expected, grace=grace, started=started)


def ends(*words: str) -> LoopSign:
    """f failed, c completed, h handed over, x handed over and expired; newest first."""
    statuses = {
        "f": RunStatus.failed,
        "c": RunStatus.completed,
        "h": RunStatus.ready_for_handoff,
        "x": RunStatus.ready_for_handoff,
    }
    told = (RunEnd(run_id=f"run_{n}", status=statuses[w], reason="r", unanswered=w == "x") for n, w in enumerate(words))
    return LoopSign(loop_id="heal", ends=tuple(told))


def view(**more: Any) -> SignsOfLife:
    usual: dict[str, Any] = {
        "daemon_expected": True, "ttl": 30.0, "workers": (worker(NOW - 5),), "schedules": (), "loops": (),
    }  # fmt: skip
    return SignsOfLife(**(usual | more))


@pytest.mark.parametrize(
    ("workers", "more", "dead"),
    [
        ((worker(NOW - 5),), {}, False),
        ((worker(NOW - 90),), {}, False),
        ((worker(NOW - 91),), {}, True),
        ((), {}, True),
        ((worker(NOW - 5, role="run"),), {}, True),
        ((worker(NOW - 5, dead=True),), {}, True),
        ((worker(NOW - 500), worker(NOW - 1)), {}, False),
        ((worker(NOW - 500),), {"daemon_expected": False}, False),
        ((worker(NOW - 500),), {"watching_since": NOW - 60}, False),
        ((worker(NOW - 500),), {"watching_since": NOW - 91}, True),
        ((worker(NOW + 3600),), {}, True),  # from before the clock went back
        ((worker(NOW - 200),), {"ttl": 100.0}, False),
    ],
)
def test_daemon_dead(workers: tuple[WorkerInfo, ...], more: dict[str, Any], dead: bool) -> None:
    alarms = judge(view(workers=workers, **more), NOW)
    assert [alarm.key for alarm in alarms] == (["daemon_dead"] if dead else [])
    assert all("becket up" in alarm.text for alarm in alarms)


LATE = 60.0 + ALLOWANCE


@pytest.mark.parametrize(
    ("sign", "more", "silent"),
    [
        (schedule(NOW + 60), {}, False),
        (schedule(NOW - LATE), {}, False),
        (schedule(NOW - LATE - 1), {}, True),
        (schedule(NOW - LATE - 1, grace=120), {}, False),
        (schedule(NOW - LATE - 1, started=True), {}, False),
        (schedule(NOW - LATE - 1), {"watching_since": NOW - 100}, False),
        (schedule(NOW - LATE - 1), {"daemon_expected": False}, False),
        (schedule(None), {"watching_since": NOW - LATE}, False),
        (schedule(None), {"watching_since": NOW - LATE - 1}, True),
    ],
)
def test_schedule_silent(sign: ScheduleSign, more: dict[str, Any], silent: bool) -> None:
    alarms = judge(view(schedules=(sign,), **more), NOW)
    assert [alarm.key for alarm in alarms] == (["schedule_silent:nightly:abc"] if silent else [])
    assert all("becket run nightly" in alarm.text for alarm in alarms)


def at_work(lease_until: float) -> RunSign:
    return RunSign(run_id="run_a", loop_id="heal", subject="main@abc", lease_until=lease_until)


@pytest.mark.parametrize(
    ("lease_until", "more", "stuck"),
    [
        (NOW + 30, {}, False),
        (NOW - 30, {}, False),
        (NOW - 31, {}, True),
        (NOW - 31, {"daemon_expected": False}, True),
        (NOW - 31, {"watching_since": NOW - 20}, False),  # a suspended machine
        (NOW - 31, {"ttl": 100.0}, False),
        (NOW + 90, {}, False),
        (NOW + 91, {}, True),  # from before the clock went back
    ],
)
def test_run_stuck(lease_until: float, more: dict[str, Any], stuck: bool) -> None:
    alarms = judge(view(at_work=(at_work(lease_until),), **more), NOW)
    assert [alarm.key for alarm in alarms] == (["run_stuck:run_a"] if stuck else [])
    assert all("becket runs cancel run_a" in alarm.text for alarm in alarms)


def test_a_dead_daemon_is_one_alarm_and_not_one_per_schedule_or_run() -> None:
    signs = {"schedules": (schedule(0),), "loops": (ends("f", "f", "f"),), "at_work": (at_work(0),)}
    found = judge(view(workers=(), **signs), NOW)
    assert [alarm.case for alarm in found] == [AlarmKind.daemon_dead, AlarmKind.loop_failing]


@pytest.mark.parametrize(
    ("words", "failing"),
    [
        ("fff", True),
        ("ff", False),
        ("ffc", False),
        ("cff", False),
        ("fffc", True),
        ("hhh", False),
        ("ffh", False),
        ("xxx", True),
        ("fxf", True),
        ("xxh", False),
        ("", False),
    ],
)
def test_loop_failing(words: str, failing: bool) -> None:
    alarms = judge(view(loops=(ends(*words),)), NOW)
    assert [alarm.key for alarm in alarms] == (["loop_failing:heal"] if failing else [])
    assert all("becket runs show run_0" in alarm.text for alarm in alarms)


SILENT = "schedule_silent:nightly:abc"


@pytest.mark.parametrize(
    ("key", "more", "expected"),
    [
        ("daemon_dead", {}, AlarmEnding.well),
        ("daemon_dead", {"workers": (), "watching_since": NOW - 10}, AlarmEnding.unsure),
        ("daemon_dead", {"workers": (), "daemon_expected": False}, AlarmEnding.moot),
        (SILENT, {"schedules": (schedule(NOW + 5),)}, AlarmEnding.well),
        (SILENT, {"schedules": (schedule(NOW + 5),), "workers": ()}, AlarmEnding.unsure),
        (SILENT, {"schedules": (schedule(NOW - LATE - 1),), "watching_since": NOW - 10}, AlarmEnding.unsure),
        (SILENT, {"schedules": (schedule(NOW + 5),), "daemon_expected": False}, AlarmEnding.moot),
        (SILENT, {}, AlarmEnding.moot),
        ("loop_failing:heal", {"loops": (ends("c", "f", "f"),)}, AlarmEnding.well),
        ("loop_failing:heal", {}, AlarmEnding.moot),
        ("run_stuck:run_a", {"at_work": (at_work(NOW + 30),)}, AlarmEnding.well),
        ("run_stuck:run_a", {"at_work": (at_work(NOW - 31),)}, AlarmEnding.unsure),
        ("run_stuck:run_a", {"at_work": (at_work(NOW - 31),), "workers": ()}, AlarmEnding.unsure),
        ("run_stuck:run_a", {}, AlarmEnding.moot),
        ("blind", {}, AlarmEnding.well),
        ("gave_up", {}, AlarmEnding.well),
        ("gave_up", {"daemon_gone": True}, AlarmEnding.unsure),
        ("gave_up", {"daemon_expected": False}, AlarmEnding.moot),
    ],
)
def test_only_a_sign_of_life_makes_well(key: str, more: dict[str, Any], expected: AlarmEnding) -> None:
    assert ending(view(**more), NOW, key) is expected


def test_what_is_known_of_a_daemon_that_does_not_work_is_said_instead_of_the_usual_advice() -> None:
    (alarm,) = judge(view(workers=(), daemon_why="It waits for pid 12."), NOW)
    assert alarm.text.endswith("until it is back. It waits for pid 12.")


TODAY = 1_800_000_000.0


class Leaping:
    """A healthy or a dead daemon with a run, under a switch whose wall clock is set and whose own time is not."""

    def __init__(self) -> None:
        self.wall, self.worked, self.beat_at = TODAY, 0.0, TODAY
        self.said: list[str] = []
        self.unwritable = False
        self.leap = 0.0  # happens in the middle of a look
        own = open_memory(lambda: self.wall)
        self.deadman = DeadManSwitch(self.read, own, self.tell, lambda: self.wall, worked=lambda: self.worked)

    async def read(self) -> SignsOfLife:
        self.wall, self.leap = self.wall + self.leap, 0.0
        signs = {"at_work": (at_work(self.beat_at + 30),), "schedules": (schedule(TODAY + 600),)}
        return view(workers=(worker(self.beat_at),), unwritable=self.unwritable, **signs)

    async def tell(self, alert: Alert) -> bool:
        self.said.append(alert.key)
        return True

    async def watch(self, seconds: float, *, beats: bool = True) -> None:
        for second in range(0, int(seconds), 2):
            self.wall, self.worked = self.wall + 2, self.worked + 2
            if beats and second % 10 == 8:
                self.beat_at = self.wall
            await self.deadman.tick()


@pytest.mark.parametrize("amid", [False, True])
@pytest.mark.parametrize("leap", [-77 * 3600.0, 48 * 3600.0, 3 * 86400.0])
def test_a_clock_that_is_set_makes_nobody_silent(leap: float, amid: bool) -> None:
    """The rows are by the old time until the daemon's next beat; and the clock may be set in the middle of a look."""

    async def story(stage: Leaping) -> None:
        await stage.watch(60)
        stage.leap, stage.wall = (leap, stage.wall) if amid else (0.0, stage.wall + leap)
        await stage.watch(60)

    stage = Leaping()
    asyncio.run(story(stage))
    assert stage.said == []


@pytest.mark.parametrize("leap", [-77 * 3600.0, 48 * 3600.0])
def test_a_daemon_that_dies_is_told_of_whatever_the_clock_does(leap: float) -> None:
    async def story(stage: Leaping) -> None:
        await stage.watch(60)
        await stage.watch(40, beats=False)
        stage.wall += leap
        await stage.watch(100, beats=False)

    stage = Leaping()
    asyncio.run(story(stage))
    assert "daemon_dead" in stage.said


def test_nobody_is_silent_while_the_journal_cannot_be_written_nor_right_after() -> None:
    async def story(stage: Leaping) -> None:
        await stage.watch(60)
        stage.unwritable = True
        await stage.watch(600, beats=False)
        stage.unwritable = False
        await stage.watch(30, beats=False)
        assert stage.said == []
        await stage.watch(120, beats=False)

    stage = Leaping()
    asyncio.run(story(stage))
    assert stage.said == ["run_stuck:run_a", "daemon_dead"]
