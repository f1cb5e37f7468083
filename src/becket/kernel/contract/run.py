"""LoopRun: the durable record of a loop working on a subject, and the closed table of how it may move."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.caller import BECKET, Caller
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.spec import Autonomy, Phase


class RunStatus(StrEnum):
    queued = "queued"
    running = "running"
    waiting = "waiting"
    completed = "completed"
    completed_dry_run = "completed_dry_run"
    ready_for_handoff = "ready_for_handoff"
    failed = "failed"
    cancelled = "cancelled"


ENDED = frozenset(
    {
        RunStatus.completed,
        RunStatus.completed_dry_run,
        RunStatus.ready_for_handoff,
        RunStatus.failed,
        RunStatus.cancelled,
    }
)
OPEN = frozenset(RunStatus) - ENDED


class Move(StrEnum):
    """Why a status changes."""

    claim = "claim"  # a worker took the run
    requeue = "requeue"  # its worker is gone
    next_segment = "next_segment"  # a worker gives the run back between iterations
    wait = "wait"
    wake = "wake"
    complete = "complete"
    complete_dry_run = "complete_dry_run"
    hand_off = "hand_off"
    fail = "fail"
    cancel = "cancel"


TRANSITIONS: dict[tuple[RunStatus, Move], RunStatus] = {
    (RunStatus.queued, Move.claim): RunStatus.running,
    (RunStatus.queued, Move.cancel): RunStatus.cancelled,
    (RunStatus.queued, Move.fail): RunStatus.failed,
    (RunStatus.running, Move.requeue): RunStatus.queued,
    (RunStatus.running, Move.next_segment): RunStatus.queued,
    (RunStatus.running, Move.wait): RunStatus.waiting,
    (RunStatus.running, Move.complete): RunStatus.completed,
    (RunStatus.running, Move.complete_dry_run): RunStatus.completed_dry_run,
    (RunStatus.running, Move.hand_off): RunStatus.ready_for_handoff,
    (RunStatus.running, Move.fail): RunStatus.failed,
    (RunStatus.running, Move.cancel): RunStatus.cancelled,
    (RunStatus.waiting, Move.wake): RunStatus.queued,
    (RunStatus.waiting, Move.cancel): RunStatus.cancelled,
}
"""Every legal move. What is not here cannot happen; `after` raises."""


class IllegalMove(Exception):
    """A bug: the runtime tried a move that the table does not have."""


def after(status: RunStatus, move: Move) -> RunStatus:
    try:
        return TRANSITIONS[status, move]
    except KeyError:
        raise IllegalMove(f"a {status} run cannot {move}") from None


class Subject(Record):
    """What a run is about. `fields` fill templates: branch, sha, event data, inputs."""

    name: str
    fields: dict[str, Json] = Field(default_factory=dict)


class StartLimits(Record):
    """What holds for every start that no person and no schedule asked for, whatever the loops say.

    `depth`: so many runs may lead to one another. `per_minute`: so often is one loop started; the children of one run
    count as one start.
    """

    depth: int = Field(default=10, ge=1, le=100)
    per_minute: int = Field(default=120, ge=1, le=10_000)


class NewRun(Record):
    """A request to start a run, after intake resolved the spec and the templates.

    `origin_key` makes the start idempotent: the same key gives the same run for ever. Without it only an open run
    with the same loop and subject is reused.
    """

    run_id: str
    loop_id: str
    spec_digest: str
    spec_text: str
    subject: Subject
    inputs: dict[str, Json] = Field(default_factory=dict)
    trigger: str = "manual"
    origin_key: str | None = None
    unique_subject: bool = False  # reuse an ended, completed run too
    group: str | None = None
    on_busy: str = "queue"
    dry_run: bool = False
    autonomy: Autonomy | None = None  # a person may ask for less
    parent: str | None = None
    retry_of: str | None = None
    chain: int = 0  # starts that led to this one since a person or a schedule began
    limits: StartLimits | None = None  # of a start by a machine
    deadline: float  # seconds from the start
    by: Caller = BECKET
    state: dict[str, Json] = Field(default_factory=dict)  # its `state_refs` as they are now


class Run(Record):
    """The row of one run as it stands."""

    run_id: str
    loop_id: str
    subject: Subject
    status: RunStatus
    segment: int
    epoch: int
    iteration: int
    counted: int  # iterations that count towards max_iterations
    spec_digest: str
    inputs: dict[str, Json]
    trigger: str
    group: str | None
    dry_run: bool
    held: bool  # a person holds it: it is not started
    cancel_asked: bool
    autonomy: Autonomy | None
    parent: str | None
    retry_of: str | None
    chain: int
    reason: str
    detail: dict[str, Json]
    waiting_on: tuple[str, ...]
    waits_since: dict[str, float]
    wall_used: float
    worker: str | None
    lease_until: float | None = None  # until then its worker must say that it is still at work on it
    by: str
    created_at: float
    updated_at: float
    deadline_at: float
    ended_at: float | None
    event_count: int
    head: str  # digest of the last event: the events form a chain


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


class Started(Record):
    """What start_run did. `created` is False when an existing run answers the request; `dropped` when none runs."""

    run: Run | None
    created: bool
    dropped: str = ""  # why nothing was started
    superseded: tuple[str, ...] = ()


class Outcome(StrEnum):
    """What the decision after `decide` was."""

    completed = "completed"
    handoff = "handoff"
    wait = "wait"
    again = "again"
    failed = "failed"
    cancelled = "cancelled"


class Decision(Record):
    """Computed once per iteration, journaled before notify runs, carried out after it."""

    outcome: Outcome
    reason: str
    detail: dict[str, Json] = Field(default_factory=dict)
    counts: bool = True  # whether the next iteration counts towards max_iterations


DECISION = "@decision"
"""The step of phase decide that holds the decision."""

USED = frozenset({"calls", "sessions"})
"""Outputs that tell what a step used, never what it brought: times and session ids differ every time."""


class StepState(StrEnum):
    done = "done"
    skipped = "skipped"  # its `when` was false
    failed = "failed"


class Step(Record):
    """One journaled action or verifier: the memory that a restart reads instead of doing it again."""

    run_id: str
    iteration: int
    phase: Phase
    id: str
    state: StepState
    attempts: int = 1
    outputs: dict[str, Json] = Field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    receipts: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    error_kind: str = ""
    error: str = ""
    note: str = ""  # for instance why there was nothing to do
    progress: str = ""  # digest of what this step brought; the same again is no progress
    started_at: float
    ended_at: float
