"""Runs as rows: how they start, are looked up, held and moved to another spec."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.events import COVERS, EventKind
from becket.kernel.contract.run import ENDED, Move, NewRun, Run, RunStatus, Started, started_as
from becket.kernel.contract.state import STATE
from becket.kernel.store import pace
from becket.kernel.store.ending import finish
from becket.kernel.store.links import adopt, link
from becket.kernel.store.locked import LockedRun, lock
from becket.kernel.store.lookup import by_prefix
from becket.kernel.store.rows import dumps, maybe_plain, plain, run_of, short_key
from becket.kernel.store.sealing import SEALED_LATER
from becket.kernel.store.tables import origins, runs, specs
from becket.kernel.store.tx import Row, Tx

_ADD_RUN = sa.insert(runs)
_BY_ID = sa.select(runs).where(runs.c.run_id == sa.bindparam("run_id"))
_BY_ORIGIN = (
    sa.select(runs)
    .join(origins, origins.c.run_id == runs.c.run_id)
    .where(origins.c.origin_key == sa.bindparam("origin_key"))
)
_BY_OPEN_SUBJECT = sa.select(runs).where(runs.c.open_subject == sa.bindparam("open_subject"))
_COMPLETED = (
    sa.select(runs)
    .where(runs.c.loop_id == sa.bindparam("loop_id"), runs.c.subject_key == sa.bindparam("subject_key"))
    .where(runs.c.status == "completed")
    .order_by(runs.c.number.desc())
    .limit(1)
)
_OPEN_OF_GROUP = (
    sa.select(runs.c.run_id, runs.c.status)
    .where(runs.c.group_name == sa.bindparam("group"), runs.c.ended_at.is_(None))
    .order_by(runs.c.number)
)
_COUNT = sa.select(runs.c.status, sa.func.count()).group_by(runs.c.status)


def open_subject(new: NewRun) -> str:
    """Unique among open runs. A dry run stands beside a real one: it must not answer for it."""
    return f"{new.loop_id}{'?' if new.dry_run else ':'}{short_key(new.subject.name)}"


def start_mutexes(new: NewRun) -> Iterable[str]:
    yield f"subject:{open_subject(new)}"
    if new.origin_key is not None:
        yield f"origin:{short_key(new.origin_key)}"
    if new.group is not None:
        yield f"group:{new.group}"
    if new.limits is not None:
        yield pace.mutex(new.loop_id)


def start_run(tx: Tx, new: NewRun) -> Started:
    tx.mutex(start_mutexes(new))
    return start(tx, new)


def start(tx: Tx, new: NewRun) -> Started:
    """Within the mutexes of `start_mutexes`."""
    found = _answering(tx, new)
    if found is not None:
        return _answered(tx, new, found)
    open_runs = tx.all(_OPEN_OF_GROUP, group=new.group) if new.group is not None else ()
    if new.on_busy == "drop" and open_runs:
        busy = open_runs[0]
        return Started(run=None, created=False, dropped=f"{new.group} is busy: {busy.run_id} is {busy.status}")
    pace.admit(tx, new)
    run = _insert(tx, new)
    waiting = [row.run_id for row in open_runs if row.status == "queued"] if new.on_busy == "newest_waits" else []
    superseded = [run_id for run_id in waiting if _supersede(tx, run_id, new.run_id)]
    return Started(run=run, created=True, superseded=tuple(superseded))


def _answering(tx: Tx, new: NewRun) -> Row | None:
    found = None
    if new.origin_key is not None:
        found = tx.one(_BY_ORIGIN, origin_key=short_key(new.origin_key))
    if found is None:
        found = tx.one(_BY_OPEN_SUBJECT, open_subject=open_subject(new))
    if found is None and new.unique_subject:
        found = tx.one(_COMPLETED, loop_id=new.loop_id, subject_key=short_key(new.subject.name))
    return found


def _answered(tx: Tx, new: NewRun, found: Row) -> Started:
    run = run_of(found._mapping) if new.parent is None else adopt(tx, new.parent, found.run_id)
    if run is None:
        why = f"{found.run_id} answers for this subject, and {new.parent} works for it: they would wait for each other"
        return Started(run=None, created=False, dropped=why)
    _remember_origin(tx, new, run.run_id)
    return Started(run=run, created=False)


def _remember_origin(tx: Tx, new: NewRun, run_id: str) -> None:
    if new.origin_key is not None:
        tx.add_new(origins, {"origin_key": short_key(new.origin_key), "run_id": run_id})


def _insert(tx: Tx, new: NewRun) -> Run:
    add_spec(tx, new.spec_digest, new.spec_text)
    _remember_origin(tx, new, new.run_id)
    row = {
        "run_id": new.run_id,
        "loop_id": new.loop_id,
        "subject": plain(new.subject.name),
        "subject_key": short_key(new.subject.name),
        "fields": dumps(new.subject.fields),
        "status": RunStatus.queued.value,
        "segment": 1,
        "epoch": 0,
        "iteration": 1,
        "counted": 1,
        "spec_digest": new.spec_digest,
        "inputs": dumps(new.inputs),
        "trigger_kind": plain(new.trigger),
        "group_name": maybe_plain(new.group),
        "dry_run": new.dry_run,
        "held": False,
        "cancel_asked": False,
        "autonomy": new.autonomy.value if new.autonomy else None,
        "parent": new.parent,
        "retry_of": new.retry_of,
        "chain": new.chain,
        "reason": "",
        "detail": "{}",
        "waiting_on": "[]",
        "waits_since": "{}",
        "wall_used": 0.0,
        "worker": None,
        "lease_until": None,
        "started_by": plain(new.by.name),
        "created_at": tx.now,
        "updated_at": tx.now,
        "deadline_at": tx.now + new.deadline,
        "ended_at": None,
        "follow_since": None,
        "event_count": 0,
        "head": "",
        "open_subject": open_subject(new),
    }
    tx.run(_ADD_RUN, row)
    if new.parent is not None:
        link(tx, new.parent, new.run_id)
    run = LockedRun(tx, row)
    more = {COVERS: list(SEALED_LATER), **({STATE: new.state} if new.state else {})}
    run.add(
        EventKind.run_created, {"spec_digest": new.spec_digest, **new.by.told(), **started_as(run.record()), **more}
    )
    run.save()
    return run.record()


def _supersede(tx: Tx, run_id: str, by: str) -> bool:
    run = lock(tx, run_id)
    if (
        run.status is not RunStatus.queued or run["epoch"] > 0
    ):  # one that was at work already is in the middle of its life
        return False
    finish(run, Move.cancel, "superseded", {"by_run": by})
    return True


def add_spec(tx: Tx, digest: str, text: str) -> None:
    tx.add_new(specs, {"digest": digest, "text": plain(text), "at": tx.now})


def hold(tx: Tx, run_id: str, by: Caller, on: bool) -> Run:
    run = lock(tx, run_id)
    if run.status in ENDED:
        raise UsageError(f"run {run_id} has ended ({run.status}); only an open run can be held")
    if run["held"] is not on:
        run.set(held=on)
        run.add(EventKind.run_held if on else EventKind.run_unheld, by.told())
        run.save()
    return run.record()


def migrate(tx: Tx, run_id: str, spec_digest: str, spec_text: str, by: Caller) -> Run:
    run = lock(tx, run_id)
    if run.status is not RunStatus.waiting:
        raise UsageError(f"run {run_id} is {run.status}; only a waiting run can be moved to a new spec")
    add_spec(tx, spec_digest, spec_text)
    run.add(EventKind.run_migrated, {"from": run["spec_digest"], "to": spec_digest, **by.told()})
    run.set(spec_digest=spec_digest)
    run.save()
    return run.record()


def get_run(tx: Tx, run_id: str) -> Run:
    row = tx.one(_BY_ID, run_id=run_id) or by_prefix(tx, runs.c.run_id, run_id, "run", "becket runs list")
    return run_of(row._mapping)


def count_runs(tx: Tx, besides: Sequence[str] = ()) -> dict[RunStatus, int]:
    counted = {row[0]: int(row[1]) for row in tx.all(_COUNT.where(runs.c.loop_id.not_in(besides)))}
    return {status: counted.get(status.value, 0) for status in RunStatus}
