"""Workers, the triggers' cursors, and alerts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import NotFound, WorkerDeclaredDead
from becket.kernel.contract.run import NewRun, RunStatus, Started
from becket.kernel.contract.store import Alert, AlertState, Cursor, Heartbeat, WorkerInfo
from becket.kernel.store.claiming import give_back_all
from becket.kernel.store.rows import dumps, plain, record_of
from becket.kernel.store.runs import start, start_mutexes
from becket.kernel.store.tables import alerts, cursors, leases, runs, workers
from becket.kernel.store.tx import Row, Tx

_DROP_WORKER = sa.delete(workers).where(workers.c.worker_id == sa.bindparam("this"))
_ADD_WORKER = sa.insert(workers)
_BURY_OTHERS = sa.update(workers).where(workers.c.worker_id != sa.bindparam("this")).values(dead=True)
_BURY = sa.update(workers).where(workers.c.worker_id == sa.bindparam("this")).values(dead=True)
_OF_WORKER = (runs.c.status == "running", runs.c.worker == sa.bindparam("this_worker"), ~runs.c.cancel_asked)
_VOUCH_RUN = sa.update(runs).where(*_OF_WORKER)
_VOUCH_LEASE = sa.update(leases).where(leases.c.run_id.in_(sa.select(runs.c.run_id).where(*_OF_WORKER)))
_BEAT = sa.update(workers).where(workers.c.worker_id == sa.bindparam("this"), ~workers.c.dead)
_CLAIMED = (
    sa.select(runs.c.run_id, runs.c.epoch, runs.c.status)
    .where(runs.c.run_id.in_(sa.bindparam("wanted", expanding=True)))
    .order_by(runs.c.number)
    .with_for_update()
)
_RENEW_RUN = sa.update(runs).where(runs.c.run_id == sa.bindparam("this_run"))
_RENEW_LEASE = sa.update(leases).where(leases.c.run_id == sa.bindparam("this_run"))
_WORKERS = sa.select(workers).order_by(workers.c.started_at, workers.c.worker_id)

_CURSORS = sa.select(cursors)
_CURSOR = sa.select(cursors).where(cursors.c.name == sa.bindparam("name")).with_for_update()
_MOVE_CURSOR = sa.update(cursors).where(cursors.c.name == sa.bindparam("this"))
_DROP_CURSOR = sa.delete(cursors).where(cursors.c.name == sa.bindparam("this"))

_ADD_ALERT = sa.insert(alerts)
_ALERT = sa.select(alerts).where(alerts.c.key == sa.bindparam("key")).with_for_update()
_CHANGE_ALERT = sa.update(alerts).where(alerts.c.key == sa.bindparam("this"))


def now(tx: Tx) -> float:
    return tx.now


def join(tx: Tx, worker: WorkerInfo, alone: bool) -> None:
    tx.run(_DROP_WORKER, {"this": worker.worker_id})
    tx.run(_ADD_WORKER, {**worker.model_dump(), "beat_at": tx.now, "dead": False})
    if alone:
        tx.run(_BURY_OTHERS, {"this": worker.worker_id})


def attend(tx: Tx, alive: Collection[str], gone: Collection[str], ttl: float) -> None:
    tx.run(_BURY, [{"this": worker} for worker in gone])
    tx.run(_VOUCH_RUN, [{"this_worker": worker, "lease_until": tx.now + ttl} for worker in alive])
    tx.run(_VOUCH_LEASE, [{"this_worker": worker, "until": tx.now + ttl} for worker in alive])


def beat(tx: Tx, worker: str, ttl: float, at_work: Mapping[str, int]) -> Heartbeat:
    if not tx.run(_BEAT, {"this": worker, "beat_at": tx.now}):
        raise WorkerDeclaredDead(
            f"worker {worker} was declared dead and its runs were given to others; this process must stop"
        )
    if not at_work:
        return Heartbeat()
    # Locked in one order first: an UPDATE of many rows takes them in any.
    found = {row.run_id: row for row in tx.all(_CLAIMED, wanted=list(at_work))}
    ours = [run_id for run_id, row in found.items() if row.epoch == at_work[run_id]]
    kept = [run_id for run_id in ours if found[run_id].status == RunStatus.running]
    tx.run(_RENEW_RUN, [{"this_run": run_id, "lease_until": tx.now + ttl} for run_id in kept])
    tx.run(_RENEW_LEASE, [{"this_run": run_id, "until": tx.now + ttl} for run_id in kept])
    return Heartbeat(lost=tuple(sorted(at_work.keys() - set(ours))))


def leave(tx: Tx, worker: str) -> None:
    give_back_all(tx, worker)
    tx.run(_DROP_WORKER, {"this": worker})


def list_workers(tx: Tx) -> tuple[WorkerInfo, ...]:
    return tuple(record_of(WorkerInfo, row._mapping) for row in tx.all(_WORKERS))


def list_cursors(tx: Tx, prefix: str = "") -> tuple[Cursor, ...]:
    # Sorted here: the order of texts is a matter of the database's locale.
    found = (record_of(Cursor, row._mapping) for row in tx.all(_CURSORS) if row.name.startswith(prefix))
    return tuple(sorted(found, key=lambda cursor: cursor.name))


def fire(tx: Tx, old: Cursor | None, new: Cursor, starts: Sequence[NewRun]) -> tuple[Started, ...] | None:
    tx.mutex([f"cursor:{new.name}", *(name for item in starts for name in start_mutexes(item))])
    known = tx.one(_CURSOR, name=new.name)
    if not _stands_at(known, old):
        return None
    row = {"value": plain(new.value), "due_at": new.due_at, "updated_at": tx.now}
    if known is None:
        tx.add_new(cursors, {"name": new.name, **row})
    else:
        tx.run(_MOVE_CURSOR, {"this": new.name, **row})
    return tuple(start(tx, item) for item in starts)


def _stands_at(known: Row | None, old: Cursor | None) -> bool:
    if known is None or old is None:
        return known is None and old is None
    return bool((known.name, known.value, known.due_at) == (old.name, plain(old.value), old.due_at))


def drop_cursors(tx: Tx, names: Sequence[str]) -> None:
    tx.run(_DROP_CURSOR, [{"this": name} for name in names])


def raise_alert(tx: Tx, key: str, text: str, data: dict[str, Json]) -> Alert:
    tx.mutex([f"alert:{key}"])
    known = tx.one(_ALERT, key=key)
    said = {"text": plain(text), "data": dumps(data), "last_at": tx.now}
    fresh = {"state": "open", "count": 1, "first_at": tx.now, "told_at": None}
    if known is None:
        tx.run(_ADD_ALERT, {"key": key, **said, **fresh})
    elif known.state == AlertState.closed:
        tx.run(_CHANGE_ALERT, {"this": key, **said, **fresh})
    else:
        tx.run(_CHANGE_ALERT, {"this": key, **said, "count": known._mapping["count"] + 1})
    return _alert(tx, key)


def alert_told(tx: Tx, key: str, delivered: bool) -> Alert:
    """A closed alert stays closed, however its last message fared."""
    known = _alert(tx, key)
    if known.state is not AlertState.closed:
        changed = {"state": "told", "told_at": tx.now} if delivered else {"state": "open", "told_at": None}
        tx.run(_CHANGE_ALERT, {"this": key, **changed})
    return _alert(tx, key)


def close_alert(tx: Tx, key: str) -> Alert | None:
    if tx.one(_ALERT, key=key) is None:
        return None
    tx.run(_CHANGE_ALERT, {"this": key, "state": "closed"})
    return _alert(tx, key)


def _alert(tx: Tx, key: str) -> Alert:
    row = tx.one(_ALERT, key=key)
    if row is None:
        raise NotFound(f"there is no alert {key!r}; `becket status` shows the alerts")
    return _alert_of(row)


def _alert_of(row: Row) -> Alert:
    return record_of(Alert, row._mapping, "data")


def list_alerts(tx: Tx, states: Sequence[AlertState] = ()) -> tuple[Alert, ...]:
    query = sa.select(alerts).order_by(alerts.c.first_at, alerts.c.key)
    if states:
        query = query.where(alerts.c.state.in_([state.value for state in states]))
    return tuple(_alert_of(row) for row in tx.all(query))
