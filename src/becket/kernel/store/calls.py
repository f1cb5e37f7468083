"""Calls of agents: a row and a booking before each, the outcome and what was really used after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.calls import AgentCall, CallEnd
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.store import SpendLimit
from becket.kernel.store import money
from becket.kernel.store.locked import fenced, find_and_lock
from becket.kernel.store.rows import dumps, loads, plain, record_of
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import agent_calls
from becket.kernel.store.tx import Row, Tx

_ADD = sa.insert(agent_calls)
_CALL = sa.select(agent_calls).where(agent_calls.c.call_id == sa.bindparam("call_id"))
_LOCK = _CALL.with_for_update()
_END = sa.update(agent_calls).where(agent_calls.c.call_id == sa.bindparam("this"))


def begin_call(
    tx: Tx, call: AgentCall, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
) -> str | None:
    run = fenced(tx, call.run_id, epoch)
    if tx.one(_CALL, call_id=call.call_id) is not None:
        return None
    refused = money.book(tx, run, call.call_id, amounts, limits)
    if refused is None:
        row = _row(call)
        tx.run(_ADD, {**row, "loop_id": run["loop_id"], "began_at": tx.now})
        said = {name: row[name] for name in ("iteration", "phase", "step_id", "agent", "driver", "model")}
        allowed = {"limits": call.limits.model_dump(mode="json"), "booked": amounts}
        run.add(EventKind.call_booked, {"call": call.call_id, **said, **allowed, **_seals(tx, call.call_id)})
        run.save()
    return refused


def end_call(tx: Tx, call_id: str, end: CallEnd, amounts: dict[str, float]) -> None:
    known = tx.one(_CALL, call_id=call_id)
    run = None if known is None else find_and_lock(tx, known.run_id)  # the run's lock comes first, as everywhere
    row = None if run is None else tx.one(_LOCK, call_id=call_id)
    if run is None or row is None:
        raise NotFound(f"no call {call_id!r} was begun here; begin a call before you end it")
    if row.ended_at is None:
        told = end.model_dump(mode="json")
        money.replace(tx, call_id, amounts)
        tx.run(_END, {"this": call_id, "ended_at": tx.now, "result": dumps(told)})
        said = {"call": call_id, "agent": row.agent, **{name: told[name] for name in ("outcome", "by", "usage")}}
        run.add(EventKind.call_settled, {**said, "used": amounts, **_seals(tx, call_id)})
        run.save()


def _seals(tx: Tx, call_id: str) -> dict[str, Json]:
    return row_seals(tx, call_id, "call", "spending")


def list_calls(tx: Tx, run_id: str | None = None, since: float = 0, limit: int | None = None) -> tuple[AgentCall, ...]:
    query = sa.select(agent_calls).order_by(agent_calls.c.number.desc()).limit(limit)
    if run_id is not None:
        query = query.where(agent_calls.c.run_id == run_id)
    if since > 0:
        query = query.where(agent_calls.c.began_at >= since)
    return tuple(_call_of(row) for row in tx.all(query))


def _row(call: AgentCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "run_id": call.run_id,
        "iteration": call.iteration,
        "phase": call.phase,
        "step_id": call.step_id,
        "agent": plain(call.agent),
        "driver": plain(call.driver),
        "model": plain(call.model),
        "limits": dumps(call.limits.model_dump(mode="json")),
    }


def _call_of(row: Row) -> AgentCall:
    return record_of(AgentCall, row._mapping, "limits", end=None if row.result is None else loads(row.result))
