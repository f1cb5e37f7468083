"""How deep a chain of starts may be and how fast a loop may be started by machines, held with the start itself."""

from __future__ import annotations

import sqlalchemy as sa

from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import StartRefused
from becket.kernel.contract.run import NewRun, StartLimits
from becket.kernel.store.tables import cursors, links, runs
from becket.kernel.store.tx import Tx

PREFIX = "pace:"
WINDOW = 60.0

_PACE = sa.select(cursors.c.value).where(cursors.c.name == sa.bindparam("name"))
_SET_PACE = sa.update(cursors).where(cursors.c.name == sa.bindparam("this"))
_SIBLING = (
    sa.select(links.c.child)
    .join(runs, runs.c.run_id == links.c.child)
    .where(links.c.parent == sa.bindparam("parent"), runs.c.loop_id == sa.bindparam("loop_id"))
    .limit(1)
)


class Pace(Record):
    """How often a loop was started by machines since the window began."""

    since: float
    count: int = 0


def mutex(loop_id: str) -> str:
    return f"{PREFIX}{loop_id}"


def admit(tx: Tx, new: NewRun) -> None:
    """Count the start, or refuse it: then the whole transaction is undone."""
    if new.limits is None:
        return
    if new.chain > new.limits.depth:
        raise StartRefused(_too_deep(new, new.limits), too_deep=True)
    if new.parent is not None and tx.one(_SIBLING, parent=new.parent, loop_id=new.loop_id) is not None:
        return
    pace = _now(tx, new.loop_id)
    if pace.count >= new.limits.per_minute:
        raise StartRefused(_too_often(new, new.limits), too_deep=False)
    _write(tx, new.loop_id, Pace(since=pace.since, count=pace.count + 1))


def _now(tx: Tx, loop_id: str) -> Pace:
    row = tx.one(_PACE, name=mutex(loop_id))
    known = Pace(since=tx.now) if row is None else Pace.model_validate_json(row.value)
    # A window that begins in the future was written before the clock went back.
    return known if 0 <= tx.now - known.since < WINDOW else Pace(since=tx.now)


def _write(tx: Tx, loop_id: str, pace: Pace) -> None:
    row = {"value": pace.model_dump_json(), "due_at": None, "updated_at": tx.now}
    if not tx.run(_SET_PACE, {"this": mutex(loop_id), **row}):
        tx.add_new(cursors, {"name": mutex(loop_id), **row})


def _too_deep(new: NewRun, limits: StartLimits) -> str:
    return (
        f"{new.loop_id} was not started: {new.chain} starts in a row led to it without a person or a schedule in "
        f"between, and at most {limits.depth} may. Look for loops that start each other with `becket loops lint`; "
        f"start it with `becket run {new.loop_id}` if it is needed, or raise `starts.depth` in becket.yaml."
    )


def _too_often(new: NewRun, limits: StartLimits) -> str:
    return (
        f"{new.loop_id} was not started: triggers and other runs started it {limits.per_minute} times within a minute, "
        f"and no more are let in. Look at what starts it with `becket runs list --loop {new.loop_id}`, or raise "
        "`starts.per_minute` in becket.yaml."
    )
