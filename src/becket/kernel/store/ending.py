"""How runs end, whoever ends them: one last write that frees the group and tells the parents."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import Handoff
from becket.kernel.contract.run import ENDED, IllegalMove, Move, Run, RunStatus
from becket.kernel.contract.spec import Signal
from becket.kernel.contract.state import STATE
from becket.kernel.contract.store import End, SignalEnd
from becket.kernel.store.links import open_parents
from becket.kernel.store.locked import LockedRun, fenced, find_and_lock
from becket.kernel.store.rows import dumps, handoff_row, plain, run_of
from becket.kernel.store.sealing import row_seals
from becket.kernel.store.tables import approvals, handoffs, leases, runs
from becket.kernel.store.tx import Tx
from becket.kernel.store.waking import deliver, drop_wakeups

_FREE = sa.delete(leases).where(leases.c.run_id == sa.bindparam("this_run"))
_OPEN_QUESTIONS = (
    sa.select(approvals.c.approval_id)
    .where(approvals.c.run_id == sa.bindparam("run_id"), approvals.c.state == "asked")
    .order_by(approvals.c.asked_at, approvals.c.approval_id)
)
_CLOSE_QUESTION = sa.update(approvals).where(approvals.c.approval_id == sa.bindparam("this"))
_ADD_HANDOFF = sa.insert(handoffs)
_QUEUED_OF_GROUP = (
    sa.select(runs.c.run_id)
    .where(runs.c.group_name == sa.bindparam("group"), runs.c.ended_at.is_(None))
    .where(runs.c.status == "queued", ~runs.c.held)
    .order_by(runs.c.number)
    .limit(100)
)
_UNFOLLOWED = (
    sa.select(runs)
    .where(runs.c.follow_since.is_not(None))
    .order_by(runs.c.follow_since, runs.c.number)
    .limit(sa.bindparam("most"))
)
_FOLLOWED = sa.update(runs).where(runs.c.run_id == sa.bindparam("this_run")).values(follow_since=None)


def free_group(run: LockedRun) -> None:
    """Give up the claim and the lease on the group, if it holds one."""
    run.set(worker=None, lease_until=None)
    if run["group_name"] is not None:
        run.tx.run(_FREE, {"this_run": run.run_id})


def finish(
    run: LockedRun,
    move: Move,
    reason: str,
    detail: dict[str, Json],
    handoff: Handoff | None = None,
    state: Mapping[str, Json] | None = None,
) -> list[str]:
    """Ends and saves a locked run. Returns the parents that woke."""
    tx = run.tx
    before = run.status
    run.move(move)
    if run.status not in ENDED:
        raise IllegalMove(f"{move} does not end a run")
    free_group(run)
    if before is RunStatus.waiting:
        drop_wakeups(tx, run.run_id)
    for approval_id in tx.ids(_OPEN_QUESTIONS, run_id=run.run_id):
        _close_question(run, approval_id)
    if handoff is not None:
        tx.run(_ADD_HANDOFF, handoff_row(handoff))
        opened = {"handoff_id": handoff.handoff_id, "owner": handoff.owner, "reason": handoff.reason}
        run.add(EventKind.handoff_opened, {**opened, **row_seals(tx, handoff.handoff_id, "handoff")})
    seen = {STATE: dict(state)} if state else {}
    run.add(EventKind.run_ended, {"status": run.status.value, "reason": plain(reason), "detail": detail, **seen})
    run.set(
        reason=plain(reason), detail=dumps(detail), ended_at=tx.now, follow_since=tx.now, open_subject=None,
        waiting_on="[]",
    )  # fmt: skip
    run.save()
    return [parent for parent in open_parents(tx, run.run_id) if _tell(run, parent, reason)]


def _close_question(run: LockedRun, approval_id: str) -> None:
    """A question that nobody answered expires with its run."""
    expired = {"state": "expired", "note": "the run ended"}
    run.tx.run(_CLOSE_QUESTION, {"this": approval_id, **expired})
    said = {"approval_id": approval_id, **expired, **row_seals(run.tx, approval_id, "approval")}
    run.add(EventKind.approval_decided, said)


def _tell(run: LockedRun, parent_id: str, reason: str) -> bool:
    """True if that woke the parent."""
    parent = find_and_lock(run.tx, parent_id)
    if parent is None:
        return False
    payload = {"run_id": run.run_id, "loop_id": run["loop_id"], "status": run.status.value, "reason": reason}
    said = deliver(parent, Signal.child, payload, f"child:{run.run_id}:{parent_id}")
    parent.save()
    return said is SignalEnd.woke


def end(tx: Tx, run_id: str, epoch: int, end: End) -> tuple[str, ...]:
    run = fenced(tx, run_id, epoch)
    run.add_all(end.events)
    woken = finish(run, end.move, end.reason, end.detail, end.handoff, end.state)
    group = run["group_name"]
    queued = tx.ids(_QUEUED_OF_GROUP, group=group) if group is not None else []
    return (*queued, *(parent for parent in woken if parent not in queued))


def unfollowed(tx: Tx, limit: int = 100) -> tuple[Run, ...]:
    return tuple(run_of(row._mapping) for row in tx.all(_UNFOLLOWED, most=limit))


def followed(tx: Tx, run_id: str) -> None:
    tx.run(_FOLLOWED, {"this_run": run_id})
