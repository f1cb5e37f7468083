"""The door's rows: intent first, then how each attempt ended."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import SETTLED, Effect, EffectCall, EffectState, Origin
from becket.kernel.contract.errors import EffectRefused, NotFound
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.spec import EffectClass
from becket.kernel.store.locked import lock_for
from becket.kernel.store.rows import dumps, effect_of, maybe_plain, plain
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import effects
from becket.kernel.store.tx import Row, Tx
from becket.kernel.store.waking import LEFT_BEHIND, RETRYING

_ADD = sa.insert(effects)
_GET = sa.select(effects).where(effects.c.key == sa.bindparam("key"))
_LOCK = _GET.with_for_update()
_CHANGE = sa.update(effects).where(effects.c.key == sa.bindparam("this_key"))
_DUE_RETRYING = (
    sa.select(effects)
    .where(RETRYING, effects.c.next_at <= sa.bindparam("now"))
    .order_by(effects.c.next_at)
    .limit(sa.bindparam("most"))
)
_DUE_LEFT_BEHIND = (
    sa.select(effects)
    .where(LEFT_BEHIND, effects.c.settle_at <= sa.bindparam("now"))
    .order_by(effects.c.settle_at)
    .limit(sa.bindparam("most"))
)
_NOT_LET_OUT = (EffectState.refused.value, EffectState.dry_run.value)
_COUNT = (
    sa.select(sa.func.count())
    .select_from(effects)
    .where(effects.c.name == sa.bindparam("name"), effects.c.created_at >= sa.bindparam("since"))
    .where(effects.c.state.not_in(_NOT_LET_OUT))
)


def intend(
    tx: Tx, key: str, origin: Origin, epoch: int | None, call: EffectCall, digest: str, class_: EffectClass,
    state: EffectState, settle_at: float, reason: str = "",
) -> tuple[Effect, bool]:  # fmt: skip
    if epoch is None:
        tx.mutex([f"effect:{key}"])
    run = lock_for(tx, origin.run_id, epoch)
    known = tx.one(_LOCK, key=key)
    if known is not None:
        if known.digest != digest:
            raise EffectRefused(
                f"the effect {call.name} on {call.target} was asked for before with another payload; "
                "give the second one a label of its own"
            )
        return effect_of(known), False
    row = {
        "key": key,
        **origin.model_dump(),
        "name": call.name,
        "target": plain(call.target),
        "payload": dumps(call.payload),
        "label": plain(call.label),
        "approval": maybe_plain(call.approval),
        "defer": call.defer,
        "digest": digest,
        "class": class_.value,
        "state": state.value,
        "attempts": 1 if state is EffectState.intended else 0,
        "settle_at": settle_at,
        "next_at": None,
        "result": "{}",
        "reason": plain(reason),
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.run(_ADD, row)
    if run is not None:
        said = {"key": key, "name": call.name, "target": call.target, "state": state.value, "reason": reason}
        run.add(EventKind.effect_intended, {**said, **row_seals(tx, key, "effect")})
        run.save()
    return _read(tx, key), True


def attempt(tx: Tx, key: str, epoch: int | None, settle_at: float) -> Effect:
    row = _lock(tx, key, epoch)
    state = EffectState(row.state)
    if state in SETTLED:
        raise EffectRefused(f"the effect {row.name} on {row.target} is {state}; it is not tried again")
    due = row.settle_at if state is EffectState.intended else row.next_at or 0.0
    if epoch is None and due > tx.now:
        # Without a claim nothing else keeps two processes from making the same attempt.
        raise EffectRefused(f"another attempt at {row.name} on {row.target} came first; look again when it is due")
    changed = {"state": "intended", "attempts": row.attempts + 1, "settle_at": settle_at, "next_at": None}
    tx.run(_CHANGE, {"this_key": key, **changed, "updated_at": tx.now})
    return _read(tx, key)


def settle(
    tx: Tx, key: str, epoch: int | None, state: EffectState, result: dict[str, Json], reason: str,
    next_at: float | None = None,
) -> Effect:  # fmt: skip
    known = _known(tx, key)
    run = lock_for(tx, known.run_id, epoch)
    row = tx.one(_LOCK, key=key)
    if row is None or EffectState(row.state) in SETTLED:
        return effect_of(row or known)
    changed = {"state": state.value, "result": dumps(result), "reason": plain(reason), "next_at": next_at}
    tx.run(_CHANGE, {"this_key": key, **changed, "updated_at": tx.now})
    if run is not None and state in SETTLED:
        said = {"key": key, "name": row.name, "target": row.target, "state": state.value, "reason": reason}
        run.add(EventKind.effect_settled, {**said, **row_seals(tx, key, "effect")})
        run.save()
    return _read(tx, key)


def _known(tx: Tx, key: str) -> Row:
    row = tx.one(_GET, key=key)
    if row is None:
        raise NotFound(f"the journal has no effect {key}; `becket runs show RUN` lists those of a run")
    return row


def _lock(tx: Tx, key: str, epoch: int | None) -> Row:
    """The run's lock comes first, as everywhere."""
    known = _known(tx, key)
    lock_for(tx, known.run_id, epoch)
    return tx.one(_LOCK, key=key) or known


def _read(tx: Tx, key: str) -> Effect:
    return effect_of(_known(tx, key))


def get_effect(tx: Tx, key: str) -> Effect | None:
    row = tx.one(_GET, key=key)
    return None if row is None else effect_of(row)


def list_effects(tx: Tx, run_id: str | None = None, states: Sequence[EffectState] = ()) -> tuple[Effect, ...]:
    query = sa.select(effects).order_by(effects.c.number)
    if run_id is not None:
        query = query.where(effects.c.run_id == run_id)
    if states:
        query = query.where(effects.c.state.in_([state.value for state in states]))
    return tuple(effect_of(row) for row in tx.all(query))


def due_effects(tx: Tx, limit: int = 20) -> tuple[Effect, ...]:
    # Two questions with an index each; one question with OR would read every effect there is.
    due = [row for query in (_DUE_RETRYING, _DUE_LEFT_BEHIND) for row in tx.all(query, now=tx.now, most=limit)]
    return tuple(effect_of(row) for row in sorted(due, key=lambda row: int(row.number))[:limit])


def count_effects(tx: Tx, name: str, since: float) -> int:
    row = tx.one(_COUNT, name=name, since=since)
    return 0 if row is None else int(row[0])
