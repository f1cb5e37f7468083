"""When schedules fire, through changing clocks, jumps and crashes (L43)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from trigger_stage import OPEN, TOLD, Book, Killed, Repo, Stage, at, killed_at, play

from becket.kernel.contract.base import canonical, local_time
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.spec import Missed, ScheduleTrigger
from becket.kernel.contract.store import Cursor, RunFilter
from becket.kernel.engine.intake import Intake
from becket.kernel.engine.schedule import PREFIX, BadSchedule, Scheduler, chosen, newest_fires, next_fire
from becket.kernel.store import open_sqlite
from becket.testing.clock import ManualClock
from becket.testing.people import person

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def fires(cron: str, tz: str, after: float, until: float, limit: int) -> tuple[float, ...]:
    """The first ones, asked for one by one."""
    found: list[float] = []
    while len(found) < limit and (after := next_fire(cron, tz, after)) <= until:
        found.append(after)
    return tuple(found)


def shown(times: tuple[float, ...], tz: str) -> list[str]:
    return [datetime.fromtimestamp(time, ZoneInfo(tz)).isoformat(" ", "minutes")[5:] for time in times]


@pytest.mark.parametrize(
    ("cron", "tz", "after", "expected"),
    [
        # Clocks go forward: what was due in the skipped time happens right after it, once.
        ("30 2 * * *", BERLIN, "2026-03-28 12:00", ["03-29 03:00+02:00", "03-30 02:30+02:00"]),
        ("0,20,40 2 * * *", BERLIN, "2026-03-28 12:00", ["03-29 03:00+02:00", "03-30 02:00+02:00"]),
        ("*/20 2 * * *", BERLIN, "2026-03-28 12:00", ["03-29 03:00+02:00", "03-30 02:00+02:00"]),
        ("0 2,3 * * *", BERLIN, "2026-03-28 12:00", ["03-29 03:00+02:00", "03-30 02:00+02:00"]),
        ("15 2 * * *", NEW_YORK, "2026-03-07 12:00", ["03-08 03:00-04:00", "03-09 02:15-04:00"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-03 12:00", ["10-04 02:30+11:00", "10-05 02:15+11:00"]),
        ("0 30 2 * * *", BERLIN, "2026-03-28 12:00", ["03-29 03:00+02:00", "03-30 02:30+02:00"]),
        # Clocks go back: a named time happens the first time only.
        ("30 2 * * *", BERLIN, "2026-10-24 12:00", ["10-25 02:30+02:00", "10-26 02:30+01:00"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31 12:00", ["11-01 01:30-04:00", "11-02 01:30-05:00"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-04 12:00", ["04-05 01:45+11:00", "04-06 01:45+10:30"]),
        # Half an hour of change loses no fire of the day.
        ("0 */6 * * *", LORD_HOWE, "2026-10-04 00:00", ["10-04 06:00+11:00", "10-04 12:00+11:00"]),
        ("0 */6 * * *", LORD_HOWE, "2026-04-05 00:00", ["04-05 06:00+10:30", "04-05 12:00+10:30"]),
        # Every hour means every hour: nothing to make up, and both passes of a repeated hour.
        ("30 * * * *", BERLIN, "2026-03-29 01:00", ["03-29 01:30+01:00", "03-29 03:30+02:00"]),
        ("30 * * * *", BERLIN, "2026-10-25 02:00", ["10-25 02:30+02:00", "10-25 02:30+01:00", "10-25 03:30+01:00"]),
        ("40 * * * *", LORD_HOWE, "2026-04-05 01:00", ["04-05 01:40+11:00", "04-05 01:40+10:30", "04-05 02:40+10:30"]),
        # No clock changes, and rare days.
        ("30 2 * * *", "UTC", "2026-03-28 12:00", ["03-29 02:30+00:00", "03-30 02:30+00:00"]),
        ("0 0 29 2 *", "UTC", "2026-03-01 00:00", ["02-29 00:00+00:00"]),
        ("0 9 L * *", BERLIN, "2026-02-01 00:00", ["02-28 09:00+01:00", "03-31 09:00+02:00"]),
        ("0 9 * * MON#1", BERLIN, "2026-06-01 09:00", ["07-06 09:00+02:00"]),
    ],
)
def test_fires_around_changing_clocks(cron: str, tz: str, after: str, expected: list[str]) -> None:
    start = at(after, tz)
    found = fires(cron, tz, start, start + 5 * 366 * 86400, len(expected))
    assert shown(found, tz) == expected


def test_a_fire_of_the_first_pass_is_past_in_the_second() -> None:
    """Asked at the second 02:30, a daily 02:45 has happened already."""
    assert shown((next_fire("45 2 * * *", BERLIN, at("2026-10-25 02:30", BERLIN, fold=1)),), BERLIN) == [
        "10-26 02:45+01:00"
    ]


def by_looking_at_every_minute(minutes: set[int], hours: set[int], tz: str, after: float, until: float) -> list[float]:
    """Slow and obvious: `*` hours count every real minute, a named time counts once and, if skipped, after the gap."""
    zone, found, every_hour = ZoneInfo(tz), set(), len(hours) == 24
    seen_local: dict[datetime, float] = {}
    previous: datetime | None = None
    start = after - 2 * 86400
    for step in range(int((until - start) // 60) + 1):
        moment = (start // 60) * 60 + step * 60
        local = datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)
        skipped = []
        if previous is not None and local - previous > timedelta(minutes=1):
            count = int((local - previous).total_seconds() // 60)
            skipped = [previous + timedelta(minutes=number) for number in range(1, count)]
        previous = local
        for wall in [local] if every_hour else [*skipped, local]:
            if wall.minute in minutes and wall.hour in hours and (every_hour or wall not in seen_local):
                seen_local[wall] = moment
                found.add(moment)
    return sorted(moment for moment in found if after < moment <= until)


@pytest.mark.parametrize("tz", [BERLIN, NEW_YORK, LORD_HOWE, "UTC", "America/St_Johns", "Africa/Casablanca"])
@pytest.mark.parametrize(
    ("cron", "minutes", "hours"),
    [
        ("*/20 * * * *", {0, 20, 40}, set(range(24))),
        ("45 0-23 * * *", {45}, set(range(24))),
        ("10,50 1-3 * * *", {10, 50}, {1, 2, 3}),
        ("*/15 */2 * * *", {0, 15, 30, 45}, set(range(0, 24, 2))),
    ],
)
def test_fires_equal_a_look_at_every_minute(tz: str, cron: str, minutes: set[int], hours: set[int]) -> None:
    for day in ("2026-02-14", "2026-03-07", "2026-03-21", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24"):
        after = at(f"{day} 07:13", "UTC")
        until = after + 2 * 86400
        assert list(fires(cron, tz, after, until, 1000)) == by_looking_at_every_minute(minutes, hours, tz, after, until)


def test_the_newest_fires_are_the_end_of_all_fires_and_come_fast() -> None:
    after, until = at("2026-03-28 00:00"), at("2026-03-30 00:00")
    everything = fires("*/7 * * * *", BERLIN, after, until, 10_000)
    assert newest_fires("*/7 * * * *", BERLIN, after, until, 50) == everything[-50:]
    assert newest_fires("*/7 * * * *", BERLIN, after, until, 10_000) == everything
    assert len(newest_fires("* * * * *", "UTC", 0, until, 101)) == 101


@pytest.mark.parametrize(
    ("cron", "tz", "words"),
    [
        ("nonsense", "UTC", "not a cron expression"),
        ("61 * * * *", "UTC", "bad minute"),
        ("1#2/3 * * * *", "UTC", "not a cron expression"),
        ("0 0 30 2 *", "UTC", "bad day-of-month"),
        ("0 0 */30 2 MON#5", "UTC", "never fires"),
        ("0 0 * * *", "Nowhere/Atlantis", "no time zone"),
        ("0 0 * * *", "../../etc/passwd", "no time zone"),
        ("0 0 * * *", "America", "no time zone"),
    ],
)
def test_what_cannot_fire_says_so(cron: str, tz: str, words: str) -> None:
    with pytest.raises(BadSchedule, match=words):
        next_fire(cron, tz, 0.0)


@pytest.mark.parametrize(
    ("missed", "expected"),
    [(Missed.skip, (950, 1000)), (Missed.once, (900, 950, 1000)), (Missed.all, (1, 900, 950, 1000))],
)
def test_fires_in_time_always_start_and_missed_ones_by_policy(missed: Missed, expected: tuple[float, ...]) -> None:
    trigger = ScheduleTrigger(cron="* * * * *", missed=missed, grace=60)
    assert chosen([1, 900, 950, 1000], 1010, trigger) == expected


def hourly(stage: Stage, loop_id: str = "hourly", **more: object) -> Scheduler:
    stage.loops.put(loop_id, {"schedule": {"cron": "0 * * * *"} | more})
    return Scheduler(stage.store, stage.loops, stage.intake)


def test_a_new_schedule_begins_with_its_next_fire() -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage)
        assert await scheduler.tick() == ()
        (cursor,) = await stage.store.cursors(PREFIX)
        assert cursor.due_at == at("2026-06-01 13:00")
        assert await stage.store.next_due() == at("2026-06-01 13:00")
        stage.clock.set(at("2026-06-01 13:00"))
        (started,) = await scheduler.tick()
        assert started.created
        assert started.run is not None
        assert started.run.trigger == "schedule"
        assert await stage.fields("hourly", "time") == ["2026-06-01T13:00:00+00:00"]
        assert await stage.fields("hourly", "cron") == ["0 * * * *"]
        assert await scheduler.tick() == ()
        assert await stage.store.next_due() == at("2026-06-01 14:00")

    play(story, "2026-06-01 12:10")


def test_a_changed_cron_begins_anew_and_a_removed_loop_is_forgotten() -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage)
        await scheduler.tick()
        stage.clock.advance(5 * 3600)
        stage.loops.put("hourly", {"schedule": {"cron": "30 * * * *", "missed": "all"}})
        assert await scheduler.tick() == ()
        (cursor,) = await stage.store.cursors(PREFIX)
        assert cursor.due_at == at("2026-06-01 17:30")
        stage.loops.remove("hourly")
        assert await scheduler.tick() == ()
        assert await stage.store.cursors(PREFIX) == ()

    play(story)


def test_a_changed_policy_keeps_the_place() -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed="skip")
        await scheduler.tick()
        stage.clock.advance(3 * 3600 + 600)
        hourly(stage, missed="all")
        assert len(await scheduler.tick()) == 3

    play(story)


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("skip", []), ("once", ["16:00"]), ("all", ["13:00", "14:00", "15:00", "16:00"])],
)
def test_missed_fires_follow_the_policy(missed: str, expected: list[str]) -> None:
    """L43: a suspended laptop, a daemon that was down and a clock that jumps ahead are the same thing."""

    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed=missed)
        await scheduler.tick()
        stage.clock.set(at("2026-06-01 16:10"))
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)  # another process after the gap
        await scheduler.tick()
        assert [time[11:16] for time in await stage.fields("hourly", "time")] == expected
        assert await scheduler.tick() == ()
        stage.clock.set(at("2026-06-01 17:00"))
        (started,) = await scheduler.tick()
        assert started.created

    play(story)


@pytest.mark.parametrize(("missed", "expected"), [("skip", 1), ("once", 2), ("all", 4)])
def test_a_fire_within_its_grace_is_in_time(missed: str, expected: int) -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed=missed, grace="60s")
        await scheduler.tick()
        stage.clock.set(at("2026-06-01 16:00:59"))
        assert len(await scheduler.tick()) == expected

    play(story)


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("skip", []),
        ("once", ["2026-03-30T02:30:00+02:00"]),
        ("all", ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
    ],
)
def test_fires_missed_over_a_change_of_clocks(missed: str, expected: list[str]) -> None:
    async def story(stage: Stage) -> None:
        stage.loops.put("nightly", {"schedule": {"cron": "30 2 * * *", "tz": BERLIN, "missed": missed}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.tick()
        stage.clock.set(at("2026-03-30 12:00"))
        await scheduler.tick()
        assert await stage.fields("nightly", "time") == expected

    play(story, "2026-03-27 12:00")


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_the_repeated_hour_has_one_run(missed: str) -> None:
    async def story(stage: Stage) -> None:
        stage.loops.put("nightly", {"schedule": {"cron": "30 2 * * *", "tz": BERLIN, "missed": missed}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        for minute in range(0, 4 * 60, 5):
            stage.clock.set(at("2026-10-24 23:00") + minute * 60)
            await scheduler.tick()
        assert await stage.fields("nightly", "time") == ["2026-10-25T02:30:00+02:00"]

    play(story, "2026-10-24 23:00")


def test_more_missed_fires_than_bearable_are_cut_and_said() -> None:
    """L44: `all` is bounded, and what is left out is not left out silently."""

    async def story(stage: Stage) -> None:
        stage.loops.put("eager", {"schedule": {"cron": "* * * * *", "missed": "all"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.tick()
        stage.clock.advance(30 * 86400)
        assert len(await scheduler.tick()) == 100
        newest = (await stage.fields("eager", "time"))[-1]
        assert newest == datetime.fromtimestamp(stage.clock(), ZoneInfo("UTC")).isoformat()
        alert = (await stage.alerts())["missed:eager"]
        assert f"since {local_time(datetime(2026, 6, 1, 12, 1, tzinfo=ZoneInfo('UTC')).timestamp())}" in alert.text
        stage.clock.advance(60)
        await scheduler.tick()
        assert "missed:eager" in await stage.alerts(OPEN), "nobody was told yet"
        await stage.store.alert_told("missed:eager", delivered=True)
        stage.clock.advance(60)
        await scheduler.tick()
        assert "missed:eager" not in await stage.alerts()

    play(story)


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_clock_that_goes_back_neither_repeats_nor_stalls(missed: str) -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed=missed)
        for hour in (12, 13, 14, 15):
            stage.clock.set(at(f"2026-06-01 {hour}:00:05"))
            await scheduler.tick()
        stage.clock.set(at("2026-06-01 12:30"))
        assert [started.created for started in await scheduler.tick()] == []
        created = []
        for hour in (13, 14, 15, 16):
            stage.clock.set(at(f"2026-06-01 {hour}:00:05"))
            created += [started.created for started in await scheduler.tick()]
        assert created == [False, False, False, True]
        times = await stage.fields("hourly", "time")
        assert [time[11:13] for time in times] == ["13", "14", "15", "16"]

    play(story)


@pytest.mark.parametrize(("missed", "during"), [("skip", 0), ("once", 1), ("all", 100)])
def test_a_visit_to_the_far_future_does_not_stop_the_schedule(missed: str, during: int) -> None:
    """A wrong clock for a moment: ten years ahead and back again."""

    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed=missed)
        await scheduler.tick()
        stage.clock.set(at("2036-06-01 12:30"))
        assert len(await scheduler.tick()) == during
        stage.clock.set(at("2026-06-01 12:30"))
        assert await scheduler.tick() == ()
        assert await stage.store.next_due() == at("2026-06-01 13:00")
        stage.clock.set(at("2026-06-01 13:00"))
        (started,) = await scheduler.tick()
        assert started.created

    play(story)


@pytest.mark.parametrize("scope", ["all", "loop:hourly"])
def test_a_paused_loop_piles_nothing_up(scope: str) -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed="all")
        await scheduler.tick()
        await stage.store.set_control(scope, True, person("me"), "")
        stage.clock.advance(5 * 3600)
        assert await scheduler.tick() == ()
        assert (await stage.store.next_due() or 0) > stage.clock()
        await stage.store.set_control(scope, False, person("me"), "")
        assert await scheduler.tick() == ()
        stage.clock.advance(3600)
        assert len(await scheduler.tick()) == 1

    play(story)


def test_one_bad_schedule_stops_no_other_and_is_said() -> None:
    async def story(stage: Stage) -> None:
        stage.loops.put("bad", {"schedule": {"cron": "every now and then"}})
        stage.loops.put("lost", {"schedule": {"cron": "0 * * * *", "tz": "Nowhere/Atlantis"}})
        scheduler = hourly(stage)
        await scheduler.tick()
        stage.clock.advance(3600)
        assert len(await scheduler.tick()) == 1
        alerts = await stage.alerts()
        assert set(alerts) == {"schedule:bad", "schedule:lost"}
        assert "in bad.yaml" in alerts["schedule:bad"].text
        await stage.store.alert_told("schedule:bad", delivered=True)
        stage.loops.put("bad", {"schedule": {"cron": "5 * * * *"}})
        await scheduler.tick()
        assert set(await stage.alerts()) == {"schedule:lost"}

    play(story)


def test_a_zone_that_disappeared_stops_no_other() -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage)
        await scheduler.tick()
        (cursor,) = await stage.store.cursors(PREFIX)
        gone = canonical({"cron": "0 * * * *", "tz": "Nowhere/Atlantis", "handled": stage.clock()})
        await stage.store.fire(cursor, Cursor(name=cursor.name, value=gone, due_at=stage.clock()), ())
        hourly(stage, "other")
        await scheduler.tick()
        stage.clock.advance(3600)
        assert [started.run.loop_id for started in await scheduler.tick() if started.run] == ["other"]
        assert "schedule:hourly" in await stage.alerts()
        assert (await stage.store.next_due() or 0) > stage.clock(), "the engine must not spin"

    play(story)


def test_a_loop_whose_file_is_broken_keeps_its_place() -> None:
    """L43: what it misses meanwhile follows the policy once the file is whole again."""

    async def story(stage: Stage) -> None:
        scheduler = hourly(stage, missed="once")
        await scheduler.tick()
        stage.loops.breaks("hourly")
        stage.clock.advance(2 * 3600 + 600)
        assert await scheduler.tick() == ()
        assert (await stage.store.next_due() or 0) > stage.clock(), "the engine must not spin"
        assert "it is cut off" in (await stage.alerts())["schedule:hourly"].text
        hourly(stage, missed="once")
        stage.clock.advance(600)
        assert len(await scheduler.tick()) == 1

    play(story)


def test_a_start_that_fails_is_tried_again_and_not_lost() -> None:
    """L42: the alert stays until somebody was told, the fire until it has its run."""

    async def story(stage: Stage) -> None:
        stage.loops.put("needy", {"schedule": {"cron": "0 * * * *"}}, inputs={"who": {"type": "string"}})
        scheduler = hourly(stage)
        await scheduler.tick()
        stage.clock.advance(3600)
        assert [started.run.loop_id for started in await scheduler.tick() if started.run] == ["hourly"]
        assert (await stage.alerts())["start:needy:schedule"].data["loop"] == "needy"
        for _ in range(10):
            due = await stage.store.next_due() or 0
            assert due > stage.clock(), "the engine must not spin"
            stage.clock.set(due)
            await scheduler.tick()
        assert stage.clock() > at("2026-06-01 13:30"), "the tries become rarer"
        assert await stage.runs("needy") == []
        await stage.store.alert_told("start:needy:schedule", delivered=True)
        stage.loops.put(
            "needy", {"schedule": {"cron": "0 * * * *"}}, inputs={"who": {"type": "string", "default": "me"}}
        )
        stage.clock.advance(300)
        await scheduler.tick()
        assert len(await stage.runs("needy")) == 1
        assert "start:needy:schedule" not in await stage.alerts(OPEN, TOLD)

    play(story)


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
@pytest.mark.parametrize(
    ("point", "written"),
    [
        ("schedule.before_fire", False),
        ("store.fire.before_commit", False),
        ("store.fire.after_commit", True),
        ("schedule.after_fire", True),
    ],
)
def test_a_crash_neither_loses_nor_doubles_a_fire(tmp_path: Path, missed: str, point: str, written: bool) -> None:
    async def story() -> None:
        clock, loops = ManualClock(at("2026-06-01 12:10")), Book()
        loops.put("hourly", {"schedule": {"cron": "0 * * * *", "missed": missed}})

        def open_scheduler() -> Scheduler:
            intake = Intake(store, loops, Repo(), "main", lambda: None)  # type: ignore[arg-type]
            return Scheduler(store, loops, intake)

        store = open_sqlite(tmp_path / "journal.db", clock)
        await open_scheduler().tick()
        clock.set(at("2026-06-01 13:00:01"))
        with killed_at(point), pytest.raises(Killed):
            await open_scheduler().tick()
        await store.close()

        store = open_sqlite(tmp_path / "journal.db", clock)
        where = RunFilter(loop_id="hourly")
        assert len(await store.list_runs(where)) == (1 if written else 0)
        clock.advance(20)
        await open_scheduler().tick()
        await open_scheduler().tick()
        (run,) = await store.list_runs(where)
        assert run.status is RunStatus.queued
        assert run.subject.fields["time"] == "2026-06-01T13:00:00+00:00"
        await store.close()

    asyncio.run(story())


def test_two_processes_fire_once() -> None:
    async def story(stage: Stage) -> None:
        first, second = hourly(stage), hourly(stage)
        await first.tick()
        await second.tick()
        stage.clock.advance(3600)
        results = await asyncio.gather(first.tick(), second.tick(), first.tick())
        assert sum(started.created for result in results for started in result) == 1
        assert len(await stage.runs()) == 1

    play(story)


def test_a_cursor_that_was_lost_does_not_repeat_a_fire() -> None:
    """The run's origin is the fire's time, whatever the cursor says."""

    async def story(stage: Stage) -> None:
        scheduler = hourly(stage)
        await scheduler.tick()
        before = await stage.store.cursors(PREFIX)
        stage.clock.advance(3600)
        await scheduler.tick()
        (now,) = await stage.store.cursors(PREFIX)
        await stage.store.fire(now, before[0], ())
        (again,) = await scheduler.tick()
        assert not again.created
        assert len(await stage.runs()) == 1

    play(story)


def test_two_schedules_of_a_loop_that_meet_start_one_run() -> None:
    async def story(stage: Stage) -> None:
        stage.loops.put("both", {"schedule": {"cron": "0 * * * *"}}, {"schedule": {"cron": "0 13 * * *"}})
        scheduler = Scheduler(stage.store, stage.loops, stage.intake)
        await scheduler.tick()
        stage.clock.advance(3600)
        assert [started.created for started in await scheduler.tick()] == [True, False]

    play(story)


def test_a_cursor_nobody_can_read_begins_anew() -> None:
    async def story(stage: Stage) -> None:
        scheduler = hourly(stage)
        await scheduler.tick()
        (cursor,) = await stage.store.cursors(PREFIX)
        await stage.store.fire(cursor, Cursor(name=cursor.name, value="?", due_at=0), ())
        assert await scheduler.tick() == ()
        assert await stage.store.next_due() == at("2026-06-01 13:00")

    play(story)
