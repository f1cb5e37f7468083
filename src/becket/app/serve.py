"""Makes this process the engine of its repository, or waits for the one that is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

from becket.adapters.dispatch.bell import Bell, ring
from becket.adapters.dispatch.embedded import Chore, Embedded, Resident, Staff
from becket.app.compose import App
from becket.app.report.write import Reports
from becket.app.state import Lock
from becket.contract.crash import CrashPoint
from becket.contract.errors import NotFound
from becket.contract.git import RefMoved
from becket.contract.run import ENDED, Status
from becket.contract.store import Cursor, RunFilter, Store

log = logging.getLogger("becket.serve")

TAKE_OVER_AFTER = 2.0
"""A client whose run nobody touches for this long tries to become the engine."""

RETENTION_EVERY = 3600.0
CLOCK_ALERT = "clock:leapt"
RETAINED = "retention:until"
MOST_AGED = 86_400.0
SWEEP_EVERY = 60.0

recovered = CrashPoint("serve.recovered", "boot has swept children and folders; nothing is started yet")
locked = CrashPoint("serve.locked", "the engine lock is held; the worker has not joined")

Until = Callable[[], Awaitable[bool]]


async def serve(app: App, role: str, until: Until | None = None, stop: asyncio.Event | None = None) -> bool:
    """Be the engine until `until` holds or `stop` is set. False at once if another process is it."""
    with Lock(app.state.engine_lock) as lock:
        if not lock.acquire():
            return False
        locked()
        bell = Bell(app.state.bell)
        try:
            await _serve(app, role, until, stop, bell)
        finally:
            bell.close()
    return True


async def _serve(app: App, role: str, until: Until | None, stop: asyncio.Event | None, bell: Bell) -> None:
    daemon = role == "daemon"
    chores: list[Chore] = [
        partial(follow_clock, app.store),
        app.watch_config,
        Reports(app).look,
        app.triggers.follow,
        Deliveries(app).look,
    ]
    residents: list[Resident] = []
    if daemon:
        chores += [
            app.triggers.tick,
            app.scheduler.tick,
            Sometimes(partial(retain, app), RETENTION_EVERY, app.store.now),
        ]
        residents += [partial(watch_branches, app), partial(follow_remote, app)]
        await app.scheduler.sync()
    staff = Staff(
        engine=app.engine, store=app.store, worker=app.worker(role, await app.store.now()), chores=chores,
        residents=residents, recover=partial(recover, app), alone=app.config.database is None,
    )  # fmt: skip
    dispatcher = Embedded(staff, bell)
    app.kick = dispatcher.kick
    stopper = asyncio.create_task(_stop_when(stop, dispatcher)) if stop is not None else None

    async def finished() -> bool:
        # Others may count on this process by now: it leaves only when nothing is at work.
        return until is not None and await until() and await dispatcher.idle()

    try:
        await dispatcher.serve(finished if until is not None else None)
    finally:
        if stopper is not None:
            stopper.cancel()
        await app.triggers.close()
        app.kick = lambda: None


async def follow_remote(app: App) -> None:
    from becket.app.remote import watch_remote  # it needs the composition, which this module serves

    await watch_remote(app)


async def _stop_when(stop: asyncio.Event, dispatcher: Embedded) -> None:
    await stop.wait()
    dispatcher.stop()


async def drive(app: App, done: Until, stop: asyncio.Event | None = None) -> None:
    """See to it that `done` comes true: by the running engine, or by becoming it."""
    while not await done():
        if stop is not None and stop.is_set():
            return
        if await serve(app, "run", done, stop):
            if await done() or (stop is not None and stop.is_set()):
                return
            continue
        ring(app.state.bell)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_poll(app, done), TAKE_OVER_AFTER)


async def _poll(app: App, done: Until) -> None:
    while not await done():
        await asyncio.sleep(0.05)  # the other end is another process


async def settled(app: App, run_id: str) -> bool:
    """Has the run ended, or does it wait for somebody?"""
    run = await app.store.get_run(run_id)
    return run.status in ENDED or run.status is Status.waiting or run.held


async def recover(app: App) -> None:
    """Boot: no process and no folder of an earlier engine is left behind."""
    children = await app.store.live_children()
    if children:
        app.processes.sweep(children)
        for child in children:
            await app.store.child_ended(child)
    await app.git.promoter().recover(app.promotions)
    await app.store.requeue_lost()
    await sweep_folders(app)
    recovered()


async def sweep_folders(app: App) -> None:
    if not app.state.runs.is_dir():
        return
    for folder in app.state.runs.iterdir():
        if folder.name not in app.engine.at_work:
            await app.engine.clear_folder(folder.name)


async def follow_clock(store: Store) -> None:
    """A leap of the clock moves what is due along, and is told."""
    leap = await store.adopt_leap()
    if leap is None:
        return
    log.warning("the clock leapt by %.0f s, the machine slept for %.0f s", leap.jump, leap.slept)
    if leap.jump:
        text = (
            f"The clock jumped by {leap.jump / 3600:+.2f} h at {datetime.fromtimestamp(leap.at, UTC).isoformat()}. "
            "Deadlines, waits and approvals of open runs were moved along; schedules go by the new time. "
            "Set the machine's clock right if this is not right (`timedatectl`)."
        )
        await store.close_alert(CLOCK_ALERT)  # one that was told must not keep this one quiet
        await store.raise_alert(CLOCK_ALERT, text, {"jump": leap.jump, "slept": leap.slept, "at": leap.at})


class Deliveries:
    """Deferred notices on their way. Each in a task of its own: an outside that is slow holds up nobody else."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._under_way: dict[str, asyncio.Task[object]] = {}

    async def look(self) -> None:
        for effect in await self._app.store.due_effects():
            if effect.key not in self._under_way:
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
    await _forget_work(app)


async def _retained_until(store: Store, now: float) -> float:
    """The day by which age is counted: it moves on by one day a sweep at most, so that a clock that was set far ahead
    does not make everything old at once.
    """
    known = next(iter(await store.cursors(RETAINED)), None)
    until = now if known is None else min(now, float(known.value) + MOST_AGED)
    await store.fire(known, Cursor(name=RETAINED, value=repr(until)), ())
    return until


async def _forget_work(app: App) -> None:
    """Candidates of runs that are forgotten, crossings of runs that are over, and set-ups that nobody uses."""
    candidates = app.git.candidates()
    for name in await candidates.kept():
        kind, run_id = name.split("/")[:2]
        try:
            over = (await app.store.get_run(run_id)).status in ENDED
        except NotFound:
            await candidates.forget(name)
            continue
        if kind == "crossing" and over:
            await candidates.forget(name)
    if (app.state.folder / "setups").is_dir():
        still_open = await app.store.list_runs(RunFilter(statuses=tuple(set(Status) - ENDED), limit=None))
        await app.setups.sweep({run.run_id for run in still_open})


async def watch_branches(app: App) -> None:
    """Tell the commit triggers about every move of the branches they name."""
    branches = app.triggers.branches()
    if not branches:
        await asyncio.Event().wait()
    async for moved in app.git.watch(branches):
        await _told(app, moved)


async def _told(app: App, moved: RefMoved) -> None:
    await app.triggers.branch_moved(moved)
    app.kick()


class Sometimes:
    """A chore that is done at most every so often."""

    def __init__(self, chore: Chore, every: float, now: Callable[[], Awaitable[float]]) -> None:
        self._chore, self._every, self._now = chore, every, now
        self._last: float | None = None

    async def __call__(self) -> None:
        now = await self._now()
        if self._last is None or not 0 <= now - self._last < self._every:  # or the clock was set back
            self._last = now
            await self._chore()
