"""A run's row, locked for one transaction: the fence, the chain of events, and one UPDATE for all that changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Fenced, NotFound
from becket.kernel.contract.events import EventKind, NewEvent, event_digest
from becket.kernel.contract.run import Move, Run, RunStatus, after
from becket.kernel.store.rows import dumps, loads, run_of
from becket.kernel.store.tables import events, runs
from becket.kernel.store.tx import Tx

# SQLite has no row locks and SQLAlchemy leaves FOR UPDATE out there: the whole transaction is its lock.
_LOCK_RUN = sa.select(runs).where(runs.c.run_id == sa.bindparam("run_id")).with_for_update()
_SAVE_RUN = sa.update(runs).where(runs.c.run_id == sa.bindparam("this_run"))
_ADD_EVENTS = sa.insert(events)


class LockedRun:
    """Collects what happens to one run; `save` writes it. Whoever locks a run must save it before locking it again."""

    __slots__ = ("_events", "_row", "_set", "tx")

    def __init__(self, tx: Tx, row: dict[str, Any]) -> None:
        self.tx = tx
        self._row = row
        self._set: dict[str, Any] = {}
        self._events: list[tuple[str, Json]] = []

    def __getitem__(self, column: str) -> Any:
        return self._row[column]

    @property
    def run_id(self) -> str:
        return str(self._row["run_id"])

    @property
    def status(self) -> RunStatus:
        return RunStatus(self._row["status"])

    def set(self, **columns: Any) -> None:
        self._row.update(columns)
        self._set.update(columns)

    def move(self, move: Move) -> None:
        self.set(status=after(self.status, move).value)

    def add(self, kind: EventKind, data: dict[str, Json]) -> None:
        self._events.append((kind.value, data))

    def add_all(self, new: Iterable[NewEvent]) -> None:
        for event in new:
            self._events.append((event.kind.value, event.data))

    def save(self) -> None:
        if self._events:
            self._append()
        if self._set:
            self.set(updated_at=self.tx.now)
            self.tx.run(_SAVE_RUN, {**self._set, "this_run": self.run_id})
            self._set = {}

    def _append(self) -> None:
        seq, head, now = int(self._row["event_count"]), str(self._row["head"]), self.tx.now
        rows = []
        for kind, data in self._events:
            text = dumps(data)
            seq += 1
            # The digest is of what a reader will get back, not of Python objects that JSON flattens.
            digest = event_digest(self.run_id, seq, now, kind, loads(text), head)
            rows.append(
                {"run_id": self.run_id, "seq": seq, "at": now, "kind": kind, "data": text, "previous": head,
                 "digest": digest}
            )  # fmt: skip
            head = digest
        self.tx.run(_ADD_EVENTS, rows)
        self._events = []
        self.set(event_count=seq, head=head)

    def record(self) -> Run:
        """The run as it stands, unsaved changes included."""
        return run_of(self._row)


def find_and_lock(tx: Tx, run_id: str) -> LockedRun | None:
    row = tx.locked_row(_LOCK_RUN, run_id=run_id)
    return None if row is None else LockedRun(tx, row)


def lock(tx: Tx, run_id: str) -> LockedRun:
    found = find_and_lock(tx, run_id)
    if found is None:
        raise NotFound(f"there is no run {run_id}; `becket runs list` shows the runs")
    return found


def fenced(tx: Tx, run_id: str, epoch: int) -> LockedRun:
    """The run, locked, if the claim with this epoch still holds."""
    run = lock(tx, run_id)
    if run["epoch"] != epoch or run["status"] != "running":
        raise Fenced(
            f"the claim {epoch} on run {run_id} is gone: the run is {run['status']} with claim {run['epoch']}; "
            "whoever holds it now goes on"
        )
    return run


def lock_for(tx: Tx, run_id: str, epoch: int | None) -> LockedRun | None:
    """Fenced with an epoch; without one the run as it is, or None if this is about something outside of runs."""
    return find_and_lock(tx, run_id) if epoch is None else fenced(tx, run_id, epoch)
