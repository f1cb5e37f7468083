"""Claims and leases: who may move a run, and how that right is lost. One holder per run and per group, by epoch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.events import COVERS, EventKind
from becket.kernel.contract.run import Move, Run, RunStatus
from becket.kernel.contract.store import AtWork, Claim
from becket.kernel.store import raised
from becket.kernel.store.ending import finish, free_group
from becket.kernel.store.locked import LockedRun, fenced, find_and_lock, lock
from becket.kernel.store.records import carried_of, steps_of
from becket.kernel.store.rows import dumps
from becket.kernel.store.sealing import SEALED_LATER
from becket.kernel.store.tables import controls, leases, runs, specs, workers
from becket.kernel.store.tx import Row, Tx

_QUEUED = runs.c.status == sa.literal_column("'queued'")
_RUNNING = runs.c.status == sa.literal_column("'running'")

_GROUP_OF = sa.select(runs.c.group_name).where(runs.c.run_id == sa.bindparam("run_id"))
_SPEC_TEXT = sa.select(specs.c.text).where(specs.c.digest == sa.bindparam("digest"))
_BRAKES = sa.select(
    sa.exists().where(controls.c.scope.in_(["all", sa.bindparam("loop_scope", type_=sa.Text)])).label("paused"),
    sa.exists().where(workers.c.worker_id == sa.bindparam("worker"), workers.c.dead).label("dead"),
)
_LEASE = sa.select(leases).where(leases.c.name == sa.bindparam("name")).with_for_update()
_LOOK_AT_LEASE = sa.select(leases).where(leases.c.name == sa.bindparam("name"))
_DROP_LEASE = sa.delete(leases).where(leases.c.name == sa.bindparam("this_name"))
_TAKE_LEASE = sa.insert(leases)

_other = runs.alias("other")
_other_is_ready = sa.and_(
    _other.c.ended_at.is_(None),
    _other.c.status == sa.literal_column("'queued'"),
    ~_other.c.held,
    ~sa.exists().where(controls.c.scope == sa.literal_column("'loop:'").op("||")(_other.c.loop_id)),
)
_FIRST_OF_GROUP = (
    sa.select(_other.c.run_id)
    .where(_other.c.group_name == sa.bindparam("group"), _other_is_ready)
    .order_by(_other.c.number)
    .limit(1)
)
_STARTABLE = (
    sa.select(runs.c.run_id, runs.c.segment)
    .where(
        _QUEUED,
        ~runs.c.held,
        ~sa.exists().where(
            sa.or_(
                controls.c.scope == sa.literal_column("'all'"),
                controls.c.scope == sa.literal_column("'loop:'").op("||")(runs.c.loop_id),
            )
        ),
        ~sa.exists().where(leases.c.name == runs.c.group_name, leases.c.until > sa.bindparam("now")),
        ~sa.exists().where(
            _other.c.group_name == runs.c.group_name, _other.c.number < runs.c.number, _other_is_ready
        ),
    )
    .order_by(runs.c.number)
    .limit(sa.bindparam("most"))
)  # fmt: skip
_STARTABLE_AMONG = _STARTABLE.where(runs.c.run_id.in_(sa.bindparam("among", expanding=True)))
_DEAD_WORKERS = sa.select(workers.c.worker_id).where(workers.c.dead)
_LOST = (
    sa.select(runs.c.run_id)
    .where(_RUNNING, sa.or_(runs.c.lease_until <= sa.bindparam("now"), runs.c.worker.in_(_DEAD_WORKERS)))
    .order_by(runs.c.number)
)
_AT_WORK = (
    sa.select(runs.c.run_id, runs.c.epoch, runs.c.cancel_asked)
    .where(_RUNNING, runs.c.worker == sa.bindparam("worker"))
    .order_by(runs.c.number)
)


def claim(tx: Tx, run_id: str, segment: int, worker: str, ttl: float) -> Claim | None:
    run = _lock_in_group(tx, run_id)
    if run is None or run["segment"] != segment or run.status is not RunStatus.queued or run["held"]:
        return None
    brakes = tx.one(_BRAKES, loop_scope=f"loop:{run['loop_id']}", worker=worker)
    if brakes is None or brakes.paused or brakes.dead:
        return None
    if run["group_name"] is not None and not _take_group(tx, run, worker, ttl):
        return None
    run.move(Move.claim)
    run.set(epoch=run["epoch"] + 1, worker=worker, lease_until=tx.now + ttl)
    covers = {COVERS: list(SEALED_LATER)}
    told = {"worker": worker, "epoch": run["epoch"], "segment": segment, "iteration": run["iteration"], **covers}
    run.add(EventKind.run_claimed, told)
    run.save()
    return _whole_claim(tx, run)


def _lock_in_group(tx: Tx, run_id: str) -> LockedRun | None:
    if tx.many_writers:
        row = tx.one(_GROUP_OF, run_id=run_id)
        if row is not None and row.group_name is not None:
            tx.mutex([f"group:{row.group_name}"])
    return find_and_lock(tx, run_id)


def _take_group(tx: Tx, run: LockedRun, worker: str, ttl: float) -> bool:
    group = run["group_name"]
    # Whose turn it is is asked first: a holder that is ousted now goes behind the run that takes its place.
    first = tx.one(_FIRST_OF_GROUP, group=group)
    if first is None or first.run_id != run.run_id:
        return False
    lease = tx.one(_LOOK_AT_LEASE, name=group)
    if lease is not None and (lease.until > tx.now or not _oust(tx, lease)):
        return False
    tx.run(_DROP_LEASE, {"this_name": group})
    tx.run(_TAKE_LEASE, {"name": group, "run_id": run.run_id, "worker": worker, "until": tx.now + ttl})
    return True


def _oust(tx: Tx, seen: Row) -> bool:
    """Fence the holder of an expired lease. Its run is locked before the lease, in the order its own writes use."""
    holder = find_and_lock(tx, seen.run_id)
    lease = tx.one(_LEASE, name=seen.name)
    if lease is not None and (lease.run_id != seen.run_id or lease.until > tx.now):
        return False
    if holder is not None and holder.status is RunStatus.running:
        requeue(holder, "its lease expired and another run of the group took it")
    return True


def _whole_claim(tx: Tx, run: LockedRun) -> Claim:
    spec = tx.one(_SPEC_TEXT, digest=run["spec_digest"])
    return Claim(
        run=run.record(),
        spec_text="" if spec is None else spec.text,
        steps=steps_of(tx, run.run_id, run["iteration"]),
        conditions=raised.of_run(tx, run.run_id),
        carried=carried_of(tx, run.run_id),
    )


def requeue(run: LockedRun, why: str) -> None:
    """Take a run from its worker: the next write under the old epoch is fenced. Saves the run."""
    worker = run["worker"]
    free_group(run)
    run.move(Move.requeue)
    run.set(epoch=run["epoch"] + 1, segment=run["segment"] + 1)
    run.add(EventKind.run_requeued, {"worker": worker, "why": why, "segment": run["segment"]})
    run.save()


def requeue_lost(tx: Tx) -> tuple[str, ...]:
    dead = set(tx.ids(_DEAD_WORKERS))
    return tuple(run_id for run_id in tx.ids(_LOST, now=tx.now) if _requeue_if_lost(tx, run_id, dead))


def _requeue_if_lost(tx: Tx, run_id: str, dead: set[str]) -> bool:
    run = find_and_lock(tx, run_id)
    if run is None or run.status is not RunStatus.running:
        return False
    if (why := _lost(run, dead)) is not None:
        requeue(run, why)
    return why is not None


def _lost(run: LockedRun, dead: Collection[str]) -> str | None:
    """Why nobody can be at work on a running run, judged by the rows alone."""
    if run["worker"] in dead:
        return "its worker is dead"
    if run["lease_until"] is None or run["lease_until"] <= run.tx.now:
        return "its lease expired"
    return None


def give_back(tx: Tx, run_id: str, epoch: int) -> None:
    requeue(fenced(tx, run_id, epoch), "its worker could not go on")


def give_back_all(tx: Tx, worker: str) -> None:
    """A worker leaves in good order and gives back what it has."""
    for claimed in at_work(tx, worker):
        run = find_and_lock(tx, claimed.run_id)
        if run is not None and run.status is RunStatus.running and run["worker"] == worker:
            requeue(run, "its worker stopped")


def at_work(tx: Tx, worker: str) -> tuple[AtWork, ...]:
    return tuple(AtWork.model_validate(dict(row._mapping)) for row in tx.all(_AT_WORK, worker=worker))


def ask_cancel(tx: Tx, run_id: str, by: Caller, reason: str, state: Mapping[str, Json] | None = None) -> Run:
    run = lock(tx, run_id)
    detail: dict[str, Json] = {"by": by.name, "note": reason}
    if run.status is RunStatus.running and (why := _lost(run, tx.ids(_DEAD_WORKERS))) is not None:
        requeue(run, why)
    if run.status in (RunStatus.queued, RunStatus.waiting):
        run.add(EventKind.cancel_asked, {**detail, **by.told()})
        finish(run, Move.cancel, "cancelled", detail, state=state)
    elif run.status is RunStatus.running and not run["cancel_asked"]:
        run.set(cancel_asked=True, detail=dumps(detail))
        run.add(EventKind.cancel_asked, {**detail, **by.told()})
        run.save()
    return run.record()


def startable(tx: Tx, limit: int = 100, among: Collection[str] | None = None) -> tuple[tuple[str, int], ...]:
    if among is None:
        found = tx.all(_STARTABLE, now=tx.now, most=limit)
    else:
        found = tx.all(_STARTABLE_AMONG, now=tx.now, most=limit, among=list(among))
    return tuple((row.run_id, row.segment) for row in found)
