"""What people decide: approvals, handoffs, brakes. Each answer and the signal it sends are one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.caller import ROLES, Caller
from becket.kernel.contract.errors import ActionFailed, UsageError
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import EXPIRED, UNSETTLED, Approval, ApprovalState, Handoff, HandoffState
from becket.kernel.contract.spec import Signal
from becket.kernel.contract.store import Control
from becket.kernel.store.locked import LockedRun, fenced, find_and_lock
from becket.kernel.store.lookup import by_prefix
from becket.kernel.store.rows import approval_of, handoff_of, plain, record_of
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import approvals, controls, handoffs
from becket.kernel.store.tx import Row, Tx
from becket.kernel.store.waking import deliver

USUAL_ROLE = "approver"

_ADD_APPROVAL = sa.insert(approvals)
_APPROVAL = sa.select(approvals).where(approvals.c.approval_id == sa.bindparam("approval_id"))
_LOCK_APPROVAL = _APPROVAL.with_for_update()
_USED_BEFORE = sa.select(approvals.c.approval_id).where(
    approvals.c.run_id == sa.bindparam("run_id"),
    approvals.c.ask_key.like(sa.bindparam("asked")),
    approvals.c.state == ApprovalState.used.value,
)
_ASKED_BEFORE = sa.select(approvals).where(
    approvals.c.run_id == sa.bindparam("run_id"), approvals.c.ask_key == sa.bindparam("ask_key")
)
_CHANGE_APPROVAL = sa.update(approvals).where(approvals.c.approval_id == sa.bindparam("this"))
_HANDOFF = sa.select(handoffs).where(handoffs.c.handoff_id == sa.bindparam("handoff_id"))
_LOCK_HANDOFF = _HANDOFF.with_for_update()
_CHANGE_HANDOFF = sa.update(handoffs).where(handoffs.c.handoff_id == sa.bindparam("this"))
_CONTROLS = sa.select(controls).order_by(controls.c.at, controls.c.scope)
_DROP_CONTROL = sa.delete(controls).where(controls.c.scope == sa.bindparam("this"))

_FROM = {
    HandoffState.taken: (HandoffState.open,),
    HandoffState.accepted: (HandoffState.open, HandoffState.taken),
    HandoffState.changing: (HandoffState.open, HandoffState.taken),
    HandoffState.open: (HandoffState.changing,),
    HandoffState.done: UNSETTLED,
    HandoffState.declined: UNSETTLED,
}
"""Which states a person may change a handoff from."""


def ask_approval(tx: Tx, run_id: str, epoch: int, approval: Approval) -> Approval:
    run = fenced(tx, run_id, epoch)
    # The usual role is left out: questions that are open since before the others counted keep their key.
    roles = [] if approval.role == USUAL_ROLE else [approval.role]
    question = digest_of([approval.question, approval.bound_to, *roles])[:32]
    used = len(tx.ids(_USED_BEFORE, run_id=run_id, asked=f"{question}:%"))
    ask_key = f"{question}:{used}"  # what was used answers nothing more
    known = tx.one(_ASKED_BEFORE, run_id=run_id, ask_key=ask_key)
    if known is not None:
        return approval_of(known)
    _rank(approval.role)
    text = {"question": plain(approval.question), "note": plain(approval.note)}
    tx.run(_ADD_APPROVAL, {**approval.model_dump(mode="json"), **text, "run_id": run_id, "ask_key": ask_key})
    run.add(
        EventKind.approval_asked,
        {"approval_id": approval.approval_id, "question": approval.question, "bound_to": approval.bound_to,
         "role": approval.role, "expires_at": approval.expires_at, **row_seals(tx, approval.approval_id, "approval")},
    )  # fmt: skip
    run.save()
    return get_approval(tx, approval.approval_id)


def decide_approval(tx: Tx, approval_id: str, approve: bool, by: Caller, bound_to: str | None, note: str) -> Approval:
    row, run = _lock_approval(tx, approval_id)
    if row.state != ApprovalState.asked:
        raise UsageError(f"approval {row.approval_id} is {row.state} already; nothing was changed")
    if row.expires_at <= tx.now:
        raise UsageError(f"approval {row.approval_id} has expired; the run must ask again")
    _allowed(row, by)
    if bound_to is not None and bound_to != row.bound_to:
        raise UsageError(f"approval {row.approval_id} is about {row.bound_to}, not about {bound_to}; look at it again")
    state = ApprovalState.approved if approve else ApprovalState.denied
    decided = {"decided_by": by.name, "decided_role": by.role, "decided_at": tx.now, "note": plain(note)}
    return _answer(tx, run, row, state, by, decided)


def revoke_approval(tx: Tx, approval_id: str, by: Caller, note: str) -> Approval:
    """Whoever could have decided may take it back."""
    row, run = _lock_approval(tx, approval_id)
    _allowed(row, by)
    if row.state not in (ApprovalState.asked, ApprovalState.approved):
        raise UsageError(f"approval {row.approval_id} is {row.state}; there is nothing to take back")
    return _answer(tx, run, row, ApprovalState.revoked, by, {"note": plain(note)})


def _answer(
    tx: Tx, run: LockedRun | None, row: Row, state: ApprovalState, by: Caller, columns: dict[str, Any]
) -> Approval:
    tx.run(_CHANGE_APPROVAL, {"this": row.approval_id, "state": state.value, **columns})
    if run is not None:
        said: dict[str, Json] = {"approval_id": row.approval_id, "state": state.value, **by.told()}
        more = {"bound_to": row.bound_to, "note": columns["note"], **row_seals(tx, row.approval_id, "approval")}
        run.add(EventKind.approval_decided, {**said, **more})
        deliver(run, Signal.approval, said, f"approval:{row.approval_id}:{state.value}")
        run.save()
    return get_approval(tx, row.approval_id)


def use_approval(tx: Tx, approval_id: str, run_id: str, epoch: int, bound_to: str, used_by: str) -> Approval:
    run = fenced(tx, run_id, epoch)
    row = tx.one(_LOCK_APPROVAL, approval_id=approval_id)
    if row is None or row.run_id != run_id:
        raise ActionFailed(f"this run has no approval {approval_id}", kind="approval")
    if row.bound_to != bound_to:
        raise ActionFailed(f"approval {approval_id} is about {row.bound_to}, not about {bound_to}", kind="approval")
    if row.state == ApprovalState.used:
        if row.used_by == used_by:
            return approval_of(row)
        raise ActionFailed(f"approval {approval_id} was used by {row.used_by} already", kind="approval")
    if row.state != ApprovalState.approved:
        raise ActionFailed(f"approval {approval_id} is {row.state}, not approved", kind="approval")
    if row.expires_at <= tx.now:
        raise ActionFailed(f"approval {approval_id} has expired", kind=EXPIRED)
    tx.run(_CHANGE_APPROVAL, {"this": approval_id, "state": "used", "used_by": used_by})
    said = {"approval_id": approval_id, "bound_to": bound_to, "used_by": used_by}
    run.add(EventKind.approval_used, {**said, **row_seals(tx, approval_id, "approval")})
    run.save()
    return get_approval(tx, approval_id)


def _allowed(row: Row, by: Caller) -> None:
    if _rank(by.role) < _rank(row.role):
        raise UsageError(f"approval {row.approval_id} needs the role {row.role}; {by.name} has the role {by.role}")


def _rank(role: str) -> int:
    if role not in ROLES:
        raise UsageError(f"{role!r} is not a role; the roles are {', '.join(ROLES)}")
    return ROLES.index(role)


def _find_approval(tx: Tx, approval_id: str) -> Row:
    found = tx.one(_APPROVAL, approval_id=approval_id)
    return found or by_prefix(tx, approvals.c.approval_id, approval_id, "approval", "becket approvals list")


def _lock_approval(tx: Tx, approval_id: str) -> tuple[Row, LockedRun | None]:
    seen = _find_approval(tx, approval_id)
    run = find_and_lock(tx, seen.run_id)
    return tx.one(_LOCK_APPROVAL, approval_id=seen.approval_id) or seen, run


def get_approval(tx: Tx, approval_id: str) -> Approval:
    return approval_of(_find_approval(tx, approval_id))


def list_approvals(tx: Tx, run_id: str | None = None, open_only: bool = False) -> tuple[Approval, ...]:
    query = sa.select(approvals).order_by(approvals.c.asked_at, approvals.c.approval_id)
    if run_id is not None:
        query = query.where(approvals.c.run_id == run_id)
    if open_only:
        query = query.where(approvals.c.state == "asked", approvals.c.expires_at > tx.now)
    return tuple(approval_of(row) for row in tx.all(query))


def list_handoffs(tx: Tx, states: Sequence[HandoffState] = (), run_id: str | None = None) -> tuple[Handoff, ...]:
    query = sa.select(handoffs).order_by(handoffs.c.created_at, handoffs.c.handoff_id)
    if states:
        query = query.where(handoffs.c.state.in_([state.value for state in states]))
    if run_id is not None:
        query = query.where(handoffs.c.run_id == run_id)
    return tuple(handoff_of(row) for row in tx.all(query))


def _find_handoff(tx: Tx, handoff_id: str) -> Row:
    found = tx.one(_HANDOFF, handoff_id=handoff_id)
    return found or by_prefix(tx, handoffs.c.handoff_id, handoff_id, "handoff", "becket handoffs list")


def get_handoff(tx: Tx, handoff_id: str) -> Handoff:
    return handoff_of(_find_handoff(tx, handoff_id))


def change_handoff(tx: Tx, handoff_id: str, state: HandoffState, by: Caller, note: str) -> Handoff:
    seen = _find_handoff(tx, handoff_id)
    run = find_and_lock(tx, seen.run_id)
    row = tx.one(_LOCK_HANDOFF, handoff_id=seen.handoff_id) or seen
    if row.state == state.value:
        raise UsageError(f"handoff {row.handoff_id} is {row.state} already, by {row.taken_by or by.name}")
    if row.state not in _FROM.get(state, ()):
        raise UsageError(f"handoff {row.handoff_id} is {row.state}; it cannot become {state}")
    columns = {"state": state.value, "note": plain(note), "updated_at": tx.now, "taken_by": row.taken_by or by.name}
    if state in (HandoffState.accepted, HandoffState.changing):
        columns["taken_by"] = by.name
    elif state is HandoffState.open:
        columns["taken_by"] = None
    tx.run(_CHANGE_HANDOFF, {"this": row.handoff_id, **columns})
    if run is not None:
        said = {"handoff_id": row.handoff_id, "state": state.value, **by.told(), "note": note}
        run.add(EventKind.handoff_changed, {**said, **row_seals(tx, row.handoff_id, "handoff")})
        run.save()
    return get_handoff(tx, row.handoff_id)


def set_control(tx: Tx, scope: str, on: bool, by: Caller, note: str) -> tuple[Control, ...]:
    if scope != "all" and not (scope.startswith("loop:") and scope != "loop:"):
        raise UsageError(f"{scope!r} is not a scope; it is `all` or `loop:NAME`")
    if on:
        who = {"set_by": by.name, "role": by.role, "via": by.via.value}
        tx.add_new(controls, {"scope": scope, **who, "note": plain(note), "at": tx.now})
    else:
        tx.run(_DROP_CONTROL, {"this": scope})
    return list_controls(tx)


def list_controls(tx: Tx) -> tuple[Control, ...]:
    return tuple(record_of(Control, row._mapping, by=row.set_by) for row in tx.all(_CONTROLS))
