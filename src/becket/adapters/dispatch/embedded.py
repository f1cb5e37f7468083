"""The embedded dispatcher: one asyncio process that starts what is queued, wakes what is due and does the chores."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Protocol

from becket.adapters.dispatch.bell import Bell
from becket.contract.errors import WorkerDeclaredDead
from becket.contract.run import Status
from becket.contract.store import RunFilter, Store, WorkerInfo

log = logging.getLogger("becket.dispatch")

NET = 1.0
"""How often the tables are looked at although no bell rang."""


class Advances(Protocol):
    """The engine, as the dispatcher sees it."""

    async def advance(self, run_id: str, segment: int) -> object: ...

    def interrupt(self, run_id: str) -> None: ...


Chore = Callable[[], Awaitable[object]]
"""Done whenever the dispatcher looks: fire schedules, follow ended runs, deliver deferred notices."""

Resident = Callable[[], Coroutine[None, None, None]]
"""Lives as long as the dispatcher: the watcher of refs."""


@dataclass(frozen=True, slots=True)
class Staff:
    """What a dispatcher works with."""

    engine: Advances
    store: Store
    worker: WorkerInfo
    alone: bool = True
    chores: Sequence[Chore] = ()
    residents: Sequence[Resident] = ()
    recover: Chore | None = None  # once, at boot, before anything starts
    at_once: int = 64  # runs at work at the same time
    ttl: float = 30.0


class Embedded:
    """Start it with `serve`; `kick` makes it look at the tables; `stop` makes it end in good order."""

    def __init__(self, staff: Staff, bell: Bell | None = None) -> None:
        self._staff = staff
        self._bell = bell
        self._look = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._failure: BaseException | None = None

    def kick(self) -> None:
        self._look.set()

    def stop(self) -> None:
        self._stopping.set()
        self._look.set()

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
                await self._look_once()
                if until is not None and await until():
                    break
                await self._sleep()
        finally:
            await self._leave(residents)
        if self._failure is not None:
            raise self._failure

    async def idle(self) -> bool:
        """Nothing is at work and nothing could be started: what is left waits for a person or a clock."""
        if self._tasks or await self._staff.store.startable(1):
            return False
        running = await self._staff.store.list_runs(RunFilter(statuses=(Status.running,), limit=1))
        return not running and not await self._staff.store.unfollowed(1)

    async def _look_once(self) -> None:
        store = self._staff.store
        await store.wake_due()
        for chore in self._staff.chores:
            await self._quietly(chore)
        await store.requeue_lost()
        if self._tasks:
            for run_id in await store.cancel_asked(self._staff.worker.worker_id):
                self._staff.engine.interrupt(run_id)
        free = self._staff.at_once - len(self._tasks)
        for run_id, segment in await store.startable(free) if free > 0 else ():
            if run_id not in self._tasks:
                task = asyncio.create_task(self._staff.engine.advance(run_id, segment), name=run_id)
                self._tasks[run_id] = task
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.pop(task.get_name(), None)
        self._look.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, WorkerDeclaredDead):
                self._failure = error
                self.stop()
            else:
                log.error("advance of %s failed: %s", task.get_name(), error)

    async def _sleep(self) -> None:
        """Until something is due, a bell rings, a run ends here, or the safety net looks."""
        due = await self._staff.store.next_due()
        now = await self._staff.store.now()
        deadline = None if due is None else max(0.0, due - now)
        while not self._look.is_set():
            nap = NET if deadline is None else min(NET, deadline)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), nap)
            if deadline is not None:
                deadline -= nap
                if deadline <= 0:
                    return
            if await self._staff.store.version_changed():
                return

    async def _beat(self) -> None:
        """Renew what this worker holds. A run that was taken away is stopped; a dead worker's process must exit."""
        staff = self._staff
        while True:
            await asyncio.sleep(staff.ttl / 3)
            try:
                beat = await staff.store.beat(staff.worker.worker_id, staff.ttl)
            except WorkerDeclaredDead as error:
                self._failure = error
                self.stop()
                return
            except Exception as error:
                log.warning("heartbeat: %s", error)
                continue
            for run_id in beat.lost:
                if (task := self._tasks.get(run_id)) is not None:
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
        except WorkerDeclaredDead as error:
            self._failure = error
            self.stop()
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
