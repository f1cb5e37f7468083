"""Makes this process the engine of its repository, or the driver of a run of its own."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from becket.app.account import Account
from becket.app.compose import App
from becket.app.engine_lock import check_journal, watch_engine_lock
from becket.app.errands import PartChore, PartResident, chores, do_once
from becket.app.heartbeat import LockHeartbeat, told_when_stopped
from becket.app.neighbours import OtherWorkers, OwnRuns, driver_lock, sweep_children
from becket.app.parts import installed, wait_for
from becket.app.record.report.write import Reports
from becket.app.record.settling import Settlements, branch_moved, settle
from becket.app.state import Lock, holder
from becket.app.tree_watch import TREE_EVERY, TreeWatch
from becket.app.unrecorded import restored_lately, tell_unrecorded
from becket.kernel.contract.base import local_time
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.handoff import UNSETTLED
from becket.kernel.contract.run import ENDED
from becket.kernel.contract.store import Cursor, Store
from becket.kernel.dispatch.bell import Bell
from becket.kernel.dispatch.embedded import IDLE, Chore, DispatcherContext, EmbeddedDispatcher, Resident

log = logging.getLogger("becket.serve")

RETENTION_EVERY = 3600.0
BACKUP_LOOK = 600.0
CLOCK_ALERT = "clock:leapt"
RETAINED = "retention:until"
MOST_AGED = 86_400.0
SWEEP_EVERY = 30.0
DRIVER_LOOKS = 3.0
"""What a driver waits for may be in the hands of a process that dies, which rings no bell."""

recovered = CrashPoint("serve.recovered", "boot has swept children and folders; nothing is started yet")
locked = CrashPoint("serve.locked", "the engine lock is held; the worker has not joined")

_RUN_OF = re.compile(r"[-.]")
"""A rescue is named after its run, with the attempt or a number behind it."""

Until = Callable[[], Awaitable[bool]]
Ready = Callable[[], None]
"""Called when what an earlier engine left is in order, which may take its time."""


async def serve(
    app: App, role: str, until: Until | None = None, stop: asyncio.Event | None = None, ready: Ready = lambda: None
) -> bool:
    """Be the engine until `until` holds or `stop` is set. False at once if another process is it."""
    with Lock(app.state.engine_lock) as lock:
        if not lock.acquire():
            return False
        locked()
        bell = Bell(app.state.bell)
        try:
            await _begin(app, EngineRole(role, until, stop, bell=bell), lock, ready)
        finally:
            bell.close()
    return True


async def serve_own(app: App, own: OwnRuns, until: Until, tell: Chore) -> bool:
    """Move these runs and nothing else until `until` holds. False at once if there is an engine: it moves them."""
    path = driver_lock(app.state, app.worker_id)
    with Lock(path, own.asked) as lock:
        try:
            # Whoever wants to be alone takes the engine's lock first, and looks for drivers then.
            if not lock.acquire() or holder(app.state.engine_lock) is not None:
                return False
            await _begin(app, EngineRole("run", until, None, own=own, tell=tell), lock, lambda: None)
        finally:
            path.unlink(missing_ok=True)
    return True


@dataclass(frozen=True, slots=True)
class EngineRole:
    """What this process is to do: move everything, or its own runs."""

    role: str
    until: Until | None
    stop: asyncio.Event | None
    bell: Bell | None = None
    own: OwnRuns | None = None
    tell: Chore | None = None

    def concerns(self, run_id: str) -> bool:
        return self.own is None or self.own.has(run_id)


async def _begin(app: App, part: EngineRole, lock: Lock, ready: Ready) -> None:
    await follow_clock(app.store)  # from here on no leap passes unseen, however long it takes to begin
    await check_journal(app)
    pulse = LockHeartbeat(lock)

    def alive() -> None:
        pulse.begin()
        ready()

    try:
        with told_when_stopped(part.role):
            await _serve(app, part, lock, alive)
    finally:
        pulse.end()


async def _serve(app: App, part: EngineRole, lock: Lock, ready: Ready) -> None:
    looks: list[Chore] = [
        partial(follow_clock, app.store),
        partial(app.settings.watch, app.store),
        OtherWorkers(app).look,
        Reports(app, part.concerns).look,
        Settlements(app).look,
        ThrottledChore(TreeWatch(app, part.concerns).look, TREE_EVERY, app.store.now),
        partial(app.triggers.follow, part.concerns),
        Deliveries(app, part.concerns).look,
    ]
    if part.tell is not None:
        looks.append(part.tell)
    residents: list[Resident] = []
    of_parts: list[PartChore] = []
    if part.role == "daemon":
        from becket.app.backups import keep_backup
        from becket.app.containment import Containment

        looks += [
            Containment(app).look,
            app.triggers.tick,
            app.scheduler.tick,
            ThrottledChore(FolderSweep(app).look, SWEEP_EVERY, app.store.now),
            ThrottledChore(partial(retain, app), RETENTION_EVERY, app.store.now),
            ThrottledChore(partial(keep_backup, app), BACKUP_LOOK, app.store.now),
        ]
        for brought, chore in chores():
            of_parts.append(PartChore(app, brought, chore.target))
            looks.append(ThrottledChore(of_parts[-1], chore.every, app.store.now))
        residents += [
            partial(watch_branches, app),
            *(PartResident(app, brought, each) for brought in installed() for each in brought.residents),
        ]
        await app.scheduler.sync()
        await tell_unrecorded(app)
    staff = DispatcherContext(
        engine=Account(app.engine, app.store, partial(settle, app)), store=app.store,
        worker=app.worker(part.role, await app.store.now()), chores=looks, residents=residents,
        recover=partial(_recover, app, ready), alone=False, own=None if part.own is None else part.own.ids,
        idle=IDLE if part.own is None else DRIVER_LOOKS,
    )  # fmt: skip
    dispatcher = EmbeddedDispatcher(staff, part.bell)
    app.kick = dispatcher.kick
    for each in of_parts:
        each.fail = dispatcher.fail
    stopper = asyncio.create_task(_stop_when(part.stop, dispatcher)) if part.stop is not None else None
    keeper = asyncio.create_task(watch_engine_lock(app, lock, dispatcher.fail))

    async def finished() -> bool:
        return part.until is not None and await part.until() and await _nothing_left(app, part, dispatcher)

    try:
        await dispatcher.serve(finished if part.until is not None else None)
        if part.own is not None:
            await do_once(app)
    finally:
        for each in of_parts:
            await each.close()
        if stopper is not None:
            stopper.cancel()
        keeper.cancel()
        await app.triggers.close()
        app.kick = lambda: None


async def _nothing_left(app: App, part: EngineRole, dispatcher: EmbeddedDispatcher) -> bool:
    if part.own is None:
        return await dispatcher.idle()
    # Reports, and what follows a run, come with the look after its end.
    return not dispatcher.busy and not any(part.concerns(run.run_id) for run in await app.store.unfollowed())


async def _stop_when(stop: asyncio.Event, dispatcher: EmbeddedDispatcher) -> None:
    await stop.wait()
    dispatcher.stop()


async def _recover(app: App, ready: Ready) -> None:
    await recover(app)
    ready()


async def recover(app: App) -> None:
    """Boot: no process and no folder of whoever is gone is left behind."""
    others = await OtherWorkers(app).look()
    await sweep_children(app, others)
    for part in installed():
        if part.recover:
            await wait_for(part, part.recover, app)
    await app.store.requeue_lost()
    await FolderSweep(app).look(at_once=not others)
    recovered()


class FolderSweep:
    """Folders of runs that are over: what kept one (a git that failed, a full disk, a kill) may be gone by now.

    One that is seen for the first time may still be cleared by its own run, in another process. Age is no help there: a
    clock that was set back puts the end of a run into the future.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._seen: set[str] = set()

    async def look(self, *, at_once: bool = False) -> None:
        left = await _left_over(self._app)
        for run_id in left if at_once else left & self._seen:
            await self._app.engine.clear_folder(run_id)
        self._seen = left


async def _left_over(app: App) -> set[str]:
    if not app.state.runs.is_dir():
        return set()
    names = {folder.name for folder in app.state.runs.iterdir()} - set(app.engine.at_work)
    return {name for name in names if await _is_over(app, name)}


async def _is_over(app: App, run_id: str) -> bool:
    try:
        return (await app.store.get_run(run_id)).status in ENDED
    except NotFound:
        return True


async def follow_clock(store: Store) -> None:
    """A leap of the clock moves what is due along, and is told."""
    leap = await store.adopt_leap()
    if leap is None:
        return
    log.warning("the clock leapt by %.0f s, the machine slept for %.0f s", leap.jump, leap.slept)
    if leap.jump:
        text = (
            f"The clock jumped by {leap.jump / 3600:+.2f} h at {local_time(leap.at)}. "
            "Deadlines, waits and approvals of open runs were moved along; schedules go by the new time. "
            "Set the machine's clock right if this is not right (`timedatectl`)."
        )
        await store.close_alert(CLOCK_ALERT)  # one that was told must not keep this one quiet
        await store.raise_alert(CLOCK_ALERT, text, {"jump": leap.jump, "slept": leap.slept, "at": leap.at})


class Deliveries:
    """Deferred notices on their way. Each in a task of its own: an outside that is slow holds up nobody else."""

    def __init__(self, app: App, concerns: Callable[[str], bool] = lambda _: True) -> None:
        self._app = app
        self._concerns = concerns
        self._under_way: dict[str, asyncio.Task[object]] = {}

    async def look(self) -> None:
        for effect in await self._app.store.due_effects():
            if effect.key not in self._under_way and self._concerns(effect.origin.run_id):
                task: asyncio.Task[object] = asyncio.create_task(self._app.door.resume(effect), name=effect.key)
                self._under_way[effect.key] = task
                task.add_done_callback(self._arrived)

    def _arrived(self, task: asyncio.Task[object]) -> None:
        del self._under_way[task.get_name()]
        self._app.kick()  # when it is due next is known only now
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("notice %s: %s", task.get_name(), error)


async def retain(app: App) -> None:
    """Forget what is old and ended; remove content that nobody refers to."""
    now = await app.store.now()
    keep = app.config.retention
    until = await _retained_until(app.store, now)
    app.artifacts.remove(await app.store.forget(until - keep.runs, until - keep.artifacts))
    referred = await app.store.referred()
    orphans = [digest for digest in app.artifacts.digests() - referred if app.artifacts.older_than(digest, now - 86400)]
    app.artifacts.remove(orphans)
    await _forget_work(app, until - keep.rescues)


async def _retained_until(store: Store, now: float) -> float:
    """The day by which age is counted: it moves on by one day a sweep at most, so that a clock that was set far ahead
    does not make everything old at once.
    """
    known = next(iter(await store.cursors(RETAINED)), None)
    until = now if known is None else min(now, float(known.value) + MOST_AGED)
    await store.fire(known, Cursor(name=RETAINED, value=repr(until)), ())
    return until


async def _forget_work(app: App, before: float) -> None:
    """Crossings of runs that are over, candidates and rescues that are old, and set-ups that nobody uses."""
    candidates, restored = app.git.candidates(), await restored_lately(app)
    for name in await candidates.kept():
        kind, run_id = name.split("/")[:2]
        if await _is_done_with(app, run_id, None if kind == "crossing" else before, forgotten=not restored):
            await candidates.forget(name)
    for saved in await candidates.rescued():
        if saved.at < before and not await _is_in_hand(app, _RUN_OF.split(saved.name)[0]):
            log.info("the rescue %s (%s) is dropped: `retention.rescues` has passed", saved.name, saved.sha)
            await candidates.forget(f"rescue/{saved.name}")
    await candidates.tidy()


async def _is_done_with(app: App, run_id: str, before: float | None, *, forgotten: bool) -> bool:
    """It ended before that time (None: whenever) and no person has still to look at it.

    One that the journal does not know is `forgotten`, unless the journal is a restored one that never heard of it.
    """
    try:
        run = await app.store.get_run(run_id)
    except NotFound:
        return forgotten
    if run.status not in ENDED or before is None:
        return run.status in ENDED
    return (run.ended_at or 0.0) < before and not await _is_in_hand(app, run_id)


async def _is_in_hand(app: App, run_id: str) -> bool:
    return bool(await app.store.handoffs(UNSETTLED, run_id))


async def watch_branches(app: App) -> None:
    """Tell the commit triggers about every move of the branches they name."""
    branches = app.triggers.branches()
    if not branches:
        await asyncio.Event().wait()
    async for moved in app.git.watch(branches):
        await _told(app, moved)


async def _told(app: App, moved: RefMoved) -> None:
    log.info(
        "%s is at %s%s",
        moved.branch,
        (moved.new or "")[:12] or "nothing",
        f", after {moved.old[:12]}" if moved.old else "",
    )
    await app.triggers.branch_moved(moved)
    await branch_moved(app, moved)
    app.kick()


class ThrottledChore:
    """A chore that is done at most every so often."""

    def __init__(self, chore: Chore, every: float, now: Callable[[], Awaitable[float]]) -> None:
        self._chore, self._every, self._now = chore, every, now
        self._last: float | None = None

    async def __call__(self) -> None:
        now = await self._now()
        if self._last is None or not 0 <= now - self._last < self._every:  # or the clock was set back
            self._last = now
            await self._chore()
