"""Moves a claimed run through its seven phases, iteration by iteration, until it ends or waits.

Nothing here remembers anything: every step is looked up in the journal first, and written there before the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.condition import Condition, Conditions
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.events import EventKind, NewEvent
from becket.kernel.contract.git import Git
from becket.kernel.contract.handoff import Handoff
from becket.kernel.contract.run import DECISION, Decision, Move, Outcome, Step, StepState
from becket.kernel.contract.spec import CLOSING, PHASES, ActionSpec, Budget, OnError, Phase, PhaseSpec, VerifierSpec
from becket.kernel.contract.store import Claim, End, Recorded
from becket.kernel.contract.when import parse
from becket.kernel.engine.context import Runtime, StepContext
from becket.kernel.engine.decide import Situation, carry, decide, next_step_words, wait_rows
from becket.kernel.engine.money import NOUN, OF_RUN, surely_spent
from becket.kernel.engine.state import StateReader
from becket.kernel.engine.steps import Done, do_action, do_verifier, skipped

CLOSING_TIME = 60.0
"""What persist, decide and notify may always use, even when the run's time is up."""

HANDOFF_LIFE = 30 * 86400.0

LEAP = 30.0
"""Seconds by which the store's time and the time at work must part to count as a leap of the clock."""

decided = CrashPoint("walk.decided", "the decision is made, not written")
decision_written = CrashPoint("walk.decision_written", "the decision is written, notify has not run")
notified = CrashPoint("walk.notified", "notify has run, the run has not moved")
moved = CrashPoint("walk.moved", "the run has moved; its folder is still there")
step_recorded = CrashPoint("walk.step_recorded", "a step's row is written, the next one has not begun")
phase_ended = CrashPoint("walk.phase_ended", "a phase is over")


class RunCancelled(Exception):
    """A person cancelled the run while an action was at work."""


class Walk:
    """Moves one claimed run. Made for one claim and thrown away with it."""

    def __init__(self, runtime: Runtime, claim: Claim) -> None:
        self._runtime = runtime
        self._run = claim.run
        self._spec = runtime.loops.parse(claim.spec_text)
        self._carried = claim.carried
        self._conditions = Conditions(claim.conditions)
        self._memo = {(step.phase, step.id): step for step in claim.steps}
        self._steps: list[Step] = []
        self._outputs: dict[str, dict[str, Json]] = dict(claim.carried.outputs)
        self._receipts: list[tuple[Json, ...]] = []
        self._unwritten: list[Done] = []  # skipped steps, written together with the next one
        self._entered: Phase | None = None
        self._diverted = False
        self._failing = ""
        self._decision: Decision | None = None
        self._budget = Budget()
        self._seconds_left = 0.0
        self._due_at_work: float | None = None  # the deadline, by the time at work
        self._came: tuple[float, float] | None = (
            None  # the store's time and the time at work, when both were seen first
        )
        self._spent: Mapping[str, float] | None = (
            None  # as of the last step that was done; a skipped one spends nothing
        )
        self._at_work: asyncio.Task[object] | None = None
        self._interrupting = False

    @property
    def epoch(self) -> int:
        """The claim that it walks under."""
        return self._run.epoch

    def interrupt(self) -> None:
        """A person wants it cancelled: stop the action at work, then decide and notify. May be called often."""
        self._run = self._run.model_copy(update={"cancel_asked": True})
        if self._at_work is not None and self._decision is None and not self._interrupting:  # notify always runs
            self._interrupting = True
            self._at_work.cancel()

    async def to_the_end(self) -> None:
        """Iterate until the run ends or waits."""
        await self._read_receipts()
        self._came = await self._runtime.store.now(), await self._runtime.store.work_time()
        while True:
            decision = await self._iteration()
            if decision.outcome is not Outcome.again:
                await self._leave(decision)
                return
            await self._next_iteration(decision)

    async def _iteration(self) -> Decision:
        with contextlib.suppress(RunCancelled):
            for phase in PHASES[:-1]:
                if not self._diverted or phase in CLOSING:
                    await self._phase(phase)
        self._decision = await self._decide()
        decision_written()
        with contextlib.suppress(RunCancelled):
            await self._phase(Phase.notify)
        if self._unwritten:
            await self._write([*self._unwritten])
        notified()
        return self._decision

    async def _phase(self, phase: Phase) -> None:
        spec = self._spec.phase(phase)
        self._budget = self._runtime.policy.budget(self._run, self._spec.budget)
        await self._out_of_bounds()
        if not await self._actions(phase, spec):
            return
        await self._verifiers(phase, spec)
        phase_ended()

    async def _actions(self, phase: Phase, spec: PhaseSpec) -> bool:
        """False when an action's failure cut the phase short."""
        for action in spec.actions:
            # What was done before a crash stays done: bounds stop only what has not begun.
            new = (phase, action.id) not in self._memo
            if new and phase not in CLOSING and await self._out_of_bounds():
                self._diverted = True
                return False
            step = await self._once(phase, action.id, partial(self._act, phase, action))
            if step.state is StepState.failed and action.on_error is not OnError.carry_on and phase is not Phase.notify:
                self._diverted = True
                self._failing = self._failing or (action.id if action.on_error is OnError.fail else "")
                return False
        return True

    async def _verifiers(self, phase: Phase, spec: PhaseSpec) -> None:
        """Every verifier of the phase looks, so that the evidence is whole; one that does not pass diverts."""
        for verifier in spec.verifiers:
            step = await self._once(phase, verifier.id, partial(self._verify, phase, verifier))
            if step.state is StepState.failed and phase not in CLOSING:
                self._diverted = True

    async def _once(self, phase: Phase, step_id: str, do: Callable[[], Awaitable[Done]]) -> Step:
        """The journal's row for this step, or do it and write the row."""
        known = self._memo.get((phase, step_id))
        if known is None:
            if self._run.cancel_asked and self._decision is None:
                raise RunCancelled
            began = await self._runtime.store.work_time()
            done = await do()
            worked = await self._runtime.store.work_time() - began - done.stood_still
            done = replace(done, work=max(worked, 0.0))
            if phase is Phase.notify:  # it tells what was decided; it raises nothing
                done = replace(done, step=done.step.model_copy(update={"conditions": ()}))
            known = done.step
            if known.state is StepState.skipped:
                self._unwritten.append(done)
            else:
                self._spent = None
                await self._record(done)
        self._remember(known)
        return known

    def _remember(self, step: Step) -> None:
        self._steps.append(step)
        if step.outputs:
            self._outputs = {**self._outputs, step.id: {**self._outputs.get(step.id, {}), **step.outputs}}

    async def _act(self, phase: Phase, action: ActionSpec) -> Done:
        if (why := self._reason_to_skip(action)) is not None:
            return skipped(self._context(phase, action.id, 1), action.id, why, await self._runtime.store.now())
        done = await self._interruptible(do_action(action, partial(self._context, phase)))
        if self._run.dry_run and done.step.error_kind == "no_output":
            why = f"dry run: {done.step.error}"  # what it needs would have been made by something left out
            return skipped(self._context(phase, action.id, 1), action.id, why, done.step.ended_at)
        return done

    async def _verify(self, phase: Phase, verifier: VerifierSpec) -> Done:
        if verifier.when and not parse(verifier.when).holds(self._conditions.has):
            why = f"`{verifier.when}` does not hold"
            return skipped(self._context(phase, verifier.id, 1), verifier.id, why, await self._runtime.store.now())
        return await self._interruptible(do_verifier(verifier, partial(self._context, phase)))

    def _reason_to_skip(self, action: ActionSpec) -> str | None:
        if action.when and not parse(action.when).holds(self._conditions.has):
            return f"`{action.when}` does not hold"
        definition = self._runtime.registry.actions.get(action.uses or "")
        if self._run.dry_run and definition is not None and definition.calls_agent:
            return "dry run: no agent is called"
        return None

    async def _interruptible(self, work: Awaitable[Done]) -> Done:
        self._at_work = asyncio.current_task()
        try:
            return await work
        except asyncio.CancelledError:
            if not self._interrupting or self._at_work is None or self._at_work.uncancel() > 0:
                raise  # the whole process stops, whatever a person wanted beside that
            raise RunCancelled from None
        finally:
            self._at_work, self._interrupting = None, False

    def _context(self, phase: Phase, step_id: str, attempt: int) -> StepContext:
        return StepContext(
            runtime=self._runtime,
            run=self._run,
            spec=self._spec,
            phase=phase,
            step_id=step_id,
            attempt=attempt,
            conditions=self._conditions,
            outputs=self._outputs,
            decision=self._decision,
            seconds_left=max(self._seconds_left, CLOSING_TIME) if phase in CLOSING else self._seconds_left,
        )

    async def _out_of_bounds(self) -> bool:
        """Raise `deadline_passed` or `budget_exhausted` where it is so."""
        now = await self._runtime.store.now()
        budget = self._budget
        left = {"deadline_passed": await self._deadline(now)}
        if budget.wall is not None:
            left["budget_exhausted"] = budget.wall - self._run.wall_used
        self._seconds_left = min(left.values())
        for name, seconds in left.items():
            if seconds <= 0:
                self._raise(name, {"over_by_seconds": round(-seconds, 3)}, now)
        limits = {"agent_time": budget.agent_time, "tokens": budget.tokens, "usd": budget.usd}
        if any(limit is not None for limit in limits.values()):
            if self._spent is None:
                self._spent = await surely_spent(self._runtime.store, self._run.run_id)
            for kind, limit in limits.items():
                used = self._spent.get(kind, 0.0)
                if limit is not None and 0 < used >= limit:  # of a zero, nothing is used before a call asks for some
                    evidence = {"budget": OF_RUN.format(NOUN[kind]), "kind": kind, "used": used, "limit": limit}
                    self._raise("budget_exhausted", evidence, now)
        return "deadline_passed" in self._conditions or "budget_exhausted" in self._conditions

    async def _deadline(self, now: float) -> float:
        """Seconds to the deadline. Once at work, they go by as work does: no clock that is set can end the run."""
        worked = await self._runtime.store.work_time()
        if self._due_at_work is None:
            self._due_at_work = worked + self._run.deadline_at - now
        return self._due_at_work - worked

    def _raise(self, name: str, evidence: dict[str, Json], at: float) -> None:
        new = Condition(name=name, evidence=evidence, iteration=self._run.iteration, at=at)
        self._conditions = self._conditions.raised((new,))

    async def _record(self, done: Done) -> None:
        """One transaction: this step, the skipped ones before it, their events, conditions and receipts."""
        await self._write([*self._unwritten, done])
        self._conditions = self._conditions.raised(done.step.conditions)
        self._receipts += [(item.receipt.command, item.receipt.tree, item.receipt.exit_code) for item in done.receipts]

    async def _write(self, batch: list[Done]) -> None:
        self._unwritten.clear()
        events = self._events(batch)
        wall = sum(item.work for item in batch)
        await self._runtime.store.record(
            self._run.run_id,
            self._run.epoch,
            Recorded(
                steps=tuple(item.step for item in batch),
                events=tuple(events),
                receipts=tuple(receipt for item in batch for receipt in item.receipts),
                facts=tuple(fact for item in batch for fact in item.facts),
                wall=wall,
            ),
        )
        step_recorded()
        self._run = self._run.model_copy(update={"wall_used": self._run.wall_used + wall})

    def _events(self, batch: list[Done]) -> list[NewEvent]:
        events = []
        for item in batch:
            if item.step.phase is not self._entered:
                self._entered = item.step.phase
                events.append(NewEvent(kind=EventKind.phase_entered, data={"phase": item.step.phase}))
            events.append(_event(item))
        return events

    async def _decide(self) -> Decision:
        if (known := self._memo.get((Phase.decide, DECISION))) is not None:
            return Decision.model_validate(known.outputs)
        situation = await self._situation()
        decision = decide(situation)
        decided()
        bounds = tuple(item for item in self._conditions if item.name in ("deadline_passed", "budget_exhausted"))
        step = Step(
            run_id=self._run.run_id, iteration=self._run.iteration, phase=Phase.decide, id=DECISION,
            state=StepState.done, outputs=decision.model_dump(mode="json"), conditions=bounds,
            started_at=situation.now, ended_at=situation.now,
        )  # fmt: skip
        await self._record(Done(step))
        return decision

    async def _situation(self) -> Situation:
        now = await self._runtime.store.now()
        self._run = self._run.model_copy(update={"waits_since": await self._since(now)})
        return Situation(
            spec=self._spec, run=self._run, conditions=self._conditions, steps=tuple(self._steps),
            receipts=tuple(self._receipts), carried=self._carried,
            autonomy=self._runtime.policy.autonomy(self._spec, self._run), failing=self._failing, now=now,
            kept=self._runtime.registry.kept(self._spec), uncounted=self._runtime.registry.uncounted(self._spec),
        )  # fmt: skip

    async def _since(self, now: float) -> dict[str, float]:
        """Since when it waits, by the clock as it goes now: a leap under this claim moves it along."""
        worked = await self._runtime.store.work_time()
        came, self._came = self._came or (now, worked), (now, worked)
        leap = (now - came[0]) - (worked - came[1])
        by = leap if abs(leap) >= LEAP else 0.0
        return {name: min(at + by, now) for name, at in self._run.waits_since.items()}

    async def _next_iteration(self, decision: Decision) -> None:
        self._carried = carry(await self._situation())
        await self._runtime.store.next_iteration(self._run.run_id, self._run.epoch, self._carried, decision.counts)
        run = self._run
        self._run = run.model_copy(
            update={"iteration": run.iteration + 1, "counted": run.counted + int(decision.counts), "waits_since": {}}
        )
        self._conditions = self._conditions.next_iteration()
        self._memo, self._steps, self._receipts, self._unwritten = {}, [], [], []
        self._outputs = dict(self._carried.outputs)
        self._entered, self._diverted, self._failing, self._decision = None, False, "", None

    async def _leave(self, decision: Decision) -> None:
        """Carry the decision out: the last write of this claim."""
        if decision.outcome is Outcome.wait:
            await self._wait(decision)
        else:
            await self._runtime.store.end(self._run.run_id, self._run.epoch, await self._end(decision))
        moved()

    async def _wait(self, decision: Decision) -> None:
        situation = await self._situation()
        waiting = list(decision.detail["waits"])
        since = {name: self._run.waits_since.get(name, situation.now) for name in waiting}
        await self._runtime.store.wait(
            self._run.run_id, self._run.epoch, wait_rows(situation, waiting), since, carry(situation)
        )

    async def _end(self, decision: Decision) -> End:
        move = {
            Outcome.completed: Move.complete_dry_run if self._run.dry_run else Move.complete,
            Outcome.handoff: Move.hand_off,
            Outcome.failed: Move.fail,
            Outcome.cancelled: Move.cancel,
        }[decision.outcome]
        handoff = await self._handoff(decision) if move is Move.hand_off else None
        look = StateReader(self._runtime.store, partial(self._runtime.port, Git), self._run.run_id)
        state = await look.at(self._spec.state_refs, self._run.subject.fields)
        return End(move=move, reason=decision.reason, detail=decision.detail, handoff=handoff, state=state)

    async def _handoff(self, decision: Decision) -> Handoff:
        now = await self._runtime.store.now()
        run = self._run
        return Handoff(
            handoff_id=f"hnd_{digest_of([run.run_id, run.iteration])[:12]}", run_id=run.run_id, loop_id=run.loop_id,
            subject=run.subject.name, owner=self._runtime.policy.owner(), reason=decision.reason,
            evidence=decision.detail, next_step=next_step_words(decision, run), created_at=now,
            expires_at=now + HANDOFF_LIFE, updated_at=now,
        )  # fmt: skip

    async def _read_receipts(self) -> None:
        """After a restart: what the steps that are done already proved."""
        if self._memo:
            stored = await self._runtime.store.receipts(self._run.run_id)
            self._receipts = [
                (item.receipt.command, item.receipt.tree, item.receipt.exit_code)
                for item in stored
                if item.iteration == self._run.iteration
            ]


_EVENT_OF = {
    StepState.done: EventKind.step_done,
    StepState.skipped: EventKind.step_skipped,
    StepState.failed: EventKind.step_failed,
}


def _event(done: Done) -> NewEvent:
    """What the story tells of a step; the rest is in its row."""
    step = done.step
    if step.id == DECISION:
        return NewEvent(
            kind=EventKind.decided, data={"outcome": step.outputs["outcome"], "reason": step.outputs["reason"]}
        )
    data: dict[str, Json] = {"phase": step.phase, "id": step.id, "seconds": round(done.work, 3)}
    optional = {
        "conditions": [item.ref for item in step.conditions],
        "error": step.error,
        "kind": step.error_kind,
        "note": step.note,
        "receipts": list(step.receipts),
        "attempts": step.attempts if step.attempts > 1 else 0,
    }
    return NewEvent(kind=_EVENT_OF[step.state], data=data | {key: value for key, value in optional.items() if value})
