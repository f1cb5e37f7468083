"""Calls of agents: a row and a booking before each, the outcome and what was really used after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from becket.adapters.store import money
from becket.adapters.store.locked import fenced
from becket.adapters.store.rows import dumps, loads, plain
from becket.adapters.store.tables import agent_calls
from becket.adapters.store.tx import Row, Tx
from becket.contract.calls import AgentCall, CallEnd
from becket.contract.errors import NotFound
from becket.contract.store import SpendLimit

_CALL = sa.select(agent_calls).where(agent_calls.c.call_id == sa.bindparam("call_id")).with_for_update()
_END = sa.update(agent_calls).where(agent_calls.c.call_id == sa.bindparam("this"))


def begin_call(
    tx: Tx, call: AgentCall, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
) -> str | None:
    run = fenced(tx, call.run_id, epoch)
    refused = money.book(tx, run, call.call_id, amounts, limits)
    if refused is None:
        tx.add_new(agent_calls, {**_row(call), "loop_id": run["loop_id"], "began_at": tx.now})
    return refused


def end_call(tx: Tx, call_id: str, end: CallEnd, amounts: dict[str, float]) -> None:
    known = tx.one(_CALL, call_id=call_id)
    if known is None:
        raise NotFound(f"no call {call_id!r} was begun here; begin a call before you end it")
    if known.ended_at is None:
        money.settle_spend(tx, call_id, amounts)
        tx.run(_END, {"this": call_id, "ended_at": tx.now, "result": dumps(end.model_dump(mode="json"))})


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
    return AgentCall(
        call_id=row.call_id,
        run_id=row.run_id,
        loop_id=row.loop_id,
        iteration=row.iteration,
        phase=row.phase,
        step_id=row.step_id,
        agent=row.agent,
        driver=row.driver,
        model=row.model,
        limits=loads(row.limits),
        began_at=row.began_at,
        ended_at=row.ended_at,
        end=None if row.result is None else CallEnd.model_validate(loads(row.result)),
    )
