"""The dead man's switch: a second process that notices what no longer shows a heartbeat (L43).

The rules are pure. Alarms live in a store of the switch's own and are told until a delivery succeeds (L42).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import Field

from becket.kernel.contract.base import Json, Record, local_time
from becket.kernel.contract.errors import StoreDamaged
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.loop import Loops
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.spec import ScheduleTrigger
from becket.kernel.contract.store import Alert, AlertState, RunFilter, Store, WorkerInfo
from becket.kernel.engine.schedule import PREFIX, BadSchedule, ScheduleMark, fire_time, loop_of, mark_of, plans

TTL = 30.0
BEATS_MISSED = 3
ALLOWANCE = 60.0
"""How much later than its grace a schedule may fire before that counts as silence."""
STRIKES = 3
"""So many failures in a row, and nothing else, make a loop a failing one."""
FIRST_RETRY = 60.0
LAST_RETRY = 3600.0
TELL_WITHIN = 30.0
WELL = "well:"


class AlarmKind(StrEnum):
    daemon_dead = "daemon_dead"
    schedule_silent = "schedule_silent"
    loop_failing = "loop_failing"
    run_stuck = "run_stuck"
    blind = "blind"  # the journal itself cannot be read
    gave_up = "gave_up"  # the daemon is not started again any more
    stuck = "stuck"  # the daemon can neither work nor end
    engine_deaf = "engine_deaf"  # a person's process drives a run and does not move
    services_hang = "services_hang"
    unwritable = "unwritable"  # another process, or a full disk, keeps the journal from being written


CERTAIN = frozenset({AlarmKind.stuck, AlarmKind.engine_deaf, AlarmKind.services_hang, AlarmKind.unwritable})
"""Known from the operating system alone: not raised means over."""


class Alarm(Record):
    """One thing that is wrong. The key stays the same as long as it is the same trouble."""

    case: AlarmKind
    about: str = ""
    text: str
    well: str  # what to say when it is over
    data: dict[str, Json] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.case}:{self.about}" if self.about else self.case.value


class ScheduleSign(Record):
    """One schedule: its oldest fire that nobody dealt with, or None if nobody ever began with it."""

    loop_id: str
    name: str  # of its cursor
    cron: str
    expected: float | None
    grace: float
    started: bool = False  # that fire has its run, whatever the cursor says


class RunEnd(Record):
    run_id: str
    status: RunStatus
    reason: str
    unanswered: bool = False  # its handoff expired and nobody took it


class LoopSign(Record):
    """How a loop's last runs ended, newest first; dry runs and cancelled ones say nothing and are left out."""

    loop_id: str
    ends: tuple[RunEnd, ...]


class RunSign(Record):
    """A run that is at work by the rows, and until when its worker has promised to say so again."""

    run_id: str
    loop_id: str
    subject: str
    lease_until: float


class SignsOfLife(Record):
    """Everything the rules look at."""

    daemon_expected: bool
    ttl: float
    workers: tuple[WorkerInfo, ...]
    schedules: tuple[ScheduleSign, ...]
    loops: tuple[LoopSign, ...]
    at_work: tuple[RunSign, ...] = ()
    daemon_gone: bool = False  # the operating system says so: its lock is free
    daemon_why: str = ""  # what else is known of a daemon that does not work, as a sentence
    watching_since: float = 0.0  # silence from before this cannot be judged: a boot, a suspended machine
    unwritable: bool = False  # nobody can give a sign of life by the journal
    silent: dict[str, float] = Field(default_factory=dict)
    """By worker, run and schedule: seconds without a change, as counted by whoever looks. No clock that is set changes
    them; what is not in here is judged by the clock.
    """


def judge(view: SignsOfLife, now: float) -> tuple[Alarm, ...]:
    """What is wrong. A dead daemon explains silent schedules and stuck runs: these are not reported on top of it."""
    excused = view.unwritable and not view.daemon_gone
    dead = _daemon_dead(view, now) if view.daemon_expected and not excused else None
    silent = () if dead or excused or not view.daemon_expected else tuple(_silent(view, now))
    stuck = () if dead or excused else tuple(_stuck(view, now))
    failing = (alarm for sign in view.loops if (alarm := _failing(sign)))
    return (*((dead,) if dead else ()), *silent, *stuck, *failing)


class AlarmEnding(StrEnum):
    """Why an alarm is not raised any more."""

    well = "well"
    moot = "moot"  # what it was about is gone, or nobody expects it to live
    unsure = "unsure"  # it cannot be judged now; the alarm stays


def ending(view: SignsOfLife, now: float, key: str) -> AlarmEnding:
    """Only a sign of life makes well: neither patience after a boot nor a dead daemon's silence is one."""
    case, _, about = key.partition(":")
    without_patience = {alarm.key for alarm in judge(view.model_copy(update={"watching_since": 0.0}), now)}
    about_daemon = case in (AlarmKind.daemon_dead, AlarmKind.schedule_silent, AlarmKind.gave_up)
    known = {
        AlarmKind.schedule_silent: {sign.name.removeprefix(PREFIX) for sign in view.schedules},
        AlarmKind.loop_failing: {sign.loop_id for sign in view.loops},
        AlarmKind.run_stuck: {sign.run_id for sign in view.at_work},
    }
    if (about_daemon and not view.daemon_expected) or about not in known.get(AlarmKind(case), {""}):
        return AlarmEnding.moot
    hidden = (about_daemon or case == AlarmKind.run_stuck) and (
        view.unwritable or AlarmKind.daemon_dead in without_patience
    )
    if key in without_patience or hidden:
        return AlarmEnding.unsure
    return AlarmEnding.well


_ADVICE = (
    "The watchdog starts it again; if it does not come back, type `becket up --detach`. `becket doctor` and the "
    "daemon's log say why it stopped."
)


def _daemon_dead(view: SignsOfLife, now: float) -> Alarm | None:
    daemons = [worker for worker in view.workers if worker.role == "daemon"]
    patience = BEATS_MISSED * view.ttl
    # A beat from the future is from before the clock went back, and as good as none.
    alive = any(
        not worker.dead and view.silent.get(worker.worker_id, abs(now - worker.beat_at)) <= patience
        for worker in daemons
    )
    if not view.daemon_gone and (alive or now - view.watching_since <= patience):
        return None
    last = max((worker.beat_at for worker in daemons), default=None)
    seen = f"its last sign of life was at {local_time(last)}" if last is not None else "it gave no sign of life at all"
    return Alarm(
        case=AlarmKind.daemon_dead,
        text=(
            f"Becket's daemon does not work: {seen}. No trigger and no schedule starts anything until it is back. "
            f"{view.daemon_why or _ADVICE}"
        ),
        well="Becket's daemon is well again.",
        data={"last_beat": last, "workers": [worker.worker_id for worker in daemons]},
    )


def _silent(view: SignsOfLife, now: float) -> Iterator[Alarm]:
    for sign in view.schedules:
        late = view.silent.get(sign.name, now - max(sign.expected or 0.0, view.watching_since))
        if late <= sign.grace + ALLOWANCE or sign.started:
            continue
        since = "nobody took it up" if sign.expected is None else f"it was due at {local_time(sign.expected)}"
        yield Alarm(
            case=AlarmKind.schedule_silent,
            about=sign.name.removeprefix(PREFIX),
            text=(
                f"The schedule `{sign.cron}` of {sign.loop_id} is silent: {since} and no run began, although the "
                f"daemon is alive. Look at `becket status` and `becket loops lint {sign.loop_id}`; start it by hand "
                f"with `becket run {sign.loop_id}`."
            ),
            well=f"The schedule `{sign.cron}` of {sign.loop_id} is well again.",
            data={"loop": sign.loop_id, "cron": sign.cron, "expected": sign.expected},
        )


def _stuck(view: SignsOfLife, now: float) -> Iterator[Alarm]:
    """Two lease times after the last sign of life. A lease from far ahead is from before the clock went back."""
    for sign in view.at_work:
        if not _without_worker(view, sign, now):
            continue
        yield Alarm(
            case=AlarmKind.run_stuck,
            about=sign.run_id,
            text=(
                f"{sign.run_id} ({sign.loop_id}, {sign.subject}) is stuck: it counts as at work, but nobody has been "
                f"at work on it since {local_time(sign.lease_until)} and nobody took it over. Runs of its group wait "
                f"behind it. End it with `becket runs cancel {sign.run_id}`, or let the daemon take it over with "
                "`becket down` and `becket up`."
            ),
            well=f"Somebody is at work on {sign.run_id} again.",
            data={"run": sign.run_id, "loop": sign.loop_id, "lease_until": sign.lease_until},
        )


def _without_worker(view: SignsOfLife, sign: RunSign, now: float) -> bool:
    if (silent := view.silent.get(sign.run_id)) is not None:
        return silent > 2 * view.ttl
    if now - max(sign.lease_until, view.watching_since) > view.ttl:
        return True
    patience = BEATS_MISSED * view.ttl
    return sign.lease_until - now > patience and now - view.watching_since > patience


def _failing(sign: LoopSign) -> Alarm | None:
    last = sign.ends[:STRIKES]
    if len(last) < STRIKES or not all(end.status is RunStatus.failed or end.unanswered for end in last):
        return None
    unanswered = sum(end.unanswered for end in last)
    what = f"{STRIKES - unanswered} failed, {unanswered} handed over and never answered" if unanswered else "failed"
    newest = last[0]
    return Alarm(
        case=AlarmKind.loop_failing,
        about=sign.loop_id,
        text=(
            f"{sign.loop_id} is failing: its last {STRIKES} runs {what}; the newest ended with `{newest.reason}`. "
            f"Look at `becket runs show {newest.run_id}`, then `becket runs retry {newest.run_id}`; "
            f"`becket pause {sign.loop_id}` stops it meanwhile."
        ),
        well=f"{sign.loop_id} is well again.",
        data={"loop": sign.loop_id, "runs": [end.run_id for end in last], "reasons": [end.reason for end in last]},
    )


def _blind(error: Exception) -> Alarm:
    return Alarm(
        case=AlarmKind.blind,
        text=(
            f"The watchdog cannot read the journal ({type(error).__name__}: {error}), so nothing is watched. "
            "Run `becket doctor`."
        ),
        well="The watchdog can read the journal again.",
    )


async def signs_of_life(store: Store, loops: Loops, *, daemon_expected: bool = True) -> SignsOfLife:
    """The view as the journal has it now. Only reads."""
    return SignsOfLife(
        daemon_expected=daemon_expected,
        ttl=TTL,
        workers=await store.workers(),
        schedules=await _schedule_signs(store, loops),
        loops=tuple([await _loop_sign(store, loop.spec.loop_id) for loop in loops.all()]),
        at_work=await _run_signs(store),
    )


async def _schedule_signs(store: Store, loops: Loops) -> tuple[ScheduleSign, ...]:
    """From the cursors, so that a loop whose file broke is missed too, and from the loops nobody took up."""
    now, planned, signs = await store.now(), plans(loops), []
    for cursor in await store.cursors(PREFIX):
        plan, mark = planned.pop(cursor.name, None), mark_of(cursor)
        if mark is not None:
            trigger = plan.trigger if plan else ScheduleTrigger(cron=mark.cron, tz=mark.tz)
            expected = _expected(mark)
            signs.append(
                ScheduleSign(
                    loop_id=loop_of(cursor), name=cursor.name, cron=mark.cron, expected=expected, grace=trigger.grace,
                    started=expected is not None and expected < now and await _has_run(store, loop_of(cursor), mark),
                )
            )  # fmt: skip
    for name, plan in planned.items():
        loop_id, trigger = plan.loop.spec.loop_id, plan.trigger
        signs.append(ScheduleSign(loop_id=loop_id, name=name, cron=trigger.cron, expected=None, grace=trigger.grace))
    return tuple(signs)


def _expected(mark: ScheduleMark) -> float | None:
    try:
        return mark.next
    except BadSchedule:
        return None


async def _has_run(store: Store, loop_id: str, mark: ScheduleMark) -> bool:
    time_of_fire = fire_time(mark.next, mark.tz)
    since = RunFilter(loop_id=loop_id, since=mark.next, limit=50, oldest_first=True)
    return any(run.subject.fields.get("time") == time_of_fire for run in await store.list_runs(since))


async def _run_signs(store: Store) -> tuple[RunSign, ...]:
    running = await store.list_runs(RunFilter(statuses=(RunStatus.running,), limit=None))
    return tuple(
        RunSign(
            run_id=run.run_id, loop_id=run.loop_id, subject=run.subject.name, lease_until=run.lease_until or 0.0
        )
        for run in running
    )  # fmt: skip


async def _loop_sign(store: Store, loop_id: str) -> LoopSign:
    telling = (RunStatus.completed, RunStatus.ready_for_handoff, RunStatus.failed)
    found = await store.list_runs(RunFilter(loop_id=loop_id, statuses=telling, limit=4 * STRIKES))
    newest = sorted((run for run in found if not run.dry_run), key=lambda run: run.ended_at or 0.0, reverse=True)
    return LoopSign(loop_id=loop_id, ends=tuple([await _run_end(store, run) for run in newest[:STRIKES]]))


async def _run_end(store: Store, run: Run) -> RunEnd:
    handed_over = run.status is RunStatus.ready_for_handoff
    unanswered = handed_over and bool(await store.handoffs((HandoffState.expired,), run.run_id))
    return RunEnd(run_id=run.run_id, status=run.status, reason=run.reason, unanswered=unanswered)


Read = Callable[[], Awaitable[SignsOfLife]]
Tell = Callable[[Alert], Awaitable[bool]]
"""Deliver an alert; whether it was delivered. May be called again with the same alert."""


class DeadManSwitch:
    """`tick` is called every few seconds by the watchdog: judge, raise, tell, and say when it is over.

    An alarm is told until a delivery succeeds, then not again until it is over. The end is told once, and only of
    what was told. An alarm that ends before anybody could be told is told all the same (L42).
    """

    def __init__(
        self,
        read: Read,
        own: Store,
        tell: Tell,
        clock: Callable[[], float] = time.time,
        tell_within: float = TELL_WITHIN,
        certain: Callable[[], tuple[Alarm, ...]] = lambda: (),
        worked: Callable[[], float] | None = None,
    ) -> None:
        self._read = read
        self._own = own
        self._tell = tell
        self._clock = clock
        self._tell_within = tell_within
        self._certain = certain
        self._worked = worked
        self._watch = _Watch()
        self._signs = _Signs()
        self._failed: dict[str, _Failed] = {}

    async def tick(self) -> tuple[Alarm, ...]:
        now = self._clock()
        try:
            self._watch.look(now)
            view, alarms = await self._judged(now)
            alarms |= {alarm.key: alarm for alarm in self._certain()}
            await self._raise(alarms)
            await self._withdraw(view, alarms, now)
            await self._tell_open(now)
        finally:
            self._watch.looked_at = self._clock()
        return tuple(alarms.values())

    async def _judged(self, now: float) -> tuple[SignsOfLife | None, dict[str, Alarm]]:
        """What was seen, and the alarms by key. Where nothing could be seen, nothing is known to be well."""
        try:
            view = await self._read()
        except Exception as error:
            alarm = _blind(error)
            for_long = self._watch.blind_for(now) > BEATS_MISSED * TTL
            return None, {alarm.key: alarm} if for_long or isinstance(error, StoreDamaged) else {}
        self._watch.blind_since = None
        seen = view.model_copy(update={"watching_since": max(view.watching_since, self._watch.since)})
        if self._worked is not None:
            seen = seen.model_copy(update={"silent": self._signs.silent(view, now, self._worked())})
        return seen, {alarm.key: alarm for alarm in judge(seen, now)}

    async def _raise(self, alarms: dict[str, Alarm]) -> None:
        known = {alert.key for alert in await self._own.alerts((AlertState.open, AlertState.told))}
        for key, alarm in alarms.items():
            if key not in known:
                if WELL + key in known:
                    await self._own.close_alert(WELL + key)
                await self._own.raise_alert(key, alarm.text, {**alarm.data, "well": alarm.well})

    async def _withdraw(self, view: SignsOfLife | None, alarms: dict[str, Alarm], now: float) -> None:
        for alert in await self._own.alerts((AlertState.told,)):
            if not _is_alarm(alert.key) or alert.key in alarms:
                continue
            how = AlarmEnding.unsure if view is None else ending(view, now, alert.key)
            if AlarmKind(alert.key.partition(":")[0]) in CERTAIN:
                how = AlarmEnding.well
            if how is AlarmEnding.well:
                await self._own.raise_alert(WELL + alert.key, str(alert.data["well"]), {"of": alert.key})
            if how is not AlarmEnding.unsure:
                await self._own.close_alert(alert.key)

    async def _tell_open(self, now: float) -> None:
        for alert in await self._own.alerts((AlertState.open,)):
            failed = self._failed.get(alert.key)
            if not _is_alarm(alert.key.removeprefix(WELL)) or (failed is not None and failed.holds(now)):
                continue
            delivered = await self._delivered(alert)
            await self._own.alert_told(alert.key, delivered)
            if not delivered:
                self._failed[alert.key] = _Failed((failed.times if failed else 0) + 1, now)
                continue
            self._failed.pop(alert.key, None)
            if alert.key.startswith(WELL):
                await self._own.close_alert(alert.key)

    async def _delivered(self, alert: Alert) -> bool:
        try:
            async with asyncio.timeout(self._tell_within):
                return await self._tell(alert)
        except Exception:  # however the delivery failed, the alarm stays open
            return False


def _is_alarm(key: str) -> bool:
    return key.partition(":")[0] in set(AlarmKind)


@dataclass(slots=True)
class _Watch:
    """Since when the switch has been looking without a break, by a clock that went steadily forward."""

    since: float = 0.0
    looked_at: float | None = None
    blind_since: float | None = None
    forgiven: bool = False

    def look(self, now: float) -> None:
        if self.looked_at is None or now < self.looked_at:
            self.since = now
        elif now - self.looked_at <= BEATS_MISSED * TTL:
            self.forgiven = False
        elif not self.forgiven:  # a suspended machine; but whoever always comes late must still be able to judge
            self.since, self.forgiven = now, True

    def blind_for(self, now: float) -> float:
        if self.blind_since is None or self.blind_since > now:
            self.blind_since = now
        return now - max(self.blind_since, self.since)


@dataclass(slots=True)
class _Signs:
    """When each sign of life was seen to change last, by a clock that nobody sets.

    What the first look found may be a dead one's, and says nothing until it changes.
    """

    _seen: dict[str, tuple[float | None, float]] = field(default_factory=dict)
    _found: set[str] | None = None

    def silent(self, view: SignsOfLife, now: float, worked: float) -> dict[str, float]:
        shown: dict[str, float | None] = {worker.worker_id: worker.beat_at for worker in view.workers}
        shown |= {run.run_id: run.lease_until for run in view.at_work}
        shown |= {one.name: one.expected for one in view.schedules if one.expected is None or one.expected <= now}
        before, self._seen = self._seen, {}
        self._found = set(shown) if self._found is None else self._found
        for name, sign in shown.items():
            last, since = before.get(name, (sign, worked))
            if last != sign:
                self._found.discard(name)
            self._seen[name] = (sign, worked if last != sign or view.unwritable else since)
        not_due = {one.name: 0.0 for one in view.schedules if one.name not in shown}
        counted = {name: worked - since for name, (_, since) in self._seen.items() if name not in self._found}
        return counted | not_due


@dataclass(frozen=True, slots=True)
class _Failed:
    """Deliveries that failed in a row. The first retry is at the next tick, the later ones back off."""

    times: int
    at: float

    def holds(self, now: float) -> bool:
        wait = 0.0 if self.times < 2 else min(LAST_RETRY, FIRST_RETRY * float(2 ** min(self.times - 2, 10)))
        return 0 <= now - self.at < wait
