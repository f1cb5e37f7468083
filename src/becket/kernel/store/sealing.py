"""Seals: digests of rows as they stand in their table. The event that tells of a row carries its seal, by name.

So the chain of events covers the rows. What only steers the engine (leases, wake-ups, attempts in flight) has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.effect import SETTLED
from becket.kernel.contract.events import SEALS, row_name
from becket.kernel.store.tables import (
    agent_calls,
    approvals,
    artifact_refs,
    carried,
    effects,
    facts,
    handoffs,
    receipts,
    spending,
    steps,
)
from becket.kernel.store.tx import Tx

_KEPT: dict[str, tuple[sa.Table, tuple[str, ...]]] = {
    "step": (steps, ("iteration", "phase", "id")),
    "receipt": (receipts, ("iteration", "phase", "action_id", "digest")),
    "artifact": (artifact_refs, ("iteration", "phase", "action_id", "digest", "name")),
    "effect": (effects, ("key",)),
    "approval": (approvals, ("approval_id",)),
    "handoff": (handoffs, ("handoff_id",)),
    "fact": (facts, ("fact", "subject_key")),
    "carried": (carried, ("run_id",)),
    "call": (agent_calls, ("call_id",)),
    "spending": (spending, ("key",)),
}
"""What is sealed, and the columns that name a row of it."""

SEALED_LATER = ("call", "spending")
"""Of these, journals hold rows from before they were sealed: a run says at its start that it seals them."""

_SETTLED = frozenset(state.value for state in SETTLED)
_IN_FLIGHT = ("settle_at", "next_at", "updated_at")
_OUTCOME = ("state", "result", "reason")


def _columns(table: sa.Table, *left_out: str) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    return itemgetter(*(column.name for column in table.c if column.name not in {"number", *left_out}))


_SEALED = {kind: _columns(table) for kind, (table, _) in _KEPT.items()}
_ASKED = _columns(effects, *_IN_FLIGHT, "attempts", *_OUTCOME)
_SETTLED_EFFECT = _columns(effects, *_IN_FLIGHT)
_OF_RUN = {
    kind: sa.select(table)
    .where(table.c.run_id == sa.bindparam("run_id"))
    .order_by(*(column for column in table.c if column.name == "number"))
    for kind, (table, _) in _KEPT.items()
}


def seal(kind: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Seals by name; in the order of the rows."""
    if kind == "spending":
        return _together(rows)
    key = _KEPT[kind][1]
    return {row_name(kind, *(row[name] for name in key)): _seal(kind, row) for row in rows}


def _seal(kind: str, row: Mapping[str, Any]) -> str:
    values = _SEALED[kind]
    if kind == "effect":  # until it is settled it changes from attempt to attempt, and no event tells of that
        values = _SETTLED_EFFECT if row["state"] in _SETTLED else _ASKED
    return digest_of(values(row))


def _together(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """All amounts of a key have one seal: a settlement replaces them all, and not by the same kinds."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in sorted(rows, key=itemgetter("key", "kind")):
        found.setdefault(row_name("spending", row["key"]), []).append(_SEALED["spending"](row))
    return {name: digest_of(amounts) for name, amounts in found.items()}


def of_run(tx: Tx, run_id: str) -> dict[str, str]:
    """The seals of everything the tables hold of a run now."""
    found: dict[str, str] = {}
    for kind, query in _OF_RUN.items():
        found |= seal(kind, (dict(row._mapping) for row in tx.all(query, run_id=run_id)))
    return found


def row_seals(tx: Tx, key: str, *kinds: str) -> dict[str, Json]:
    """For an event's data: the seals of what has this key in these tables, as it stands."""
    found: dict[str, str] = {}
    for kind in kinds:
        table, (name,) = _KEPT[kind]
        rows = tx.all(sa.select(table).where(table.c[name] == key))
        found |= seal(kind, (dict(row._mapping) for row in rows))
    return {SEALS: found}
