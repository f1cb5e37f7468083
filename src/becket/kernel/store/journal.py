"""The Store port over a database: every method is one function of this package, run as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.calls import AgentCall, CallEnd
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect, EffectCall, EffectState, Origin
from becket.kernel.contract.events import Event, NewEvent
from becket.kernel.contract.handoff import Approval, Handoff, HandoffState
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import NewRun, Run, RunStatus, Started, Step
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import (
    Alert,
    AlertState,
    ArtifactRef,
    AtWork,
    Carried,
    Claim,
    Control,
    Cursor,
    End,
    Heartbeat,
    Leap,
    Recorded,
    RunFilter,
    SignalEnd,
    SpendLimit,
    WaitRow,
    WorkerInfo,
)
from becket.kernel.contract.tables import Transaction
from becket.kernel.store import (
    calls,
    claiming,
    effects,
    ending,
    leaping,
    money,
    moving,
    operations,
    people,
    records,
    retention,
    runs,
    sealing,
    waking,
)
from becket.kernel.store.brought import of_a_part
from becket.kernel.store.database import Database

P = ParamSpec("P")
T = TypeVar("T")


class Journal:
    """Implements becket.kernel.contract.store.Store; what each method promises is said there."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.read(of_a_part(work, *args, **kwargs))

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.write(of_a_part(work, *args, **kwargs))

    async def start_run(self, new: NewRun) -> Started:
        return await self._db.write(runs.start_run, new)

    async def claim(self, run_id: str, segment: int, worker: str, ttl: float) -> Claim | None:
        return await self._db.write(claiming.claim, run_id, segment, worker, ttl)

    async def record(self, run_id: str, epoch: int, recorded: Recorded) -> None:
        await self._db.write(moving.record, run_id, epoch, recorded)

    async def next_iteration(self, run_id: str, epoch: int, carried: Carried, counts: bool) -> None:
        await self._db.write(moving.next_iteration, run_id, epoch, carried, counts)

    async def wait(
        self, run_id: str, epoch: int, waits: Sequence[WaitRow], since: dict[str, float], carried: Carried
    ) -> bool:
        return await self._db.write(moving.wait, run_id, epoch, waits, since, carried)

    async def end(self, run_id: str, epoch: int, end: End) -> tuple[str, ...]:
        return await self._db.write(ending.end, run_id, epoch, end)

    async def signal(self, run_id: str, name: str, payload: dict[str, Json], signal_id: str) -> SignalEnd:
        return await self._db.write(waking.signal, run_id, name, payload, signal_id)

    async def wake_due(self, limit: int = 100, among: Collection[str] | None = None) -> tuple[str, ...]:
        return await self._db.write(waking.wake_due, limit, among)

    async def next_due(self) -> float | None:
        return await self._db.read(waking.next_due)

    async def startable(self, limit: int = 100, among: Collection[str] | None = None) -> tuple[tuple[str, int], ...]:
        return await self._db.read(claiming.startable, limit, among)

    async def requeue_lost(self) -> tuple[str, ...]:
        return await self._db.write(claiming.requeue_lost)

    async def give_back(self, run_id: str, epoch: int) -> None:
        await self._db.write(claiming.give_back, run_id, epoch)

    async def ask_cancel(self, run_id: str, by: Caller, reason: str, state: Mapping[str, Json] | None = None) -> Run:
        return await self._db.write(claiming.ask_cancel, run_id, by, reason, state)

    async def at_work(self, worker: str) -> tuple[AtWork, ...]:
        return await self._db.read(claiming.at_work, worker)

    async def hold(self, run_id: str, by: Caller, on: bool) -> Run:
        return await self._db.write(runs.hold, run_id, by, on)

    async def migrate(self, run_id: str, spec_digest: str, spec_text: str, by: Caller) -> Run:
        return await self._db.write(runs.migrate, run_id, spec_digest, spec_text, by)

    async def get_run(self, run_id: str) -> Run:
        return await self._db.read(runs.get_run, run_id)

    async def list_runs(self, where: RunFilter) -> tuple[Run, ...]:
        return await self._db.read(runs.list_runs, where)

    async def count_runs(self, besides: Sequence[str] = ()) -> dict[RunStatus, int]:
        return await self._db.read(runs.count_runs, tuple(besides))

    async def unfollowed(self, limit: int = 100) -> tuple[Run, ...]:
        return await self._db.read(ending.unfollowed, limit)

    async def followed(self, run_id: str) -> None:
        await self._db.write(ending.followed, run_id)

    async def append(self, run_id: str, epoch: int | None, events: Sequence[NewEvent]) -> None:
        await self._db.write(records.append, run_id, epoch, events)

    async def events(self, run_id: str, after: int = 0, limit: int = 10_000) -> tuple[Event, ...]:
        return await self._db.read(records.events_of, run_id, after, limit)

    async def heads(self, besides: str) -> tuple[tuple[str, str], ...]:
        return await self._db.read(records.heads, besides)

    async def steps(self, run_id: str, iteration: int | None = None) -> tuple[Step, ...]:
        return await self._db.read(records.steps_of, run_id, iteration)

    async def conditions(self, run_id: str) -> tuple[Condition, ...]:
        return await self._db.read(records.conditions_of, run_id)

    async def carried(self, run_id: str) -> Carried:
        return await self._db.read(records.carried_of, run_id)

    async def receipts(self, run_id: str) -> tuple[StoredReceipt, ...]:
        return await self._db.read(records.receipts_of, run_id)

    async def artifacts(self, run_id: str) -> tuple[ArtifactRef, ...]:
        return await self._db.read(records.artifacts_of, run_id)

    async def seals(self, run_id: str) -> dict[str, str]:
        return await self._db.read(sealing.of_run, run_id)

    async def refer(self, ref: ArtifactRef, epoch: int | None) -> None:
        await self._db.write(records.refer, ref, epoch)

    async def spec_text(self, digest: str) -> str:
        return await self._db.read(records.spec_text, digest)

    async def has_fact(self, fact: str, subject: str, loop_id: str) -> bool:
        return await self._db.read(records.has_fact, fact, subject, loop_id)

    async def recorded_by(self, fact: str, subject: str) -> str | None:
        return await self._db.read(records.recorded_by, fact, subject)

    async def child_started(self, run_id: str, epoch: int, child: ChildRef, argv: Sequence[str]) -> None:
        await self._db.write(records.child_started, run_id, epoch, child, argv)

    async def child_ended(self, child: ChildRef) -> None:
        await self._db.write(records.child_ended, child)

    async def live_children(self, but_of: Collection[str] = ()) -> tuple[ChildRef, ...]:
        return await self._db.read(records.live_children, but_of)

    async def forget(self, runs_before: float, artifacts_before: float) -> tuple[str, ...]:
        return await self._db.write(retention.forget, runs_before, artifacts_before)

    async def referred(self) -> frozenset[str]:
        return await self._db.read(retention.referred)

    async def intend(
        self, key: str, origin: Origin, epoch: int | None, call: EffectCall, digest: str, class_: EffectClass,
        state: EffectState, settle_at: float, reason: str = "",
    ) -> tuple[Effect, bool]:  # fmt: skip
        return await self._db.write(
            effects.intend, key, origin, epoch, call, digest, class_, state, settle_at, reason
        )  # fmt: skip

    async def attempt(self, key: str, epoch: int | None, settle_at: float) -> Effect:
        return await self._db.write(effects.attempt, key, epoch, settle_at)

    async def settle(
        self, key: str, epoch: int | None, state: EffectState, result: dict[str, Json], reason: str,
        next_at: float | None = None,
    ) -> Effect:  # fmt: skip
        return await self._db.write(effects.settle, key, epoch, state, result, reason, next_at)

    async def get_effect(self, key: str) -> Effect | None:
        return await self._db.read(effects.get_effect, key)

    async def effects(self, run_id: str | None = None, states: Sequence[EffectState] = ()) -> tuple[Effect, ...]:
        return await self._db.read(effects.list_effects, run_id, states)

    async def due_effects(self, limit: int = 20) -> tuple[Effect, ...]:
        return await self._db.read(effects.due_effects, limit)

    async def count_effects(self, name: str, since: float) -> int:
        return await self._db.read(effects.count_effects, name, since)

    async def ask_approval(self, run_id: str, epoch: int, approval: Approval) -> Approval:
        return await self._db.write(people.ask_approval, run_id, epoch, approval)

    async def decide_approval(
        self, approval_id: str, approve: bool, by: Caller, bound_to: str | None, note: str
    ) -> Approval:
        return await self._db.write(people.decide_approval, approval_id, approve, by, bound_to, note)

    async def revoke_approval(self, approval_id: str, by: Caller, note: str) -> Approval:
        return await self._db.write(people.revoke_approval, approval_id, by, note)

    async def use_approval(self, approval_id: str, run_id: str, epoch: int, bound_to: str, used_by: str) -> Approval:
        return await self._db.write(people.use_approval, approval_id, run_id, epoch, bound_to, used_by)

    async def get_approval(self, approval_id: str) -> Approval:
        return await self._db.read(people.get_approval, approval_id)

    async def approvals(self, run_id: str | None = None, open_only: bool = False) -> tuple[Approval, ...]:
        return await self._db.read(people.list_approvals, run_id, open_only)

    async def handoffs(self, states: Sequence[HandoffState] = (), run_id: str | None = None) -> tuple[Handoff, ...]:
        return await self._db.read(people.list_handoffs, states, run_id)

    async def get_handoff(self, handoff_id: str) -> Handoff:
        return await self._db.read(people.get_handoff, handoff_id)

    async def change_handoff(self, handoff_id: str, state: HandoffState, by: Caller, note: str) -> Handoff:
        return await self._db.write(people.change_handoff, handoff_id, state, by, note)

    async def set_control(self, scope: str, on: bool, by: Caller, note: str) -> tuple[Control, ...]:
        return await self._db.write(people.set_control, scope, on, by, note)

    async def controls(self) -> tuple[Control, ...]:
        return await self._db.read(people.list_controls)

    async def now(self) -> float:
        return await self._db.read(operations.now)

    async def work_time(self) -> float:
        return self._db.steady.at_work()

    async def adopt_leap(self) -> Leap | None:
        await self.now()
        self._db.steady.hold()
        leap = self._db.steady.leap()
        if leap is not None:
            await self._db.write(leaping.adopt_leap, leap)
            self._db.steady.adopt()
        return leap

    async def join(self, worker: WorkerInfo, alone: bool) -> None:
        await self._db.write(operations.join, worker, alone)

    async def attend(self, alive: Collection[str], gone: Collection[str], ttl: float) -> None:
        await self._db.write(operations.attend, alive, gone, ttl)

    async def beat(self, worker: str, ttl: float, at_work: Mapping[str, int]) -> Heartbeat:
        return await self._db.write(operations.beat, worker, ttl, at_work)

    async def leave(self, worker: str) -> None:
        await self._db.write(operations.leave, worker)

    async def workers(self) -> tuple[WorkerInfo, ...]:
        return await self._db.read(operations.list_workers)

    async def cursors(self, prefix: str = "") -> tuple[Cursor, ...]:
        return await self._db.read(operations.list_cursors, prefix)

    async def fire(self, old: Cursor | None, new: Cursor, starts: Sequence[NewRun]) -> tuple[Started, ...] | None:
        return await self._db.write(operations.fire, old, new, starts)

    async def drop_cursors(self, names: Sequence[str]) -> None:
        await self._db.write(operations.drop_cursors, names)

    async def reserve(
        self, key: str, run_id: str, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
    ) -> str | None:
        return await self._db.write(money.reserve, key, run_id, epoch, amounts, limits)

    async def settle_spend(self, key: str, amounts: dict[str, float]) -> None:
        await self._db.write(money.settle_spend, key, amounts)

    async def begin_call(
        self, call: AgentCall, epoch: int, amounts: dict[str, float], limits: Sequence[SpendLimit]
    ) -> str | None:
        return await self._db.write(calls.begin_call, call, epoch, amounts, limits)

    async def end_call(self, call_id: str, end: CallEnd, amounts: dict[str, float]) -> None:
        await self._db.write(calls.end_call, call_id, end, amounts)

    async def calls(
        self, run_id: str | None = None, since: float = 0, limit: int | None = None
    ) -> tuple[AgentCall, ...]:
        return await self._db.read(calls.list_calls, run_id, since, limit)

    async def spent(self, run_id: str | None = None, loop_id: str | None = None, since: float = 0) -> dict[str, float]:
        return await self._db.read(money.spent, run_id, loop_id, since)

    async def raise_alert(self, key: str, text: str, data: dict[str, Json]) -> Alert:
        return await self._db.write(operations.raise_alert, key, text, data)

    async def alert_told(self, key: str, delivered: bool) -> Alert:
        return await self._db.write(operations.alert_told, key, delivered)

    async def close_alert(self, key: str) -> Alert | None:
        return await self._db.write(operations.close_alert, key)

    async def alerts(self, states: Sequence[AlertState] = ()) -> tuple[Alert, ...]:
        return await self._db.read(operations.list_alerts, states)

    async def version_changed(self) -> bool:
        return await self._db.version_changed()

    async def faults(self, whole: bool = False) -> tuple[str, ...]:
        return await self._db.faults(whole)

    async def close(self) -> None:
        await self._db.close()
