"""The other processes that work on this repository's runs: an engine, and commands that each drive their own run.

A driver holds a lock named after its worker as long as its process lives. So everybody knows who is there: a worker
whose lock is free is dead, and one whose lock is held keeps what it has at work, even while it does not hear.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from becket.app.compose import App
from becket.app.liveness import LEASE
from becket.app.state import StateFolder, holder, is_ours
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import RunFilter, Store, WorkerInfo

VOUCH_EVERY = 10.0
OPEN = (RunStatus.queued, RunStatus.running, RunStatus.waiting)


def driver_lock(state: StateFolder, worker_id: str) -> Path:
    state.drivers.mkdir(exist_ok=True)
    return state.drivers / worker_id


def _is_there(state: StateFolder, worker: WorkerInfo) -> bool:
    if holder(state.drivers / worker.worker_id) is not None:
        return True
    return not is_ours(state.engine_lock) and holder(state.engine_lock) == worker.pid


class OtherWorkers:
    """A chore: what those left who are gone is put in order, and nobody takes from those who live what they have."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._vouched = 0.0

    async def look(self) -> list[str]:
        """Who else is there."""
        app, alive = self._app, await bury_gone(self._app)
        now = await app.store.now()
        if alive and not 0 <= now - self._vouched < VOUCH_EVERY:
            self._vouched = now
            await app.store.attend(alive, (), LEASE)
        return alive


async def bury_gone(app: App) -> list[str]:
    """Put in order what those left who are gone. Returns who is there besides this process."""
    others = [one for one in await app.store.workers() if not one.dead and one.worker_id != app.worker_id]
    alive = [one.worker_id for one in others if _is_there(app.state, one)]
    gone = [one.worker_id for one in others if one.worker_id not in alive]
    if gone and app.config.database is None:  # else it may live on another machine: its leases tell
        await sweep_children(app, alive)  # before anybody can go on with their runs
        await app.store.attend((), gone, LEASE)
        for worker_id in gone:
            (app.state.drivers / worker_id).unlink(missing_ok=True)
    return alive


async def sweep_children(app: App, alive: Collection[str] = ()) -> None:
    """End the processes of runs that nobody has at work."""
    children = await app.store.live_children((*alive, app.worker_id))
    if children:
        app.processes.sweep(children)
        for child in children:
            await app.store.child_ended(child)


class OwnRuns:
    """The runs that a command drives: those it was asked about, and the children that these wait for."""

    def __init__(self, store: Store, run_ids: Collection[str]) -> None:
        self._store = store
        self.asked = tuple(run_ids)
        self._known = set(run_ids)

    async def ids(self) -> tuple[str, ...]:
        """Parents before their children."""
        found = list(self.asked)
        for run_id in found:
            if (await self._store.get_run(run_id)).status is RunStatus.waiting:
                children = await self._store.list_runs(RunFilter(parent=run_id, statuses=OPEN, limit=None))
                found += [child.run_id for child in children if child.run_id not in found]
        self._known.update(found)
        return tuple(found)

    def has(self, run_id: str) -> bool:
        return run_id in self._known
