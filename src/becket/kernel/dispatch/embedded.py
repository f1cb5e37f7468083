"""The embedded dispatcher: one asyncio process that starts what is queued, wakes what is due and does the chores."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from becket.kernel.contract.errors import BecketError, Fenced, StoreDamaged, StoreUnavailable, WorkerDeclaredDead
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import RunFilter, Store, WorkerInfo
from becket.kernel.dispatch.bell import Bell

log = logging.getLogger("becket.dispatch")

SHORTEST_NAP = 0.05
IDLE = 30.0
"""Chores that keep no due time of their own are done at least this often."""

NET = 1.0
"""How often the tables are looked at although no bell rang."""


class RunAdvancer(Protocol):
    """The engine, as the dispatcher sees it."""

    async def advance(self, run_id: str, segment: int) -> object: ...

    def interrupt(self, run_id: str) -> None: ...

    @property
    def at_work(self) -> Mapping[str, int]:
        """What is being moved here and now: run and epoch of its claim."""
        ...


Chore = Callable[[], Awaitable[object]]
"""Done whenever the dispatcher looks: fire schedules, follow ended runs, deliver deferred notices."""

Resident = Callable[[], Coroutine[None, None, None]]
"""Lives as long as the dispatcher: the watcher of refs."""


@dataclass(frozen=True, slots=True)
class DispatcherContext:
    """What a dispatcher works with."""

    engine: RunAdvancer
    store: Store
    worker: WorkerInfo
    alone: bool = True
    own: Callable[[], Awaitable[Collection[str]]] | None = None  # the only runs that are moved here; None: all
    chores: Sequence[Chore] = ()
    residents: Sequence[Resident] = ()
    recover: Chore | None = None  # once, at boot, before anything starts
    at_once: int = 64  # runs at work at the same time
    ttl: float = 30.0
    idle: float = IDLE


class EmbeddedDispatcher:
    """Start it with `serve`; `kick` makes it look at the tables; `stop` makes it end in good order."""

    def __init__(self, staff: DispatcherContext, bell: Bell | None = None) -> None:
        self._staff = staff
        self._bell = bell
        self._look = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._failure: BaseException | None = None
        self._beat_at: float | None = None
        self._vain = 0.0

    def kick(self) -> None:
        self._look.set()

    def stop(self) -> None:
        self._stopping.set()
        self._look.set()

    def fail(self, error: BecketError) -> None:
        """End at once, writing nothing more; `serve` raises the error."""
        self._failure = error
        self.stop()

    async def serve(self, until: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Work until `stop`, or until `until` says so (asked after every look)."""
        staff = self._staff
        await staff.store.join(staff.worker, staff.alone)
        if staff.recover is not None:
            await staff.recover()
        residents = [asyncio.create_task(self._reside(resident)) for resident in staff.residents]
        residents.append(asyncio.create_task(self._beat()))
        self._listen()
        try:
            while not self._stopping.is_set():
                self._look.clear()
                try:
                    await self._look_once()
                    if until is not None and await until():
                        break
                    await self._sleep()
                except StoreDamaged as error:
                    self._failure = error  # waiting does not mend it, and nothing may leave that it does not record
                    break
                except StoreUnavailable as error:
                    log.error("%s; looking again in %g s", error, NET)
                    await asyncio.sleep(NET)
        finally:
            await self._leave(residents)
        if self._failure is not None:
            raise self._failure

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def idle(self) -> bool:
        """Nothing is at work and nothing could be started: what is left waits for a person or a clock."""
        if self._tasks or await self._staff.store.startable(1):
            return False
        running = await self._staff.store.list_runs(RunFilter(statuses=(RunStatus.running,), limit=1))
        return not running and not await self._staff.store.unfollowed(1)

    async def _look_once(self) -> None:
        store = self._staff.store
        await self._beat_if_late()  # after a suspend our own leases look expired; nobody else had a chance to take them
        own = None if self._staff.own is None else await self._staff.own()
        await store.wake_due(among=own)
        for chore in self._staff.chores:
            await self._quietly(chore)
        await self._beat_if_late()  # a store that was locked meanwhile has let our own leases expire
        await store.requeue_lost()
        await self._compare_with_rows()
        free = self._staff.at_once - len(self._tasks)
        for run_id, segment in await store.startable(free, own) if free > 0 else ():
            if run_id not in self._tasks:
                task = asyncio.create_task(self._staff.engine.advance(run_id, segment), name=run_id)
                self._tasks[run_id] = task
                task.add_done_callback(self._ended)

    async def _compare_with_rows(self) -> None:
        """A claim of ours that no task has (its answer was lost, or the task died) is given back, not kept."""
        store = self._staff.store
        for claim in await store.at_work(self._staff.worker.worker_id):
            if claim.run_id not in self._tasks:
                log.error("nobody is at work on %s under claim %d; given back", claim.run_id, claim.epoch)
                with contextlib.suppress(Fenced):
                    await store.give_back(claim.run_id, claim.epoch)
            elif claim.cancel_asked:
                self._staff.engine.interrupt(claim.run_id)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.pop(task.get_name(), None)
        error = None if task.cancelled() else task.exception()
        if error is None:
            self._look.set()
        elif isinstance(error, WorkerDeclaredDead):
            self._failure = error
            self.stop()
        else:
            log.error("advance of %s failed: %s", task.get_name(), error)
            asyncio.get_running_loop().call_later(NET, self._look.set)  # what fails at once would fail in circles

    async def _sleep(self) -> None:
        """Until something is due, a bell rings, a run ends here, or the safety net looks.

        The clock is read anew at every nap: it may jump, and a machine may be suspended. What is due and was just
        looked at in vain (nobody here serves it) is not looked at again at once.
        """
        store, slept = self._staff.store, 0.0
        while not self._look.is_set() and slept < self._staff.idle:
            due = await store.next_due()
            left = math.inf if due is None else due - await store.now()
            self._vain = min(max(self._vain * 2, SHORTEST_NAP), NET) if left <= 0 else 0.0
            nap = self._vain or min(left, NET)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), nap)
            slept += nap
            if left <= nap or await store.version_changed():
                return

    async def _beat(self) -> None:
        """Renew what is at work here. A run that was taken away is stopped; a dead worker's process must exit."""
        while self._failure is None:
            await asyncio.sleep(self._staff.ttl / 3)
            try:
                await self._beat_if_late()
            except Exception as error:  # a heart that stopped at one fault would lose everything at work
                log.warning("heartbeat: %s", error)

    async def _beat_if_late(self) -> None:
        staff = self._staff
        now = await staff.store.now()
        if self._beat_at is not None and 0 <= now - self._beat_at < staff.ttl / 4:
            return
        at_work = staff.engine.at_work
        try:
            beat = await staff.store.beat(staff.worker.worker_id, staff.ttl, at_work)
        except WorkerDeclaredDead as error:
            self._failure = error
            self.stop()
            return
        self._beat_at = now
        for run_id in beat.lost:
            self._stop_lost(run_id, at_work[run_id])

    def _stop_lost(self, run_id: str, epoch: int) -> None:
        """By now the run may be at work here under another claim; and a task that is being stopped is left to it."""
        task = self._tasks.get(run_id)
        if task is not None and self._staff.engine.at_work.get(run_id) == epoch and not task.cancelling():
            task.cancel()

    async def _reside(self, resident: Resident) -> None:
        delay = 1.0
        while True:
            try:
                await resident()
                return
            except Exception as error:
                log.error("%s: %s; again in %g s", getattr(resident, "__qualname__", resident), error, delay)
                await asyncio.sleep(delay)
                delay = min(delay * 2, 60.0)

    async def _quietly(self, chore: Chore) -> None:
        try:
            await chore()
        except (WorkerDeclaredDead, StoreDamaged) as error:
            self.fail(error)
        except Exception as error:
            log.error("%s: %s", getattr(chore, "__qualname__", chore), error)

    def _listen(self) -> None:
        if self._bell is not None:
            asyncio.get_running_loop().add_reader(self._bell.fileno(), self._rung, self._bell)

    def _rung(self, bell: Bell) -> None:
        bell.drain()
        self._look.set()

    async def _leave(self, residents: Sequence[asyncio.Task[None]]) -> None:
        """Stop everything of ours, then give back what we held."""
        if self._bell is not None:
            asyncio.get_running_loop().remove_reader(self._bell.fileno())
        pending = [*residents, *self._tasks.values()]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if self._failure is None:
            await self._staff.store.leave(self._staff.worker.worker_id)
