"""What the holder of a claim writes: finished steps, the next iteration, a wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.base import Json
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.events import OF_STEPS, SEALS, EventKind, NewEvent
from becket.kernel.contract.run import Move
from becket.kernel.contract.store import Carried, Recorded, WaitRow
from becket.kernel.store import raised, sealing
from becket.kernel.store.ending import free_group
from becket.kernel.store.locked import LockedRun, fenced
from becket.kernel.store.records import save_carried
from becket.kernel.store.rows import dumps, receipt_row, short_key, step_row
from becket.kernel.store.tables import artifact_refs, facts, receipts, steps, wakeups
from becket.kernel.store.tx import Tx
from becket.kernel.store.waking import raise_woken, take_kept

_ADD_STEPS = sa.insert(steps)
_ADD_WAKEUPS = sa.insert(wakeups)
_ADD_FACTS = sa.insert(facts)
_FORGET_FACT = sa.delete(facts).where(
    facts.c.fact == sa.bindparam("this_fact"),
    facts.c.subject_key == sa.bindparam("this_subject"),
    facts.c.run_id == sa.bindparam("this_run"),
)
_REFERRED_BY_STEP = sa.select(artifact_refs).where(
    artifact_refs.c.run_id == sa.bindparam("run_id"),
    artifact_refs.c.iteration == sa.bindparam("iteration"),
    artifact_refs.c.phase == sa.bindparam("phase"),
    artifact_refs.c.action_id == sa.bindparam("action_id"),
)


def record(tx: Tx, run_id: str, epoch: int, recorded: Recorded) -> None:
    run = fenced(tx, run_id, epoch)
    rows, new = [], []
    for step in recorded.steps:
        own = [raised.dated(item, step.iteration, tx.now) for item in step.conditions]
        rows.append(step_row(step, own))
        new += own
    try:
        tx.run(_ADD_STEPS, rows)
    except sa.exc.IntegrityError:
        keys = ", ".join(f"{step.iteration}/{step.phase}/{step.id}" for step in recorded.steps)
        raise BecketError(f"run {run_id}: a step of {keys} is in the journal already; this is a bug") from None
    seals = _record_evidence(tx, run_id, recorded, new)
    _tell(run, recorded.events, rows, seals)
    run.set(wall_used=run["wall_used"] + recorded.wall)
    run.save()


def _tell(run: LockedRun, new: Sequence[NewEvent], rows: Sequence[dict[str, Any]], evidence: dict[str, str]) -> None:
    """Each event of a step carries the step's seal, the last one also those of the evidence that came with it."""
    told = 0
    for event in new:
        if event.kind not in OF_STEPS:
            run.add(event.kind, event.data)
            continue
        seals = sealing.seal("step", rows[told : told + 1])
        told += 1
        run.add(event.kind, {**event.data, SEALS: {**seals, **evidence} if told == len(rows) else seals})


def _record_evidence(tx: Tx, run_id: str, recorded: Recorded, new: Sequence[Condition]) -> dict[str, str]:
    """Returns the seals of what was written."""
    seals: dict[str, str] = {}
    if new:
        raised.raise_all(tx, run_id, new)
    if recorded.receipts:
        rows = [receipt_row(item) for item in recorded.receipts]
        tx.add_new(receipts, rows)
        seals |= sealing.seal("receipt", reversed(rows))  # of two with one name the first is kept
    if recorded.facts:
        seals |= sealing.seal("fact", _record_facts(tx, run_id, recorded.facts))
    return seals | sealing.seal("artifact", _refer_to_all(tx, recorded))


def _record_facts(tx: Tx, run_id: str, new: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """A fact recorded again is the latest word, not a second one."""
    keys = dict.fromkeys((fact, short_key(subject)) for fact, subject in new)
    tx.run(_FORGET_FACT, [{"this_fact": fact, "this_subject": key, "this_run": run_id} for fact, key in keys])
    rows = [{"fact": fact, "subject_key": key, "run_id": run_id, "at": tx.now} for fact, key in keys]
    tx.run(_ADD_FACTS, rows)
    return rows


def _refer_to_all(tx: Tx, recorded: Recorded) -> list[dict[str, Any]]:
    """What steps and receipts name stays on disk, even if nobody called `refer` for it. Returns their references."""
    all_rows: list[dict[str, Any]] = []
    wanted: dict[tuple[str, int, str, str], dict[str, str]] = {}
    for step in recorded.steps:
        for digest in step.artifacts:
            wanted.setdefault((step.run_id, step.iteration, step.phase.value, step.id), {})[digest] = ""
    for item in recorded.receipts:
        if item.receipt.log is not None:
            key = (item.run_id, item.iteration, item.phase, item.action_id)
            wanted.setdefault(key, {}).setdefault(item.receipt.log, "log")
    for (run_id, iteration, phase, action_id), names in wanted.items():
        step_key = {"run_id": run_id, "iteration": iteration, "phase": phase, "action_id": action_id}
        referred = [dict(row._mapping) for row in tx.all(_REFERRED_BY_STEP, **step_key)]
        known = {row["digest"] for row in referred}
        rows = [
            {**step_key, "digest": digest, "name": name, "size": 0, "at": tx.now}
            for digest, name in names.items()
            if digest not in known
        ]
        tx.add_new(artifact_refs, rows)
        all_rows += [*referred, *rows]
    return all_rows


def next_iteration(tx: Tx, run_id: str, epoch: int, carried: Carried, counts: bool) -> None:
    run = fenced(tx, run_id, epoch)
    _begin_iteration(run, carried)
    run.set(counted=run["counted"] + int(counts), waits_since=dumps({}))  # an iteration without a wait ends all waits
    _tell_of_iteration(run, EventKind.iteration_started, {"counts": counts})
    run.save()


def _begin_iteration(run: LockedRun, carried: Carried) -> None:
    run.set(iteration=run["iteration"] + 1)
    raised.end_iteration(run.tx, run.run_id)
    save_carried(run.tx, run.run_id, carried)


def _tell_of_iteration(run: LockedRun, kind: EventKind, data: dict[str, Json]) -> None:
    run.add(kind, {"iteration": run["iteration"], **data, **sealing.row_seals(run.tx, run.run_id, "carried")})


def wait(tx: Tx, run_id: str, epoch: int, waits: Sequence[WaitRow], since: dict[str, float], carried: Carried) -> bool:
    run = fenced(tx, run_id, epoch)
    _begin_iteration(run, carried)
    free_group(run)
    run.set(segment=run["segment"] + 1, waits_since=dumps(since))
    evidence = _no_need_to_sleep(run, waits)
    if evidence is None:
        _sleep(run, waits, since)
    else:
        run.move(Move.next_segment)
        said = {"counts": False, "since": since, "segment": run["segment"]}
        _tell_of_iteration(run, EventKind.iteration_started, said)
        if evidence:
            raise_woken(run, evidence)
    run.save()
    return evidence is None


def _no_need_to_sleep(run: LockedRun, waits: Sequence[WaitRow]) -> dict[str, Json] | None:
    """Why the run is queued again at once: empty if it waits for nothing, None if it must sleep."""
    if run["cancel_asked"]:
        return {"by": "cancel"}
    if not waits:
        return {}
    kept = take_kept(run.tx, run.run_id, [row.wake for row in waits])
    return {"by": "signal", "signals": kept} if kept else None


def _sleep(run: LockedRun, waits: Sequence[WaitRow], since: dict[str, float]) -> None:
    run.move(Move.wait)
    run.set(waiting_on=dumps(list(dict.fromkeys(row.condition for row in waits))))
    run.tx.run(_ADD_WAKEUPS, [{"run_id": run.run_id, **row.model_dump()} for row in waits])
    said = {"waits": [row.model_dump() for row in waits], "since": since, "segment": run["segment"]}
    _tell_of_iteration(run, EventKind.run_waiting, said)
