"""The port to the journal: the only memory. One method is one transaction; time comes only from here.

Whoever calls a method that takes `epoch` holds a claim on the run. The epoch and the status `running` are checked in
the same transaction as the write; if they do not fit any more, the method raises Fenced and nothing is written.
Events appended by a method form the run's chain: numbered without a hole, each with the digest of the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from becket.kernel.contract import looking
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.caller import Caller, Via
from becket.kernel.contract.calls import AgentCall, CallEnd
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect, EffectCall, EffectState, Origin
from becket.kernel.contract.events import Event, NewEvent
from becket.kernel.contract.handoff import Approval, Handoff, HandoffState
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Move, NewRun, Run, RunStatus, Started, Step
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.tables import TableStore

RunFilter = looking.RunFilter


class Carried(Record):
    """What an iteration hands to the next one."""

    outputs: dict[str, dict[str, Json]] = Field(default_factory=dict)  # persisted outputs by action id
    failures: dict[str, int] = Field(default_factory=dict)  # failure signature -> how often
    progress: tuple[str, ...] = ()  # marks of what earlier iterations brought
    last: str = ""  # digest of what the last counted iteration added
    naps: int = 0  # woken iterations in a row


class Claim(Record):
    """A worker's right to move one run, with everything it needs to go on."""

    run: Run
    spec_text: str
    steps: tuple[Step, ...]  # of the current iteration, in the order written
    conditions: tuple[Condition, ...]
    carried: Carried


class Recorded(Record):
    """One step's worth of writing."""

    steps: tuple[Step, ...]
    events: tuple[NewEvent, ...] = ()  # for each step, in their order, one of OF_STEPS; the store adds its seals
    receipts: tuple[StoredReceipt, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # (fact, subject)
    wall: float = 0.0  # seconds to add to wall_used


class WaitRow(Record):
    """One thing a run waits for. `due` is the next poll, or the end of the wait."""

    condition: str
    wake: str
    due: float
    expires: float


class End(Record):
    """How a run ends."""

    move: Move
    reason: str
    detail: dict[str, Json] = Field(default_factory=dict)
    handoff: Handoff | None = None
    events: tuple[NewEvent, ...] = ()
    state: dict[str, Json] = Field(default_factory=dict)  # its `state_refs` as they are now


class SignalEnd(StrEnum):
    woke = "woke"
    kept = "kept"  # the run does not wait for it now; it will find the signal when it does
    ended = "ended"  # the run has ended
    duplicate = "duplicate"


class AtWork(Record):
    """A claim as the rows have it."""

    run_id: str
    epoch: int
    cancel_asked: bool


class Heartbeat(Record):
    lost: tuple[str, ...] = ()  # runs whose claim was taken from this worker


class WorkerInfo(Record):
    worker_id: str
    pid: int
    host: str
    role: str  # daemon | run | worker
    version: str
    started_at: float
    beat_at: float
    dead: bool


class Cursor(Record):
    """How far a trigger has come: the last fire of a schedule, the last commit seen of a branch."""

    name: str
    value: str
    due_at: float | None = None
    updated_at: float = 0.0


class Control(Record):
    """A person's brake on everything ("all") or on one loop ("loop:NAME")."""

    scope: str
    by: str
    role: str | None = None  # unknown of one that was set before it was recorded
    via: Via | None = None
    note: str
    at: float


class Leap(Record):
    """How far the store's clock is from the time that passed at work: by its own jump, and by a suspended machine."""

    jump: float
    slept: float
    since: float  # when it was noticed, by the time that it would be without it
    at: float  # that time now

    @property
    def by(self) -> float:
        return self.jump + self.slept


class AlertState(StrEnum):
    open = "open"  # raised, nobody told yet
    told = "told"  # delivered; quiet until it closes or its delivery proves void
    closed = "closed"


class Alert(Record):
    key: str
    text: str
    data: dict[str, Json] = Field(default_factory=dict)
    state: AlertState
    count: int
    first_at: float
    last_at: float
    told_at: float | None = None


class ArtifactRef(Record):
    digest: str
    name: str
    size: int
    run_id: str
    iteration: int
    phase: str
    action_id: str


class RunStore(Protocol):
    """Runs: how they start, move, wait and end."""

    async def start_run(self, new: NewRun) -> Started:
        """Called by intake. Finds the run that answers (origin_key; an open run of the same loop and subject; with
        `unique_subject` also a completed one), else inserts it as queued with its spec and `run.created`: segment 1,
        epoch 0, iteration 1, which counts. A dry run and a real run of one subject do not answer for each other.

        With a `parent` it is linked to the run that answers, however that began. A run that the parent works for
        itself, directly or through others, is refused: `dropped` says so.

        With on_busy `drop` and a queued, running or waiting run in the group: nothing is started. With
        `newest_waits`: other queued runs of the group that nobody claimed yet are cancelled as `superseded` in the
        same transaction.

        With `limits`: a run whose chain is longer than `depth`, or whose loop was started `per_minute` times within the
        last minute, is refused with StartRefused, and nothing at all is written. What answers is never refused.
        """
        ...

    async def claim(self, run_id: str, segment: int, worker: str, ttl: float) -> Claim | None:
        """Called by the dispatcher, any number of times. One UPDATE bumps the epoch by the database's clock.

        None if segment or status differ, the run is held, a control pauses it, its group's lease is taken and not
        expired, or an older queued run of the group (neither held nor paused) comes first. Taking an expired lease
        requeues the run that had it, in the same transaction. A worker that was declared dead gets None too.
        """
        ...

    async def record(self, run_id: str, epoch: int, recorded: Recorded) -> None:
        """Called once per finished action or verifier: rows, conditions, receipts, artifacts' references, events."""
        ...

    async def next_iteration(self, run_id: str, epoch: int, carried: Carried, counts: bool) -> None:
        """Iteration + 1 within the same claim; conditions that live for the iteration are gone.

        Writes `iteration.started`. `counts` says whether the new iteration counts towards max_iterations.
        """
        ...

    async def wait(
        self, run_id: str, epoch: int, waits: Sequence[WaitRow], since: dict[str, float], carried: Carried
    ) -> bool:
        """Give the run back until a signal or a due time. False: a kept signal was there, the run is queued again.

        Either way the claim and the group's lease are gone, the segment and the iteration are one higher, and
        conditions that live for the iteration are gone; on waking the run carries the condition `woken`, whose
        evidence says `by` what: signal, due, deadline or cancel. An iteration that begins so is not counted.
        A run whose cancelling was asked for does not sleep, nor does one that waits for nothing.
        """
        ...

    async def end(self, run_id: str, epoch: int, end: End) -> tuple[str, ...]:
        """The last write of a run. Releases the lease, signals `child` to every open parent, drops its waits.

        Writes `handoff.opened` and `run.ended`. Returns the queued runs of its group, and the parents that woke: they
        may be tried now. Questions nobody answered expire with the run.
        """
        ...

    async def signal(self, run_id: str, name: str, payload: dict[str, Json], signal_id: str) -> SignalEnd:
        """Signal and wake-up in one transaction. The same signal_id counts once."""
        ...

    async def wake_due(self, limit: int = 100, among: Collection[str] | None = None) -> tuple[str, ...]:
        """Wake what is due: waits (poll or expiry) and deadlines. Expires approvals and handoffs. Returns run ids.

        A run whose approval expired is woken too (signal `approval`). With `among` only these runs are looked at.
        """
        ...

    async def next_due(self) -> float | None:
        """The next time anything is due: waits, deadlines of waiting runs, leases of runs at work, cursors, effects,
        approvals, handoffs.
        """
        ...

    async def startable(self, limit: int = 100, among: Collection[str] | None = None) -> tuple[tuple[str, int], ...]:
        """(run_id, segment) of queued runs that nothing holds, oldest first. Called at every look of the dispatcher,
        which may be about its own runs only (`among`).
        """
        ...

    async def requeue_lost(self) -> tuple[str, ...]:
        """Runs at work whose lease expired or whose worker is dead: epoch + 1, segment + 1, queued, lease freed."""
        ...

    async def give_back(self, run_id: str, epoch: int) -> None:
        """The holder cannot go on now: queued again, segment + 1, claim and lease gone. Nothing else changes."""
        ...

    async def ask_cancel(self, run_id: str, by: Caller, reason: str, state: Mapping[str, Json] | None = None) -> Run:
        """A queued or waiting run is cancelled at once, and so is a running one whose lease expired or whose worker is
        dead: nobody would hear it. Any other running one is told so (`cancel_asked`). Ended: no change. `state`: its
        `state_refs` as they are now.
        """
        ...

    async def at_work(self, worker: str) -> tuple[AtWork, ...]:
        """Runs that are this worker's by the rows. Called at every look of the dispatcher, which gives back those that
        no task of its own is at work on, and interrupts those that a person wants cancelled.
        """
        ...

    async def hold(self, run_id: str, by: Caller, on: bool) -> Run:
        """Keep an open run from being claimed, or let it go again. A running one stops at its next segment."""
        ...

    async def migrate(self, run_id: str, spec_digest: str, spec_text: str, by: Caller) -> Run:
        """Move a waiting run to a new spec; UsageError in any other status."""
        ...

    async def get_run(self, run_id: str) -> Run:
        """Raises NotFound. An unambiguous prefix is enough."""
        ...

    async def list_runs(self, where: RunFilter) -> tuple[Run, ...]:
        """Newest first unless asked otherwise."""
        ...

    async def count_runs(self, besides: Sequence[str] = ()) -> dict[RunStatus, int]:
        """Without those of the loops that are named."""
        ...

    async def unfollowed(self, limit: int = 100) -> tuple[Run, ...]:
        """Ended runs whose `after` triggers were not looked at yet."""
        ...

    async def followed(self, run_id: str) -> None:
        """Its `after` triggers have started what they start."""
        ...


class RecordStore(Protocol):
    """What runs left behind."""

    async def append(self, run_id: str, epoch: int | None, events: Sequence[NewEvent]) -> None:
        """Add events; with an epoch they are fenced."""
        ...

    async def events(self, run_id: str, after: int = 0, limit: int = 10_000) -> tuple[Event, ...]: ...

    async def heads(self, besides: str) -> tuple[tuple[str, str], ...]:
        """The hundred newest runs but this one, each with the digest of its last event."""
        ...

    async def steps(self, run_id: str, iteration: int | None = None) -> tuple[Step, ...]: ...

    async def conditions(self, run_id: str) -> tuple[Condition, ...]: ...

    async def carried(self, run_id: str) -> Carried: ...

    async def receipts(self, run_id: str) -> tuple[StoredReceipt, ...]: ...

    async def artifacts(self, run_id: str) -> tuple[ArtifactRef, ...]: ...

    async def seals(self, run_id: str) -> dict[str, str]:
        """The seals of the run's rows as they stand now, by name; those of one kind in the order written.

        Kinds: step, receipt, artifact, effect, approval, handoff, fact, carried. The events that told of the rows hold
        the seals as of then (`contract.events.SEALS`); an artifact of an attempt that was cut off has none.
        """
        ...

    async def refer(self, ref: ArtifactRef, epoch: int | None) -> None:
        """Note that a step of a run uses an artifact. Called after the content is safely on disk."""
        ...

    async def spec_text(self, digest: str) -> str: ...

    async def has_fact(self, fact: str, subject: str, loop_id: str) -> bool:
        """Was this recorded about the subject? `completed`: a run of the loop with this subject completed."""
        ...

    async def recorded_by(self, fact: str, subject: str) -> str | None:
        """The run that recorded this about the subject last, or None."""
        ...

    async def child_started(self, run_id: str, epoch: int, child: ChildRef, argv: Sequence[str]) -> None: ...

    async def child_ended(self, child: ChildRef) -> None: ...

    async def live_children(self, but_of: Collection[str] = ()) -> tuple[ChildRef, ...]:
        """Children that nobody has seen end; without those of runs that one of these workers has at work."""
        ...

    async def forget(self, runs_before: float, artifacts_before: float) -> tuple[str, ...]:
        """Retention: drop ended runs and artifact references older than this. Returns artifact digests that nobody
        refers to any more. Never touches an open run, a run with an open or taken handoff, or an unsettled effect.
        What a forgotten run spent counts until the month is over.
        """
        ...

    async def referred(self) -> frozenset[str]:
        """Every artifact digest that a row refers to."""
        ...


class EffectStore(Protocol):
    """The door's rows. `epoch` is None for effects outside a run (alarms) and for deferred notices."""

    async def intend(
        self, key: str, origin: Origin, epoch: int | None, call: EffectCall, digest: str, class_: EffectClass,
        state: EffectState, settle_at: float, reason: str = "",
    ) -> tuple[Effect, bool]:  # fmt: skip
        """Write the intent; (row, True) if it is new, else the row as it stands and False.

        The same key with another digest raises EffectRefused. `call` is the redacted one, `digest` of the one asked.
        An intent in the state `intended` is the first attempt.
        """
        ...

    async def attempt(self, key: str, epoch: int | None, settle_at: float) -> Effect:
        """One more attempt begins: attempts + 1, state intended, next_at cleared.

        EffectRefused for a settled effect, and without an epoch also while another attempt may be in flight.
        """
        ...

    async def settle(
        self, key: str, epoch: int | None, state: EffectState, result: dict[str, Json], reason: str,
        next_at: float | None = None,
    ) -> Effect:  # fmt: skip
        """How an attempt ended. A settled effect stays as it is (returned unchanged)."""
        ...

    async def get_effect(self, key: str) -> Effect | None: ...

    async def effects(self, run_id: str | None = None, states: Sequence[EffectState] = ()) -> tuple[Effect, ...]: ...

    async def due_effects(self, limit: int = 20) -> tuple[Effect, ...]:
        """Deferred effects in `retrying` that are due, and whatever an ended run left unsettled, once it is due or no
        attempt can be in flight any more.
        """
        ...

    async def count_effects(self, name: str, since: float) -> int:
        """Effects of this name that were let out since then (every state but refused and dry_run)."""
        ...


class PeopleStore(Protocol):
    """Handoffs, approvals, controls."""

    async def ask_approval(self, run_id: str, epoch: int, approval: Approval) -> Approval:
        """Ask, once per (run, question, bound_to, role); an existing one is returned as it stands, unless used."""
        ...

    async def decide_approval(
        self, approval_id: str, approve: bool, by: Caller, bound_to: str | None, note: str
    ) -> Approval:
        """A person's answer; signals `approval` to the run in the same transaction.

        UsageError if it is not open any more, expired, the role is too low, or `bound_to` is another.
        """
        ...

    async def revoke_approval(self, approval_id: str, by: Caller, note: str) -> Approval:
        """Take an approval back; UsageError once it was used, or if the role is too low. Signals `approval`."""
        ...

    async def use_approval(self, approval_id: str, run_id: str, epoch: int, bound_to: str, used_by: str) -> Approval:
        """Spend it. Idempotent for the same `used_by`; ActionFailed(kind="approval") otherwise, with the reason."""
        ...

    async def get_approval(self, approval_id: str) -> Approval: ...

    async def approvals(self, run_id: str | None = None, open_only: bool = False) -> tuple[Approval, ...]: ...

    async def handoffs(self, states: Sequence[HandoffState] = (), run_id: str | None = None) -> tuple[Handoff, ...]: ...

    async def get_handoff(self, handoff_id: str) -> Handoff: ...

    async def change_handoff(self, handoff_id: str, state: HandoffState, by: Caller, note: str) -> Handoff:
        """taken (from open), accepted or changing (from these), open (from changing), done; UsageError otherwise."""
        ...

    async def set_control(self, scope: str, on: bool, by: Caller, note: str) -> tuple[Control, ...]: ...

    async def controls(self) -> tuple[Control, ...]: ...


class OperationsStore(Protocol):
    """Workers, triggers' cursors, money, alerts."""

    async def now(self) -> float:
        """The store's time, seconds since 1970 UTC. Where an engine is at work, a leap of its clock shows only after
        `adopt_leap`."""
        ...

    async def work_time(self) -> float:
        """Seconds that passed here while the machine was awake; only differences within one process mean anything.

        No clock that is set and no suspension moves it: what counts work is measured with it.
        """
        ...

    async def adopt_leap(self) -> Leap | None:
        """Called by the engine at every look; from the first call on, leaps are held back. None: there is none.

        Otherwise one transaction has moved deadlines, leases, waits, approvals, handoffs and effects in flight by the
        leap (those of people and the world only by its `jump`), each run concerned says so (`clock.leapt`), and `now`
        follows the clock again. Of several workers that see the same leap, one moves what is due.
        """
        ...

    async def join(self, worker: WorkerInfo, alone: bool) -> None:
        """A worker begins. `alone`: nobody else can be there, and every other worker is declared dead."""
        ...

    async def attend(self, alive: Collection[str], gone: Collection[str], ttl: float) -> None:
        """What is known of other workers by their processes. What the living have at work is renewed, whether or not
        they hear, unless a person wants it cancelled; those that are gone are declared dead. Called by whoever moves
        runs beside others.
        """
        ...

    async def beat(self, worker: str, ttl: float, at_work: Mapping[str, int]) -> Heartbeat:
        """Renew the worker, and the claims and leases of the runs it is at work on: `at_work` names each with the epoch
        of its claim. Nothing else is renewed, whatever the rows say: what nobody is at work on expires. Tells which of
        those claims are gone, however often it is asked. Raises WorkerDeclaredDead.
        """
        ...

    async def leave(self, worker: str) -> None:
        """A worker stops in good order; what it still had is requeued."""
        ...

    async def workers(self) -> tuple[WorkerInfo, ...]: ...

    async def cursors(self, prefix: str = "") -> tuple[Cursor, ...]: ...

    async def fire(self, old: Cursor | None, new: Cursor, starts: Sequence[NewRun]) -> tuple[Started, ...] | None:
        """Move a cursor from exactly `old` (None: it does not exist yet) and start runs, in one transaction.

        None: another process was first and nothing was written.
        """
        ...

    async def drop_cursors(self, names: Sequence[str]) -> None: ...

    async def reserve(
        self, key: str, run_id: str, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
    ) -> str | None:
        """Book amounts, unless a limit would be passed: then its name, and nothing is booked. An event tells of it.

        The same key books once.
        """
        ...

    async def settle_spend(self, key: str, amounts: dict[str, float]) -> None:
        """Replace what was reserved by what was used. An event tells of it, also after the run's end."""
        ...

    async def begin_call(
        self, call: AgentCall, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
    ) -> str | None:
        """Record a call that is about to be made and book what it may use, or name the limit that forbids it.

        One transaction, with the event that seals the call. The same call_id begins once: then None, and nothing is
        booked again.
        """
        ...

    async def end_call(self, call_id: str, end: CallEnd, amounts: dict[str, float]) -> None:
        """Record how it ended and replace the booking by what was used, with the event that seals both. A second end
        of the same call changes nothing; no claim is needed: whoever knows what a call used may settle it, after the
        run was taken over and after its end too. Raises NotFound.
        """
        ...

    async def calls(
        self, run_id: str | None = None, since: float = 0, limit: int | None = None
    ) -> tuple[AgentCall, ...]:
        """Calls that began at or after `since`, newest first."""
        ...

    async def spent(self, run_id: str | None = None, loop_id: str | None = None, since: float = 0) -> dict[str, float]:
        """Sums by kind."""
        ...

    async def raise_alert(self, key: str, text: str, data: dict[str, Json]) -> Alert:
        """Raise, or count once more. A closed alert opens again; a told one stays told."""
        ...

    async def alert_told(self, key: str, delivered: bool) -> Alert:
        """Only a delivery mutes an alert; a failed one re-opens it."""
        ...

    async def close_alert(self, key: str) -> Alert | None: ...

    async def alerts(self, states: Sequence[AlertState] = ()) -> tuple[Alert, ...]: ...

    async def version_changed(self) -> bool:
        """Has another process written since the last call? The safety net behind the doorbell."""
        ...

    async def faults(self, whole: bool = False) -> tuple[str, ...]:
        """What the database finds wrong with its own files; empty is good. `whole` looks at the indexes too.

        Called when an engine starts and after the file was written to from elsewhere; about 0.1 s for 100 MB.
        """
        ...

    async def close(self) -> None: ...


class SpendLimit(Record):
    """A limit that a reservation is checked against."""

    name: str  # shown to people: "this run's usd budget"
    kind: str
    most: float
    run_id: str | None = None
    loop_id: str | None = None
    since: float = 0.0


class Store(
    RunStore, RecordStore, EffectStore, PeopleStore, OperationsStore, looking.LookingStore, TableStore, Protocol
):
    """The whole journal."""
