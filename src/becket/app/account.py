"""The daemon's log of runs it worked on, one readable line each: `becket watch logs`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.reasons import reason_words, wait_words
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.store import Store
from becket.kernel.engine.advance import Advanced, Engine

log = logging.getLogger("becket.account")


class Account:
    """The engine, with a word about each run that it takes up and puts down; `ended` is called for those that ended."""

    def __init__(self, engine: Engine, store: Store, ended: Callable[[Run], Awaitable[None]]) -> None:
        self._engine = engine
        self._store = store
        self._ended = ended

    @property
    def at_work(self) -> Mapping[str, int]:
        return self._engine.at_work

    def interrupt(self, run_id: str) -> None:
        self._engine.interrupt(run_id)

    async def advance(self, run_id: str, segment: int) -> object:
        await self._tell(run_id, began=True)
        moved = await self._engine.advance(run_id, segment)
        if moved is not Advanced.stale:
            await self._tell(run_id, began=False)
        return moved

    async def _tell(self, run_id: str, *, began: bool) -> None:
        with contextlib.suppress(BecketError):  # the log is not worth a run
            run = await self._store.get_run(run_id)
            if said := _beginning(run) if began else _end(run):
                log.info("%s %s about %s %s", run.run_id, run.loop_id, run.subject.name, said)
            if run.status in ENDED:
                await self._ended(run)


def _beginning(run: Run) -> str:
    if run.status is not RunStatus.queued:
        return ""
    return f"begins ({run.trigger}, by {run.by})" if run.segment == 1 else "goes on"


def _end(run: Run) -> str:
    if run.status is RunStatus.waiting:
        return f"waits for {' and '.join(map(wait_words, run.waiting_on))}"
    if run.status not in ENDED:
        return ""
    found = run.detail.get("main_proven")
    proven = found if isinstance(found, dict) and run.status is RunStatus.completed else None
    why = reason_words(run.reason) if proven is None else _found(proven)
    return f"ended: {run.status.value.replace('_', ' ')} ({why}) after {(run.ended_at or 0.0) - run.created_at:.0f} s"


def _found(proven: dict[str, Json]) -> str:
    if proven.get("instead_of"):
        return "its branch has moved on"
    return "repaired" if proven.get("repaired") else "was green"
