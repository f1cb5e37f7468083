"""The append-only story of a run. Each event carries the digest of the one before it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from becket.kernel.contract.base import Json, Record, digest_of

SEALS = "seals"
"""Where an event's data holds the seals of the rows it tells of: name -> digest of the row as it was written."""

COVERS = "covers"
"""Where `run.created` and `run.claimed` name kinds of rows that not every chain tells of. Of a kind that is missing in
one of them, a row without an event may be from a time, or of a worker, before such rows had one.
"""


def row_name(kind: str, *key: object) -> str:
    """What a row is called among the seals: `step 1/act/fix`."""
    return f"{kind} {'/'.join(map(str, key))}"


class EventKind(StrEnum):
    run_created = "run.created"
    run_claimed = "run.claimed"
    run_requeued = "run.requeued"
    run_waiting = "run.waiting"
    run_woken = "run.woken"
    run_ended = "run.ended"
    run_held = "run.held"
    run_unheld = "run.unheld"
    run_migrated = "run.migrated"
    cancel_asked = "run.cancel_asked"
    iteration_started = "iteration.started"
    phase_entered = "phase.entered"
    step_done = "step.done"
    step_skipped = "step.skipped"
    step_failed = "step.failed"
    decided = "decided"
    effect_intended = "effect.intended"
    effect_settled = "effect.settled"
    signal_received = "signal.received"
    approval_asked = "approval.asked"
    approval_decided = "approval.decided"
    approval_used = "approval.used"
    handoff_opened = "handoff.opened"
    handoff_changed = "handoff.changed"
    child_started = "child.started"
    child_ended = "child.ended"
    call_booked = "call.booked"
    call_settled = "call.settled"
    spent = "spent"
    artifacts_dropped = "artifacts.dropped"
    clock_leapt = "clock.leapt"
    note = "note"


OF_STEPS = frozenset({EventKind.step_done, EventKind.step_skipped, EventKind.step_failed, EventKind.decided})
"""Kinds that tell of one step each: the nth of them in a `Recorded` is about its nth step."""


class NewEvent(Record):
    kind: EventKind
    data: dict[str, Json] = Field(default_factory=dict)


class Event(Record):
    run_id: str
    seq: int  # from 1, without a hole
    at: float
    kind: EventKind
    data: dict[str, Json] = Field(default_factory=dict)
    previous: str
    digest: str


def event_digest(run_id: str, seq: int, at: float, kind: str, data: Json, previous: str) -> str:
    return digest_of([run_id, seq, at, kind, data, previous])
