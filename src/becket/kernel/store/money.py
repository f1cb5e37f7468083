"""What runs use of tokens, money and agents' time: booked before the call, corrected after it."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.store import SpendLimit
from becket.kernel.store.locked import LockedRun, fenced, find_and_lock
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import spending
from becket.kernel.store.tx import Row, Tx

_BOOKING = ""
"""The kind of the row that says that a key was booked, whatever it booked."""

_ROUNDING = 1e-9
"""0.1 + 0.2 is within a limit of 0.3."""

_KNOWN = sa.select(spending).where(spending.c.key == sa.bindparam("key"), spending.c.kind == _BOOKING)
_DROP_AMOUNTS = sa.delete(spending).where(spending.c.key == sa.bindparam("this"), spending.c.kind != _BOOKING)
_ADD_ROWS = sa.insert(spending)


def reserve(
    tx: Tx, key: str, run_id: str, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
) -> str | None:
    run = fenced(tx, run_id, epoch)
    if tx.one(_KNOWN, key=key) is not None:
        return None
    refused = book(tx, run, key, amounts, limits)
    if refused is None:
        _tell(run, key, amounts)
    return refused


def book(tx: Tx, run: LockedRun, key: str, amounts: dict[str, float], limits: Sequence[SpendLimit]) -> str | None:
    """Book once per key, or name the limit that would be passed. The sums and the booking are one: see the mutex.
    Whoever books tells of it.
    """
    if limits:
        tx.mutex(["spending"])  # a limit may span runs and loops
    if tx.one(_KNOWN, key=key) is not None:
        return None
    for limit in limits:
        used = _sum(tx, limit.kind, limit.run_id, limit.loop_id, limit.since)
        if used + amounts.get(limit.kind, 0.0) > limit.most + _ROUNDING:
            return limit.name
    _add(tx, key, run.run_id, str(run["loop_id"]), tx.now, {_BOOKING: 0.0, **amounts})
    return None


def settle_spend(tx: Tx, key: str, amounts: dict[str, float]) -> None:
    run = find_and_lock(tx, _booking(tx, key).run_id)
    replace(tx, key, amounts)
    if run is not None:
        _tell(run, key, amounts)


def _tell(run: LockedRun, key: str, amounts: dict[str, float]) -> None:
    run.add(EventKind.spent, {"key": key, "used": amounts, **row_seals(run.tx, key, "spending")})
    run.save()


def _booking(tx: Tx, key: str) -> Row:
    known = tx.one(_KNOWN, key=key)
    if known is None:
        raise NotFound(f"nothing was booked under {key!r}; reserve before you settle")
    return known


def replace(tx: Tx, key: str, amounts: dict[str, float]) -> None:
    """The booking by what was used. Within the lock of the run; whoever replaces tells of it."""
    known = _booking(tx, key)
    tx.run(_DROP_AMOUNTS, {"this": key})
    _add(tx, key, known.run_id, known.loop_id, known.at, amounts)


def _add(tx: Tx, key: str, run_id: str, loop_id: str, at: float, amounts: dict[str, float]) -> None:
    rows = [
        {"key": key, "kind": kind, "run_id": run_id, "loop_id": loop_id, "amount": amount, "at": at}
        for kind, amount in amounts.items()
    ]
    tx.run(_ADD_ROWS, rows)


def _sum(tx: Tx, kind: str, run_id: str | None, loop_id: str | None, since: float) -> float:
    return spent(tx, run_id, loop_id, since, kind).get(kind, 0.0)


def spent(
    tx: Tx, run_id: str | None = None, loop_id: str | None = None, since: float = 0, kind: str | None = None
) -> dict[str, float]:
    query = sa.select(spending.c.kind, sa.func.sum(spending.c.amount)).where(spending.c.kind != _BOOKING)
    if kind is not None:
        query = query.where(spending.c.kind == kind)
    if run_id is not None:
        query = query.where(spending.c.run_id == run_id)
    if loop_id is not None:
        query = query.where(spending.c.loop_id == loop_id)
    if since > 0:
        query = query.where(spending.c.at >= since)
    return {row[0]: float(row[1]) for row in tx.all(query.group_by(spending.c.kind))}
