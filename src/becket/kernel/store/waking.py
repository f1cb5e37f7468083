"""How waiting runs come back: a signal, a due time, a deadline. The row is the truth; whoever dispatches is a hint."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import ENDED, Move, RunStatus
from becket.kernel.contract.spec import Signal
from becket.kernel.contract.store import SignalEnd
from becket.kernel.store.locked import LockedRun, find_and_lock, lock
from becket.kernel.store.raised import raise_all
from becket.kernel.store.rows import dumps, loads, short_key
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import approvals, cursors, effects, handoffs, runs, signals, wakeups
from becket.kernel.store.tx import Row, Tx

# Literal words, as in the partial indexes.
WAITING = runs.c.status == sa.literal_column("'waiting'")
_AT_WORK = runs.c.status == sa.literal_column("'running'")
_UNDECIDED = approvals.c.state.in_([sa.literal_column("'asked'"), sa.literal_column("'approved'")])
_OPEN_HANDOFF = handoffs.c.state == sa.literal_column("'open'")
_RUN_IS_OPEN = sa.exists().where(runs.c.run_id == effects.c.run_id, runs.c.ended_at.is_(None))
RETRYING = sa.and_(effects.c.state == sa.literal_column("'retrying'"), sa.or_(effects.c.defer, ~_RUN_IS_OPEN))
LEFT_BEHIND = sa.and_(effects.c.state == sa.literal_column("'intended'"), sa.or_(effects.c.defer, ~_RUN_IS_OPEN))

_WAKEUPS = sa.select(wakeups).where(wakeups.c.run_id == sa.bindparam("run_id")).order_by(wakeups.c.number)
_DROP_WAKEUPS = sa.delete(wakeups).where(wakeups.c.run_id == sa.bindparam("this_run"))
_ADD_SIGNAL = sa.insert(signals)
_KNOWN_SIGNAL = sa.select(signals.c.signal_id).where(signals.c.signal_id == sa.bindparam("signal_id"))
_KEPT = sa.select(signals).where(signals.c.run_id == sa.bindparam("run_id"), signals.c.kept).order_by(signals.c.number)
_TAKE_SIGNAL = sa.update(signals).where(signals.c.signal_id == sa.bindparam("this_signal")).values(kept=False)

EVERY = 10_000
_DUE_WAKEUPS = (
    sa.select(wakeups.c.run_id)
    .where(wakeups.c.due <= sa.bindparam("now"))
    .order_by(wakeups.c.due, wakeups.c.number)
    .limit(sa.bindparam("most"))
)
_LATE_RUNS = (
    sa.select(runs.c.run_id)
    .where(WAITING, runs.c.deadline_at <= sa.bindparam("now"))
    .order_by(runs.c.deadline_at, runs.c.run_id)
    .limit(sa.bindparam("most"))
)
_DUE_APPROVALS = (
    sa.select(approvals.c.approval_id, approvals.c.run_id)
    .where(_UNDECIDED, approvals.c.expires_at <= sa.bindparam("now"))
    .order_by(approvals.c.expires_at, approvals.c.approval_id)
    .limit(sa.bindparam("most"))
)
_DUE_HANDOFFS = (
    sa.select(handoffs.c.handoff_id, handoffs.c.run_id)
    .where(_OPEN_HANDOFF, handoffs.c.expires_at <= sa.bindparam("now"))
    .order_by(handoffs.c.expires_at, handoffs.c.handoff_id)
    .limit(sa.bindparam("most"))
)
_EXPIRE_APPROVAL = (
    sa.update(approvals).where(approvals.c.approval_id == sa.bindparam("this"), _UNDECIDED).values(state="expired")
)
_EXPIRE_HANDOFF = sa.update(handoffs).where(handoffs.c.handoff_id == sa.bindparam("this"), _OPEN_HANDOFF)
_NEXT_DUE = sa.select(
    sa.select(sa.func.min(wakeups.c.due)).scalar_subquery(),
    sa.select(sa.func.min(runs.c.deadline_at)).where(WAITING).scalar_subquery(),
    sa.select(sa.func.min(runs.c.lease_until)).where(_AT_WORK).scalar_subquery(),
    sa.select(sa.func.min(cursors.c.due_at)).where(cursors.c.due_at.is_not(None)).scalar_subquery(),
    sa.select(sa.func.min(effects.c.next_at)).where(RETRYING).scalar_subquery(),
    sa.select(sa.func.min(effects.c.settle_at)).where(LEFT_BEHIND).scalar_subquery(),
    sa.select(sa.func.min(approvals.c.expires_at)).where(_UNDECIDED).scalar_subquery(),
    sa.select(sa.func.min(handoffs.c.expires_at)).where(_OPEN_HANDOFF).scalar_subquery(),
)


def drop_wakeups(tx: Tx, run_id: str) -> None:
    tx.run(_DROP_WAKEUPS, {"this_run": run_id})


def raise_woken(run: LockedRun, evidence: dict[str, Json]) -> None:
    """The iteration that follows begins with a wake-up, and knows which."""
    run.add(EventKind.run_woken, evidence)
    woken = Condition(name="woken", evidence=evidence, iteration=run["iteration"], at=run.tx.now)
    raise_all(run.tx, run.run_id, [woken])


def wake(run: LockedRun, evidence: dict[str, Json]) -> None:
    """A waiting run is queued again; what it waited for is forgotten, since when it waits is not."""
    run.move(Move.wake)
    run.set(waiting_on="[]")
    drop_wakeups(run.tx, run.run_id)
    raise_woken(run, evidence)


def deliver(run: LockedRun, name: str, payload: dict[str, Json], signal_id: str) -> SignalEnd:
    """Give a locked run a signal. The caller saves the run."""
    tx = run.tx
    signal_id = short_key(signal_id)
    if tx.one(_KNOWN_SIGNAL, signal_id=signal_id) is not None:
        return SignalEnd.duplicate
    if run.status in ENDED:
        return SignalEnd.ended
    wakes = run.status is RunStatus.waiting and any(row.wake == name for row in tx.all(_WAKEUPS, run_id=run.run_id))
    row = {"signal_id": signal_id, "run_id": run.run_id, "name": name, "payload": dumps(payload), "at": tx.now}
    tx.run(_ADD_SIGNAL, {**row, "kept": not wakes})
    run.add(EventKind.signal_received, {"name": name, "signal_id": signal_id, "payload": payload})
    if not wakes:
        return SignalEnd.kept
    wake(run, {"by": "signal", "signals": [{"name": name, "signal_id": signal_id, "payload": payload}]})
    return SignalEnd.woke


def take_kept(tx: Tx, run_id: str, names: Sequence[str]) -> list[dict[str, Json]]:
    """The kept signals that a run about to wait would have been woken by. They count as received now."""
    found = [row for row in tx.all(_KEPT, run_id=run_id) if row.name in names]
    tx.run(_TAKE_SIGNAL, [{"this_signal": row.signal_id} for row in found])
    return [{"name": row.name, "signal_id": row.signal_id, "payload": loads(row.payload)} for row in found]


def signal(tx: Tx, run_id: str, name: str, payload: dict[str, Json], signal_id: str) -> SignalEnd:
    tx.mutex([f"signal:{short_key(signal_id)}"])
    run = lock(tx, run_id)
    said = deliver(run, name, payload, signal_id)
    run.save()
    return said


def wake_due(tx: Tx, limit: int = 100, among: Collection[str] | None = None) -> tuple[str, ...]:
    """At most `limit` of each kind of due thing; the next call takes the rest."""
    if among is not None:
        return _wake_among(tx, among)
    due = dict.fromkeys(tx.ids(_DUE_WAKEUPS, now=tx.now, most=4 * limit))  # a run may wait for several things
    woken = [run_id for run_id in list(due)[:limit] if _wake_waits(tx, run_id)]
    woken += [run_id for run_id in tx.ids(_LATE_RUNS, now=tx.now, most=limit) if _wake_late(tx, run_id)]
    for row in tx.all(_DUE_APPROVALS, now=tx.now, most=limit):
        woken += [row.run_id] if _expire_approval(tx, row) else []
    for row in tx.all(_DUE_HANDOFFS, now=tx.now, most=limit):
        _expire_handoff(tx, row)
    return tuple(dict.fromkeys(woken))


def _wake_among(tx: Tx, among: Collection[str]) -> tuple[str, ...]:
    woken = [run_id for run_id in among if _wake_waits(tx, run_id) or _wake_late(tx, run_id)]
    due = [row for row in tx.all(_DUE_APPROVALS, now=tx.now, most=EVERY) if row.run_id in among]
    return tuple(dict.fromkeys([*woken, *(row.run_id for row in due if _expire_approval(tx, row))]))


def _wake_waits(tx: Tx, run_id: str) -> bool:
    run = find_and_lock(tx, run_id)
    rows = tx.all(_WAKEUPS, run_id=run_id)
    if run is None or run.status is not RunStatus.waiting:
        return False
    due = [row for row in rows if row.due <= tx.now]
    if not due:
        return False
    waits = [{"condition": row.condition, "wake": row.wake, "expired": row.expires <= tx.now} for row in due]
    wake(run, {"by": "due", "waits": waits})
    run.save()
    return True


def _wake_late(tx: Tx, run_id: str) -> bool:
    run = find_and_lock(tx, run_id)
    if run is None or run.status is not RunStatus.waiting or run["deadline_at"] > tx.now:
        return False
    wake(run, {"by": "deadline", "deadline_at": run["deadline_at"]})
    run.save()
    return True


def _expire_approval(tx: Tx, row: Row) -> bool:
    """True if that woke the run."""
    run = find_and_lock(tx, row.run_id)
    if not tx.run(_EXPIRE_APPROVAL, {"this": row.approval_id}) or run is None:
        return False
    payload: dict[str, Json] = {"approval_id": row.approval_id, "state": "expired"}
    run.add(EventKind.approval_decided, {**payload, **row_seals(tx, row.approval_id, "approval")})
    said = deliver(run, Signal.approval, payload, f"approval:{row.approval_id}:expired")
    run.save()
    return said is SignalEnd.woke


def _expire_handoff(tx: Tx, row: Row) -> None:
    run = find_and_lock(tx, row.run_id)
    expired = {"this": row.handoff_id, "state": "expired", "updated_at": tx.now}
    if tx.run(_EXPIRE_HANDOFF, expired) and run is not None:
        said = {"handoff_id": row.handoff_id, "state": "expired", **row_seals(tx, row.handoff_id, "handoff")}
        run.add(EventKind.handoff_changed, said)
        run.save()


def next_due(tx: Tx) -> float | None:
    row = tx.one(_NEXT_DUE)
    return min((float(due) for due in row or () if due is not None), default=None)
