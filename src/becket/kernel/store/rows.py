"""Rows to records and back. JSON columns are canonical text; free text is made fit for both databases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from becket.kernel.contract.base import Json, Record, canonical
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect, EffectCall, Origin
from becket.kernel.contract.events import Event
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Run, Step, Subject
from becket.kernel.contract.store import ArtifactRef
from becket.kernel.store.keys import index_key
from becket.kernel.store.tx import Row

Values = Mapping[Any, Any]
R = TypeVar("R", bound=Record)


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
    """A text of any length as an index key."""
    return index_key(plain(text))


def record_of(kind: type[R], row: Values, *json_columns: str, **others: Any) -> R:
    """A record whose fields are the row's columns of the same names, besides `others`."""
    values = {name: row[name] for name in kind.model_fields if name not in others}
    return kind.model_validate(values | {name: loads(row[name]) for name in json_columns} | others)


def run_of(row: Values) -> Run:
    return record_of(
        Run, row, "inputs", "detail", "waiting_on", "waits_since",
        subject=Subject(name=row["subject"], fields=loads(row["fields"])),
        trigger=row["trigger_kind"], group=row["group_name"], by=row["started_by"],
    )  # fmt: skip


def event_of(row: Row) -> Event:
    return record_of(Event, row._mapping, "data")


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


def step_of(row: Row) -> Step:
    return record_of(Step, row._mapping, "outputs", "conditions", "receipts", "artifacts")


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


def condition_of(row: Row) -> Condition:
    return record_of(Condition, row._mapping, "evidence", group=loads(row.group_names))


def receipt_row(item: StoredReceipt) -> dict[str, Any]:
    return {**vars(item), "receipt": dumps(item.receipt.model_dump(mode="json"))}


def receipt_of(row: Row) -> StoredReceipt:
    return record_of(StoredReceipt, row._mapping, "receipt")


def artifact_row(ref: ArtifactRef, at: float) -> dict[str, Any]:
    return {**ref.model_dump(), "name": plain(ref.name), "at": at}


def artifact_of(row: Row) -> ArtifactRef:
    return record_of(ArtifactRef, row._mapping)


def effect_of(row: Row) -> Effect:
    columns = row._mapping
    call = record_of(EffectCall, columns, "payload")
    return record_of(Effect, columns, "result", origin=record_of(Origin, columns), call=call, class_=columns["class"])


def handoff_row(item: Handoff) -> dict[str, Any]:
    return {
        **item.model_dump(mode="json"),
        "evidence": dumps(item.evidence),
        "subject": plain(item.subject),
        "next_step": plain(item.next_step),
        "note": plain(item.note),
    }


def handoff_of(row: Row) -> Handoff:
    return record_of(Handoff, row._mapping, "evidence")


def approval_of(row: Row) -> Approval:
    return record_of(Approval, row._mapping)
