"""Schedules: when a cron expression fires, and how a fire becomes exactly one run (L43).

Fires by wall clock and time zone. Where the hours are named (`30 2 * * *`, `0 */6 * * *`), each named time happens
once a day whatever the clocks do: a fire in a skipped hour happens right after it, together with the others it
skipped; a fire in a repeated hour happens the first time only. Where the hour is `*`, time is what counts: nothing
is made up for a skipped hour, and both passes of a repeated one have their fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import ValidationError

from becket.kernel.contract.base import Record, digest_of, local_time
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import BecketError, NotFound, UsageError
from becket.kernel.contract.loop import LoadedLoop, Loops
from becket.kernel.contract.run import NewRun, Started
from becket.kernel.contract.spec import Missed, ScheduleTrigger
from becket.kernel.contract.store import Cursor, Store
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.engine.trigger_alerts import LAST_RETRY, TriggerAlerts, in_words, retry_after

PREFIX = "schedule:"
MOST_AT_ONCE = 100
"""Fires that one tick makes up for at most, the newest ones; the rest is named in an alert."""

before_fire = CrashPoint("schedule.before_fire", "a fire is due and prepared, nothing is written")
after_fire = CrashPoint("schedule.after_fire", "cursor and runs are written, nobody was told of the runs")


class BadSchedule(UsageError):
    """A cron expression or time zone that cannot be read, or that never fires."""


def next_fire(cron: str, tz: str, after: float) -> float:
    """The first fire later than `after`."""
    zone = _zone(tz)
    # cronsim counts local times here, without a zone: with one it loses fires where clocks move by half an hour, and
    # gives a fire of the past when asked in the second pass of a repeated hour.
    local_times = _parsed(cron, _local(after, zone) - _shift_around(after, zone))
    by_wall_clock = local_times.hours != set(range(24))
    best: float | None = None
    for local in local_times:
        instants = _instants(local, zone, by_wall_clock)
        best = min((at for at in (*instants, *_maybe(best)) if at > after), default=None)
        if best is not None and instants and instants[0] > after:
            return best
    raise BadSchedule(f"the schedule `{cron}` never fires; change `cron:` or remove the trigger")


def newest_fires(cron: str, tz: str, after: float, until: float, limit: int) -> tuple[float, ...]:
    """The last `limit` fires later than `after` and not later than `until`, oldest first, without counting through
    years of them.
    """
    window = 60.0
    while True:
        start = max(after, until - window)
        found = deque(_between(cron, tz, start, until), maxlen=limit)
        if len(found) == limit or start == after:
            return tuple(found)
        window *= 2


def _between(cron: str, tz: str, after: float, until: float) -> Iterator[float]:
    while (after := next_fire(cron, tz, after)) <= until:
        yield after


def _parsed(cron: str, local: datetime) -> CronSim:
    try:
        return CronSim(cron, local)
    except (CronSimError, ValueError, TypeError, AssertionError) as error:
        raise BadSchedule(
            f"`{cron}` is not a cron expression ({str(error).lower()}); write minute, hour, day, month, weekday, "
            "like `30 2 * * *`"
        ) from error


def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise BadSchedule(f"there is no time zone {tz!r}; write an IANA name like Europe/Berlin") from error


def _local(at: float, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def _shift_around(at: float, zone: ZoneInfo) -> timedelta:
    """By how much the clocks move near `at`: local times that far back may come again."""
    day = 86_400.0
    offsets = [datetime.fromtimestamp(moment, zone).utcoffset() for moment in (at - day, at, at + day)]
    known = [offset for offset in offsets if offset is not None]
    return max(known) - min(known)


def _instants(local: datetime, zone: ZoneInfo, by_wall_clock: bool) -> tuple[float, ...]:
    """When the local time happens: once, twice, or, if it is skipped, never or right after the gap."""
    real = sorted({at for fold in (0, 1) if (at := _instant(local.replace(fold=fold), zone)) is not None})
    if not by_wall_clock:
        return tuple(real)
    while not real:
        local = local.replace(second=0) + timedelta(minutes=1)
        real = list(_maybe(_instant(local, zone)))
    return (real[0],)


def _instant(local: datetime, zone: ZoneInfo) -> float | None:
    at = local.replace(tzinfo=zone).timestamp()
    return at if _local(at, zone) == local.replace(fold=0) else None


def _maybe(at: float | None) -> tuple[float, ...]:
    return () if at is None else (at,)


class ScheduleMark(Record):
    """What a schedule's cursor holds: every fire up to `handled` was dealt with. It can be read without the loop."""

    cron: str
    tz: str
    handled: float

    def cursor(self, name: str, due_at: float) -> Cursor:
        return Cursor(name=name, value=self.model_dump_json(), due_at=due_at)

    @property
    def next(self) -> float:
        return next_fire(self.cron, self.tz, self.handled)


def mark_of(cursor: Cursor) -> ScheduleMark | None:
    try:
        return ScheduleMark.model_validate_json(cursor.value)
    except ValidationError:
        return None


def fire_time(at: float, tz: str) -> str:
    """How a run's `time` field says when it was due."""
    return datetime.fromtimestamp(at, _zone(tz)).isoformat()


def cursor_name(loop_id: str, trigger: ScheduleTrigger) -> str:
    return f"{PREFIX}{loop_id}:{digest_of([trigger.cron, trigger.tz])[:16]}"


def loop_of(cursor: Cursor) -> str:
    return cursor.name.split(":")[1]


class LoopSchedule(Record):
    """One schedule of one loop as it stands now."""

    loop: LoadedLoop
    trigger: ScheduleTrigger


def plans(loops: Loops) -> dict[str, LoopSchedule]:
    """Every schedule of every loop that loads, by the name of its cursor."""
    return {
        cursor_name(loop.spec.loop_id, trigger.schedule): LoopSchedule(loop=loop, trigger=trigger.schedule)
        for loop in loops.all()
        for trigger in loop.spec.trigger
        if trigger.schedule is not None
    }


def chosen(pending: Sequence[float], now: float, trigger: ScheduleTrigger) -> tuple[float, ...]:
    """Which of the fires that are due start a run: those in time, and of the missed ones what the policy says."""
    late = [at for at in pending if now - at > trigger.grace]
    in_time = pending[len(late) :]
    match trigger.missed:
        case Missed.skip:
            return tuple(in_time)
        case Missed.once:
            return (*late[-1:], *in_time)
        case Missed.all:
            return (*late, *in_time)


class Scheduler:
    """Keeps one cursor per schedule and fires what is due.

    Cursor and runs are one transaction, and the fire's time is the run's origin: a crash, a second process or a clock
    that goes back cannot make two runs of one fire. `due_at` is never left in the past, because the engine sleeps
    until then.
    """

    def __init__(self, store: Store, loops: Loops, intake: Intake) -> None:
        self._store = store
        self._loops = loops
        self._intake = intake
        self._trouble = TriggerAlerts(store)
        self._failures: dict[str, int] = {}
        self._synced: frozenset[str] | None = None  # the schedules, and the files that do not load

    async def sync(self) -> None:
        """Bring the cursors in line with the loops. A new schedule begins now, never in the past."""
        now, planned = await self._store.now(), plans(self._loops)
        cursors = {cursor.name: cursor for cursor in await self._store.cursors(PREFIX)}
        troubled = set()
        for name, plan in planned.items():
            if name not in cursors and not await self._begin(name, plan, now, None):
                troubled.add(plan.loop.spec.loop_id)
        for loop_id in {plan.loop.spec.loop_id for plan in planned.values()} - troubled:
            await self._trouble.over(f"schedule:{loop_id}")
        gone = [name for name, cursor in cursors.items() if name not in planned and await self._is_gone(cursor)]
        if gone:
            await self._store.drop_cursors(gone)
        self._synced = self._seen(planned)

    async def tick(self) -> tuple[Started, ...]:
        """Fire what is due. Called often; a schedule that cannot be fired holds up no other."""
        planned = plans(self._loops)
        if self._synced != self._seen(planned):
            await self.sync()
        now = await self._store.now()
        paused = {control.scope for control in await self._store.controls()}
        started: list[Started] = []
        for cursor in await self._store.cursors(PREFIX):
            plan = planned.get(cursor.name)
            if plan is None:
                await self._keep_waiting(cursor, now)
                continue
            try:
                started += await self._turn(plan, cursor, now, bool(paused & {"all", f"loop:{loop_of(cursor)}"}))
            except BadSchedule as error:  # it was good when it began: the time zone data changed
                await self._does_not_run(plan, error)
                await self._keep_waiting(cursor, now)
        return tuple(started)

    async def _turn(self, plan: LoopSchedule, cursor: Cursor, now: float, paused: bool) -> Sequence[Started]:
        mark = mark_of(cursor)
        if mark is None or mark.handled > now:  # the clock went back: count from now on, past fires keep their runs
            await self._begin(cursor.name, plan, now, cursor)
            return ()
        due = mark.next
        if due > now:
            if cursor.due_at != due:
                await self._store.fire(cursor, mark.cursor(cursor.name, due), ())
            return ()
        if cursor.due_at is not None and now < cursor.due_at <= now + LAST_RETRY:  # it failed a moment ago
            return ()
        return await self._fire(plan, cursor, mark, now, paused)

    async def _fire(
        self, plan: LoopSchedule, cursor: Cursor, mark: ScheduleMark, now: float, paused: bool
    ) -> Sequence[Started]:
        loop_id, trigger = plan.loop.spec.loop_id, plan.trigger
        pending = newest_fires(trigger.cron, trigger.tz, mark.handled, now, MOST_AT_ONCE + 1)
        wanted = () if paused else chosen(pending, now, trigger)
        try:
            runs = [await self._prepared(plan, at) for at in wanted[-MOST_AT_ONCE:]]
        except Exception as error:  # whatever is wrong with one loop, the others' schedules go on
            await self._trouble.not_started(loop_id, "schedule", error, {"due": mark.next, "cron": trigger.cron})
            await self._postpone(cursor, now)
            return ()
        await self._say_what_is_left_out(loop_id, mark, wanted)
        moved = mark.model_copy(update={"handled": pending[-1]})
        before_fire()
        started = await self._store.fire(cursor, moved.cursor(cursor.name, moved.next), runs)
        after_fire()
        self._failures.pop(cursor.name, None)
        if started:
            await self._trouble.started(loop_id, "schedule")
        return started or ()

    async def _prepared(self, plan: LoopSchedule, at: float) -> NewRun:
        loop_id, trigger = plan.loop.spec.loop_id, plan.trigger
        return await self._intake.prepare(
            StartRequest(
                loop_id=loop_id,
                trigger="schedule",
                fields={"time": fire_time(at, trigger.tz), "cron": trigger.cron},
                origin_key=f"schedule:{loop_id}:{datetime.fromtimestamp(at, UTC).isoformat()}",
            )
        )

    async def _say_what_is_left_out(self, loop_id: str, mark: ScheduleMark, wanted: Sequence[float]) -> None:
        key = f"missed:{loop_id}"
        if len(wanted) <= MOST_AT_ONCE:
            await self._trouble.over(key)
            return
        since = local_time(mark.next)
        text = (
            f"{loop_id} missed more than {MOST_AT_ONCE} fires of `{mark.cron}` since {since}; the newest "
            f"{MOST_AT_ONCE} were started, the older ones were left out. Start them by hand where they are needed "
            f"(`becket run {loop_id}`), or set `missed: once`."
        )
        await self._trouble.report(key, text, {"loop": loop_id, "cron": mark.cron, "since": since})

    async def _begin(self, name: str, plan: LoopSchedule, now: float, old: Cursor | None) -> bool:
        mark = ScheduleMark(cron=plan.trigger.cron, tz=plan.trigger.tz, handled=now)
        try:
            due = mark.next
        except BadSchedule as error:
            await self._does_not_run(plan, error)
            return False
        await self._store.fire(old, mark.cursor(name, due), ())
        return True

    async def _does_not_run(self, plan: LoopSchedule, error: BadSchedule) -> None:
        loop_id = plan.loop.spec.loop_id
        text = f"the schedule of {loop_id} does not run: {error} (in {plan.loop.source})"
        await self._trouble.report(f"schedule:{loop_id}", text, {"loop": loop_id, "cron": plan.trigger.cron})

    async def _is_gone(self, cursor: Cursor) -> bool:
        """A loop whose file is broken keeps its place: its fires are missed, not forgotten."""
        loop_id = loop_of(cursor)
        try:
            self._loops.get(loop_id)
        except NotFound:
            return not self._loops.broken()  # it may be in a file of another name
        except BecketError as error:
            text = f"the schedule of {loop_id} does not run: its file is broken\n{in_words(error)}"
            await self._trouble.report(f"schedule:{loop_id}", text, {"loop": loop_id})
            return False
        return True

    def _seen(self, planned: Mapping[str, LoopSchedule]) -> frozenset[str]:
        return frozenset([*planned, *self._loops.broken()])

    async def _keep_waiting(self, cursor: Cursor, now: float) -> None:
        if cursor.due_at is not None and cursor.due_at <= now:
            await self._postpone(cursor, now)

    async def _postpone(self, cursor: Cursor, now: float) -> None:
        failures = self._failures[cursor.name] = self._failures.get(cursor.name, 0) + 1
        await self._store.fire(cursor, cursor.model_copy(update={"due_at": now + retry_after(failures)}), ())
