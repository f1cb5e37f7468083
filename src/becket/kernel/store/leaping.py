"""The clock leapt: everything that is due by a length of time is moved along, and the runs concerned say so.

What a machine does (leases, runs at work) is moved by the whole leap, what people and the world do (waits, approvals,
handoffs) only by the clock's own part: while the machine slept, time went on for them.
"""

from __future__ import annotations

import sqlalchemy as sa

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.events import SEALS, EventKind
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import Leap
from becket.kernel.store.locked import LockedRun, find_and_lock
from becket.kernel.store.rows import dumps, loads
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import approvals, cursors, effects, handoffs, leases, runs, wakeups
from becket.kernel.store.tx import Tx

CURSOR = "clock:leapt"
SAME = 5.0
LATELY = 120.0

_KNOWN = sa.select(cursors.c.value).where(cursors.c.name == CURSOR)
_TO_KNOW = sa.update(cursors).where(cursors.c.name == sa.bindparam("this"))
_UNDECIDED = approvals.c.state.in_(["asked", "approved"])
_CONCERNED = sa.union(
    sa.select(runs.c.run_id).where(runs.c.ended_at.is_(None)),
    sa.select(handoffs.c.run_id).where(handoffs.c.state == "open"),
)
_APPROVALS = sa.select(approvals.c.approval_id, approvals.c.asked_at).where(
    approvals.c.run_id == sa.bindparam("run_id"), _UNDECIDED
)
_HANDOFFS = sa.select(handoffs.c.handoff_id, handoffs.c.created_at).where(
    handoffs.c.run_id == sa.bindparam("run_id"), handoffs.c.state == "open"
)


class AdoptedLeap(Record):
    """The last leap that was adopted, by any worker."""

    at: float
    by: float


def adopt_leap(tx: Tx, leap: Leap) -> bool:
    """False if another worker has just moved everything by this leap."""
    tx.mutex([CURSOR])
    row = tx.one(_KNOWN)
    known = AdoptedLeap.model_validate_json(row.value) if row is not None else None
    if known is not None and abs(known.by - leap.by) < SAME and abs(leap.at - known.at) < LATELY:
        return False
    for run_id in sorted(tx.ids(_CONCERNED)):
        if (run := find_and_lock(tx, run_id)) is not None:
            _move_run(run, leap)
    _move_dues(tx, leap)
    _remember(tx, AdoptedLeap(at=leap.at, by=leap.by), new=row is None)
    return True


def _move_run(run: LockedRun, leap: Leap) -> None:
    told: dict[str, Json] = {"jump": leap.jump, "slept": leap.slept}
    if run["ended_at"] is None:
        by = leap.by if run.status is not RunStatus.waiting else _for_people(leap, run["updated_at"])
        since = {name: at + by for name, at in loads(run["waits_since"]).items()}
        run.set(deadline_at=run["deadline_at"] + by, waits_since=dumps(since))
        told |= {"deadline_at": run["deadline_at"], "since": since}
        if run["lease_until"] is not None:
            run.set(lease_until=run["lease_until"] + leap.by)
        _move_wakeups(run.tx, run.run_id, by)
    told[SEALS] = _move_questions(run.tx, run.run_id, leap)
    if told[SEALS] or run["ended_at"] is None:
        run.add(EventKind.clock_leapt, told)
        run.save()


def _for_people(leap: Leap, asked_at: float) -> float:
    """What was asked after the machine woke up lies after its sleep."""
    return leap.by if asked_at > leap.since else leap.jump


def _move_wakeups(tx: Tx, run_id: str, by: float) -> None:
    moved = {"due": wakeups.c.due + by, "expires": wakeups.c.expires + by}
    tx.conn.execute(sa.update(wakeups).where(wakeups.c.run_id == run_id).values(moved))


def _move_questions(tx: Tx, run_id: str, leap: Leap) -> Json:
    seals: dict[str, Json] = {}
    for kind, table, query, key in (
        ("approval", approvals, _APPROVALS, approvals.c.approval_id),
        ("handoff", handoffs, _HANDOFFS, handoffs.c.handoff_id),
    ):
        for one, asked_at in tx.all(query, run_id=run_id):
            if by := _for_people(leap, asked_at):
                tx.conn.execute(sa.update(table).where(key == one).values(expires_at=table.c.expires_at + by))
                seals |= row_seals(tx, one, kind)[SEALS]
    return seals


def _move_dues(tx: Tx, leap: Leap) -> None:
    tx.conn.execute(sa.update(leases).values(until=leases.c.until + leap.by))
    for by, which in ((leap.by, effects.c.updated_at > leap.since), (leap.jump, effects.c.updated_at <= leap.since)):
        moved = {"settle_at": effects.c.settle_at + by, "next_at": effects.c.next_at + by}
        unsettled = effects.c.state.in_(["intended", "retrying"])
        tx.conn.execute(sa.update(effects).where(unsettled, which).values(moved))


def _remember(tx: Tx, adopted: AdoptedLeap, new: bool) -> None:
    row = {"value": adopted.model_dump_json(), "due_at": None, "updated_at": tx.now}
    if new:
        tx.add_new(cursors, {"name": CURSOR, **row})
    else:
        tx.run(_TO_KNOW, {"this": CURSOR, **row})
