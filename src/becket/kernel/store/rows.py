"""Rows to records and back. JSON columns are canonical text; free text is made fit for both databases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from becket.kernel.contract.base import Json, Record, canonical
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect, EffectCall, Origin
from becket.kernel.contract.events import Event
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.run import Run, Step, Subject
from becket.kernel.contract.store import ArtifactRef

Values = Mapping[str, Any]
R = TypeVar("R", bound=Record)

_LONGEST_KEY = 200


def dumps(value: Json) -> str:
    """Canonical JSON that either database can hold: half a surrogate pair (a file name's stray byte) becomes `?`."""
    text = canonical(value)
    return text if text.isascii() else text.encode(errors="replace").decode()


def loads(text: str) -> Json:
    return json.loads(text)


def plain(text: str) -> str:
    """Free text as either database can hold it: Postgres has no NUL, neither has half a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def maybe_plain(text: str | None) -> str | None:
    return None if text is None else plain(text)


def short_key(text: str) -> str:
    """A text of any length as an index key: Postgres refuses keys of more than a third of a page."""
    clean = plain(text)
    if len(clean) <= _LONGEST_KEY:
        return clean
    return f"{clean[:100]}~{hashlib.sha256(clean.encode()).hexdigest()}"


def simple(kind: type[R], row: Any) -> R:
    """A record whose fields are the row's columns."""
    return kind.model_validate({name: getattr(row, name) for name in kind.model_fields})


def run_of(row: Values) -> Run:
    return Run(
        run_id=row["run_id"],
        loop_id=row["loop_id"],
        subject=Subject(name=row["subject"], fields=loads(row["fields"])),
        status=row["status"],
        segment=row["segment"],
        epoch=row["epoch"],
        iteration=row["iteration"],
        counted=row["counted"],
        spec_digest=row["spec_digest"],
        inputs=loads(row["inputs"]),
        trigger=row["trigger_kind"],
        group=row["group_name"],
        dry_run=row["dry_run"],
        held=row["held"],
        cancel_asked=row["cancel_asked"],
        autonomy=row["autonomy"],
        parent=row["parent"],
        retry_of=row["retry_of"],
        chain=row["chain"],
        reason=row["reason"],
        detail=loads(row["detail"]),
        waiting_on=tuple(loads(row["waiting_on"])),
        waits_since=loads(row["waits_since"]),
        wall_used=row["wall_used"],
        worker=row["worker"],
        lease_until=row["lease_until"],
        by=row["started_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        deadline_at=row["deadline_at"],
        ended_at=row["ended_at"],
        event_count=row["event_count"],
        head=row["head"],
    )


def event_of(row: Any) -> Event:
    return Event(
        run_id=row.run_id, seq=row.seq, at=row.at, kind=row.kind, data=loads(row.data), previous=row.previous,
        digest=row.digest,
    )  # fmt: skip


def step_row(step: Step, conditions: Iterable[Condition]) -> dict[str, Any]:
    """The columns of a step; `conditions` are the step's own, dated."""
    return {
        "run_id": step.run_id,
        "iteration": step.iteration,
        "phase": step.phase.value,
        "id": step.id,
        "state": step.state.value,
        "attempts": step.attempts,
        "outputs": dumps(step.outputs),
        "conditions": dumps([vars(item) for item in conditions]),
        "receipts": dumps(step.receipts),
        "artifacts": dumps(step.artifacts),
        "error_kind": plain(step.error_kind),
        "error": plain(step.error),
        "note": plain(step.note),
        "progress": plain(step.progress),
        "started_at": float(step.started_at),
        "ended_at": float(step.ended_at),
    }


def step_of(row: Any) -> Step:
    return Step(
        run_id=row.run_id,
        iteration=row.iteration,
        phase=row.phase,
        id=row.id,
        state=row.state,
        attempts=row.attempts,
        outputs=loads(row.outputs),
        conditions=tuple(Condition.model_validate(item) for item in loads(row.conditions)),
        receipts=tuple(loads(row.receipts)),
        artifacts=tuple(loads(row.artifacts)),
        error_kind=row.error_kind,
        error=row.error,
        note=row.note,
        progress=row.progress,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def condition_row(run_id: str, item: Condition) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "object": item.object,
        "name": item.name,
        "group_names": dumps(item.group),
        "life": item.life.value,
        "evidence": dumps(item.evidence),
        "iteration": item.iteration,
        "at": item.at,
    }


def condition_of(row: Any) -> Condition:
    return Condition(
        object=row.object, name=row.name, group=tuple(loads(row.group_names)), life=row.life,
        evidence=loads(row.evidence), iteration=row.iteration, at=row.at,
    )  # fmt: skip


def receipt_row(item: StoredReceipt) -> dict[str, Any]:
    return {
        "run_id": item.run_id,
        "iteration": item.iteration,
        "phase": item.phase,
        "action_id": item.action_id,
        "digest": item.digest,
        "receipt": dumps(item.receipt.model_dump(mode="json")),
        "started_at": item.started_at,
        "ended_at": item.ended_at,
    }


def receipt_of(row: Any) -> StoredReceipt:
    return StoredReceipt(
        digest=row.digest, receipt=Receipt.model_validate(loads(row.receipt)), run_id=row.run_id,
        iteration=row.iteration, phase=row.phase, action_id=row.action_id, started_at=row.started_at,
        ended_at=row.ended_at,
    )  # fmt: skip


def artifact_row(ref: ArtifactRef, at: float) -> dict[str, Any]:
    return {**ref.model_dump(), "name": plain(ref.name), "at": at}


def artifact_of(row: Any) -> ArtifactRef:
    return simple(ArtifactRef, row)


def effect_of(row: Any) -> Effect:
    return Effect(
        key=row.key,
        origin=Origin(run_id=row.run_id, iteration=row.iteration, phase=row.phase, action_id=row.action_id),
        call=EffectCall(
            name=row.name, target=row.target, payload=loads(row.payload), label=row.label, approval=row.approval,
            defer=row.defer,
        ),
        digest=row.digest,
        class_=getattr(row, "class"),
        state=row.state,
        attempts=row.attempts,
        settle_at=row.settle_at,
        next_at=row.next_at,
        result=loads(row.result),
        reason=row.reason,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )  # fmt: skip


def handoff_row(item: Handoff) -> dict[str, Any]:
    return {
        **item.model_dump(mode="json"),
        "evidence": dumps(item.evidence),
        "subject": plain(item.subject),
        "next_step": plain(item.next_step),
        "note": plain(item.note),
    }


def handoff_of(row: Any) -> Handoff:
    return Handoff.model_validate({**row._mapping, "evidence": loads(row.evidence)})


def approval_of(row: Any) -> Approval:
    return simple(Approval, row)
