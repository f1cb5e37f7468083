"""What runs left behind: the story, the steps, the proofs, the artifacts, the processes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.events import Event, EventKind, NewEvent
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Step
from becket.kernel.contract.store import ArtifactRef, Carried
from becket.kernel.store.locked import fenced, find_and_lock, lock, lock_for
from becket.kernel.store.rows import artifact_of, artifact_row, dumps, event_of, loads, receipt_of, short_key, step_of
from becket.kernel.store.tables import artifact_refs, carried, children, events, facts, receipts, runs, specs, steps
from becket.kernel.store.tx import Tx

_EVENTS = (
    sa.select(events)
    .where(events.c.run_id == sa.bindparam("run_id"), events.c.seq > sa.bindparam("after"))
    .order_by(events.c.seq)
    .limit(sa.bindparam("most"))
)
_HEADS = (
    sa.select(runs.c.run_id, runs.c.head)
    .where(runs.c.run_id != sa.bindparam("besides"))
    .order_by(runs.c.number.desc())
    .limit(100)
)
_STEPS = sa.select(steps).where(steps.c.run_id == sa.bindparam("run_id")).order_by(steps.c.number)
_STEPS_OF_ITERATION = _STEPS.where(steps.c.iteration == sa.bindparam("iteration"))
_CARRIED = sa.select(carried.c.value).where(carried.c.run_id == sa.bindparam("run_id"))
_SAVE_CARRIED = sa.update(carried).where(carried.c.run_id == sa.bindparam("this_run"))
_RECEIPTS = sa.select(receipts).where(receipts.c.run_id == sa.bindparam("run_id")).order_by(receipts.c.number)
_ARTIFACTS = (
    sa.select(artifact_refs).where(artifact_refs.c.run_id == sa.bindparam("run_id")).order_by(artifact_refs.c.number)
)
_SPEC = sa.select(specs.c.text).where(specs.c.digest == sa.bindparam("digest"))
_FACT = (
    sa.select(facts.c.run_id)
    .where(facts.c.fact == sa.bindparam("fact"), facts.c.subject_key == sa.bindparam("subject_key"))
    .order_by(facts.c.number.desc())
    .limit(1)
)
_COMPLETED = (
    sa.select(runs.c.run_id)
    .where(runs.c.loop_id == sa.bindparam("loop_id"), runs.c.subject_key == sa.bindparam("subject_key"))
    .where(runs.c.status == "completed")
)
_THE_CHILD = (
    children.c.boot == sa.bindparam("this_boot"),
    children.c.pid == sa.bindparam("this_pid"),
    children.c.started == sa.bindparam("this_start"),
)
_CHILD = sa.select(children).where(*_THE_CHILD)
_DROP_CHILD = sa.delete(children).where(*_THE_CHILD)
_CHILDREN_BUT = (
    sa.select(children)
    .where(
        ~sa.exists().where(
            runs.c.run_id == children.c.run_id,
            runs.c.status == "running",
            runs.c.worker.in_(sa.bindparam("but_of", expanding=True)),
        )
    )
    .order_by(children.c.at, children.c.pid)
)


def append(tx: Tx, run_id: str, epoch: int | None, new: Sequence[NewEvent]) -> None:
    run = lock(tx, run_id) if epoch is None else fenced(tx, run_id, epoch)
    run.add_all(new)
    run.save()


def events_of(tx: Tx, run_id: str, after: int = 0, limit: int = 10_000) -> tuple[Event, ...]:
    return tuple(event_of(row) for row in tx.all(_EVENTS, run_id=run_id, after=after, most=limit))


def heads(tx: Tx, besides: str) -> tuple[tuple[str, str], ...]:
    return tuple((row.run_id, row.head) for row in tx.all(_HEADS, besides=besides))


def steps_of(tx: Tx, run_id: str, iteration: int | None = None) -> tuple[Step, ...]:
    if iteration is None:
        return tuple(step_of(row) for row in tx.all(_STEPS, run_id=run_id))
    return tuple(step_of(row) for row in tx.all(_STEPS_OF_ITERATION, run_id=run_id, iteration=iteration))


def carried_of(tx: Tx, run_id: str) -> Carried:
    row = tx.one(_CARRIED, run_id=run_id)
    return Carried() if row is None else Carried.model_validate(loads(row.value))


def save_carried(tx: Tx, run_id: str, value: Carried) -> None:
    """Within the lock of the run."""
    text = dumps(value.model_dump(mode="json"))
    if not tx.run(_SAVE_CARRIED, {"this_run": run_id, "value": text}):
        tx.add_new(carried, {"run_id": run_id, "value": text})


def receipts_of(tx: Tx, run_id: str) -> tuple[StoredReceipt, ...]:
    return tuple(receipt_of(row) for row in tx.all(_RECEIPTS, run_id=run_id))


def artifacts_of(tx: Tx, run_id: str) -> tuple[ArtifactRef, ...]:
    return tuple(artifact_of(row) for row in tx.all(_ARTIFACTS, run_id=run_id))


def refer(tx: Tx, ref: ArtifactRef, epoch: int | None) -> None:
    lock_for(tx, ref.run_id, epoch)
    tx.add_new(artifact_refs, artifact_row(ref, tx.now))


def spec_text(tx: Tx, digest: str) -> str:
    row = tx.one(_SPEC, digest=digest)
    if row is None:
        raise NotFound(f"the journal has no spec {digest}; `becket runs show RUN` names the spec of a run")
    return str(row.text)


def has_fact(tx: Tx, fact: str, subject: str, loop_id: str) -> bool:
    if fact == "completed":
        return tx.one(_COMPLETED, loop_id=loop_id, subject_key=short_key(subject)) is not None
    return recorded_by(tx, fact, subject) is not None


def recorded_by(tx: Tx, fact: str, subject: str) -> str | None:
    row = tx.one(_FACT, fact=fact, subject_key=short_key(subject))
    return None if row is None else str(row.run_id)


def _child_key(child: ChildRef) -> dict[str, str | int]:
    return {"this_boot": child.boot, "this_pid": child.pid, "this_start": child.started}


def child_started(tx: Tx, run_id: str, epoch: int, child: ChildRef, argv: Sequence[str]) -> None:
    run = fenced(tx, run_id, epoch)
    tx.add_new(children, {**child.model_dump(), "run_id": run_id, "argv": dumps(list(argv)), "at": tx.now})
    run.add(EventKind.child_started, {"pid": child.pid, "argv": list(argv)})
    run.save()


def child_ended(tx: Tx, child: ChildRef) -> None:
    """Once per child; nothing happens for one that is not known."""
    row = tx.one(_CHILD, **_child_key(child))
    if row is None:
        return
    run = find_and_lock(tx, row.run_id)
    if tx.run(_DROP_CHILD, _child_key(child)) and run is not None:
        run.add(EventKind.child_ended, {"pid": child.pid})
        run.save()


def live_children(tx: Tx, but_of: Collection[str] = ()) -> tuple[ChildRef, ...]:
    found = tx.all(_CHILDREN_BUT, but_of=list(but_of))
    return tuple(ChildRef(pid=row.pid, started=row.started, boot=row.boot) for row in found)
