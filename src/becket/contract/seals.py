"""Seals: digests of rows as they stand. The event that tells of a row carries its seal, so the chain covers the rows.

Every seal is made of values as a reader gets them back, never of what was about to be written. What only steers the
engine (attempts in flight, leases, segments) is in no seal.
"""

from __future__ import annotations

from collections.abc import Iterable

from becket.contract.base import Json, digest_of
from becket.contract.effect import SETTLED, Effect
from becket.contract.handoff import Approval, Handoff
from becket.contract.receipt import StoredReceipt
from becket.contract.run import Run, Step
from becket.contract.store import Carried


def started_as(run: Run) -> dict[str, Json]:
    """What a run is told at its start and keeps for ever; `run.created` holds it word for word."""
    return {
        "loop_id": run.loop_id,
        "subject": run.subject.name,
        "fields": run.subject.fields,
        "inputs": run.inputs,
        "trigger": run.trigger,
        "by": run.by,
        "group": run.group,
        "dry_run": run.dry_run,
        "autonomy": run.autonomy.value if run.autonomy else None,
        "parent": run.parent,
        "retry_of": run.retry_of,
        "chain": run.chain,
        "created_at": run.created_at,
        "deadline_at": run.deadline_at,
    }


def of_step(step: Step, receipts: Iterable[StoredReceipt]) -> str:
    """The step with the times of its receipts: their names are in the step, their contents in their names."""
    return digest_of(
        [
            step.run_id, step.iteration, step.phase, step.id, step.state, step.attempts, step.outputs,
            [list(dict(item).values()) for item in step.conditions], step.receipts, step.artifacts,
            step.error_kind, step.error, step.note, step.progress, step.started_at, step.ended_at,
            sorted([item.digest, item.started_at, item.ended_at] for item in receipts),
        ]
    )  # fmt: skip


def of_effect(effect: Effect) -> str:
    """What was asked for; once it is settled also how it ended. Attempts in between change no seal."""
    end = [effect.state, effect.attempts, effect.result, effect.reason] if effect.state in SETTLED else []
    asked = [effect.key, dict(effect.origin), dict(effect.call), effect.digest, effect.class_, effect.created_at]
    return digest_of([*asked, *end])


def of_approval(approval: Approval) -> str:
    return digest_of(dict(approval))


def of_handoff(handoff: Handoff) -> str:
    return digest_of(dict(handoff))


def of_carried(carried: Carried) -> str:
    return digest_of(dict(carried))
