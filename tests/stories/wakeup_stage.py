"""The stage of the lost-wake-up machine: one journal, engines that die in the middle, and a model of what was sent.

Every loop here tells in its journaled outputs which signals it has seen, so that a lost one is found, not guessed.
"""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from becket.app.compose import App
from becket.app.record.verify import verify_run
from becket.app.serve import recover
from becket.app.state import StateFolder
from becket.kernel.contract import crash
from becket.kernel.contract.action import ActionContext, ActionDef, Conclusion, Registry, Result, Verdict, VerifierDef
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.handoff import ApprovalState
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.store import RunFilter, SignalEnd, Store
from becket.kernel.engine.intake import StartRequest
from becket.kernel.git.repository import GitRepository, discover
from becket.kernel.spec.book import LoopBook
from becket.kernel.store import open_memory, open_postgres, open_sqlite
from becket.testing.clock import ManualClock
from becket.testing.crashes import Crashed
from becket.testing.people import person
from becket.testing.world import make_repository

T = TypeVar("T")

WAIT_FOR, DEADLINE, POLL, APPROVAL_LIFE = 400.0, 1000.0, 60.0, 300.0

_HEAD = f"""
version: 1
loop_id: NAME
goal: No run of NAME sleeps past its signal.
trigger: [{{manual: {{}}}}]
subject: "{{start}}"
max_iterations: 2
deadline: {DEADLINE:g}s
"""
_VERIFY = """
  verify:
    objective: look
    verifiers: [{id: look, uses: test.look}]
"""
GATHER = (
    _HEAD.replace("NAME", "gather")
    + f"""
inputs: {{needed: {{type: integer, default: 1}}}}
stop_conditions: [enough]
wait_conditions: {{wanting: {{wake: go, poll: {POLL:g}s, for: {WAIT_FOR:g}s, then: handoff}}}}
phases:
  act:
    objective: count what came
    actions: [{{id: gather, uses: test.gather, with: {{needed: "{{needed}}"}}}}]
    persist_outputs: [gather.seen]
"""
    + _VERIFY
)
ASK = (
    _HEAD.replace("NAME", "ask")
    + """
inputs: {life: {type: string}}
stop_conditions: [approval.approved]
handoff_conditions: [approval.denied, approval.revoked, approval.expired]
wait_conditions: {approval.asked: {wake: approval, for: 1d, then: handoff}}
phases:
  plan:
    objective: ask
    actions: [{id: ask, uses: approval.ask, with: {question: "may I?", about: it, expires: "{life}"}}]
"""
    + _VERIFY
)
FAN = (
    _HEAD.replace("NAME", "fan")
    + """
stop_conditions: [children.completed]
handoff_conditions: [children.unfinished]
wait_conditions: {children.pending: {wake: child, for: 1d, then: handoff}}
phases:
  act:
    objective: children that wait for signals of their own
    actions:
      - {id: each, uses: run.start, with: {loop: gather, each: [a, b], subject: "{run_id}/%"}}
      - {id: stand, uses: run.gather}
"""
    + _VERIFY
)


class Needed(Record):
    needed: int


async def _gather(context: ActionContext, params: Needed) -> Result:
    """Remembers every signal that woke the run, over iterations, crashes and restarts."""
    woken = context.conditions.get("woken")
    new = [signal["signal_id"] for signal in woken.evidence.get("signals", ())] if woken is not None else []
    seen = sorted({*context.outputs.get("gather", {}).get("seen", ()), *new})
    name = "enough" if len(seen) >= params.needed else "wanting"
    return Result(outputs={"seen": seen}, conditions=(Condition(name=name, group=("enough", "wanting")),))


async def _look(context: ActionContext, params: Record) -> Verdict:
    return Verdict(Conclusion.passed, {})


ACTION = ActionDef(
    name="test.gather", summary="Counts signals.", run=_gather, params=Needed, outputs=("seen",),
    raises=(ConditionGroup(names=("enough", "wanting")),),
)  # fmt: skip
VERIFIER = VerifierDef("test.look", "Looks.", _look)


class House:
    """What all examples share: one repository with the loops, read and linted once."""

    def __init__(self, folder: Path) -> None:
        root = folder / "repo"
        make_repository(root)
        self.state = StateFolder(root, root / ".git").make()
        for name, text in {"gather": GATHER, "ask": ASK, "fan": FAN}.items():
            file = root / ".becket" / "loops" / f"{name}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    @cached_property
    def registry(self) -> Registry:
        own = App(self.state, open_memory()).registry
        return replace(
            own,
            actions={**own.actions, ACTION.name: ACTION},
            verifiers={**own.verifiers, VERIFIER.name: VERIFIER},
            signals=(*own.signals, "go"),
        )

    @cached_property
    def git(self) -> GitRepository:
        return discover(self.state.root)

    @cached_property
    def loops(self) -> LoopBook:
        return LoopBook(self.state.loops, {}, self.registry)

    def app(self, store: Store) -> App:
        app = App(self.state, store, io.StringIO())
        app.git, app.registry, app.loops = self.git, self.registry, self.loops
        return app


@dataclass
class Sent:
    """What the outside knows of one run."""

    needed: int = 1
    accepted: set[str] = field(default_factory=set)
    cancelled: bool = False


class Journal(Protocol):
    """Where an example writes. `lasting`: it outlives its connection; `awaits`: its store waits for another process."""

    clock: ManualClock
    lasting: bool
    awaits: bool

    def fresh(self) -> Store:
        """An empty journal, open."""
        ...

    def again(self) -> Store:
        """The same journal, opened by another process."""
        ...


class InMemory:
    """One connection for all examples, emptied between them: a new one would compile every statement anew."""

    lasting = awaits = False

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._store = open_memory(self.clock)
        self._empty = sqlite3.connect(":memory:")
        self._raw.backup(self._empty)

    @property
    def _raw(self) -> sqlite3.Connection:
        raw: sqlite3.Connection = self._store._db._raw  # type: ignore[attr-defined]
        return raw

    def fresh(self) -> Store:
        self._empty.backup(self._raw)
        return self._store

    def again(self) -> Store:
        return self._store


class InFiles:
    lasting, awaits = True, False

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self._folder = folder
        self._number = 0

    def fresh(self) -> Store:
        self._number += 1
        return self.again()

    def again(self) -> Store:
        return open_sqlite(self._folder / f"{self._number}.db", self.clock)


class InPostgres:
    lasting = awaits = True

    def __init__(self, new_database: Callable[[], str]) -> None:
        self.clock = ManualClock()
        self._new_database = new_database
        self._url = ""

    def fresh(self) -> Store:
        self._url = self._new_database()
        return self.again()

    def again(self) -> Store:
        return open_postgres(self._url, self.clock)


class Stage:
    """One example: a journal, at most one living engine, and the model."""

    def __init__(self, house: House, journal: Journal) -> None:
        self.house = house
        self.clock = journal.clock
        self._journal = journal
        self._runner = asyncio.Runner()
        self.store = journal.fresh()
        self.app: App | None = None
        self.sent: dict[str, Sent] = {}
        self.restart()

    def now(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def close(self) -> None:
        if self._journal.lasting:
            self.now(self.store.close())
        self._runner.close()

    def restart(self) -> None:
        """A new engine over the same journal; whatever the old one held in memory is gone."""
        self.now(self._begin())

    async def _begin(self) -> None:
        if self._journal.lasting:
            await self.store.close()
            self.store = self._journal.again()
        app = self.house.app(self.store)
        await self.store.join(app.worker("daemon", self.clock()), alone=True)
        await recover(app)
        self.app = app

    def until_killed(self, work: Coroutine[Any, Any, T], hook: Callable[[str], None]) -> T | None:
        """Do something that may end in a kill; the engine is then gone."""
        crash.install(hook)
        try:
            return self.now(work)
        except Crashed:
            self.app = None
            return None
        finally:
            crash.install(None)

    async def start(self, loop: str, needed: int) -> str:
        intake = self.house.app(self.store).intake  # a client's own process
        long = DEADLINE * 2  # nothing but its deadline wakes it
        life = f"{APPROVAL_LIFE if needed == 1 else long:g}s"
        inputs = {"gather": {"needed": needed}, "ask": {"life": life}, "fan": {}}[loop]
        run = (await intake.start(StartRequest(loop_id=loop, inputs=inputs))).run
        assert run is not None
        self.sent[run.run_id] = Sent(needed)
        return run.run_id

    async def signal(self, run_id: str, name: str, signal_id: str) -> None:
        said = await self.store.signal(run_id, name, {}, signal_id)
        if said in (SignalEnd.woke, SignalEnd.kept) and name == "go":
            self.sent[run_id].accepted.add(signal_id)

    async def signal_twice(self, run_id: str, signal_id: str, hook: Callable[[str], None]) -> None:
        crash.install(hook)
        try:
            await self.signal(run_id, "go", signal_id)
        except Crashed:
            crash.install(None)
            if await self.store.signal(run_id, "go", {}, signal_id) is not SignalEnd.ended:
                self.sent[run_id].accepted.add(signal_id)
        finally:
            crash.install(None)

    async def oust(self) -> None:
        """Another process becomes the engine while this one still believes to be it."""
        await self.store.join(self.house.app(self.store).worker("daemon", self.clock()), alone=True)
        await self.store.requeue_lost()
        self.app = None

    async def hold(self, run_id: str, on: bool) -> None:
        if (await self.store.get_run(run_id)).status not in ENDED:
            await self.store.hold(run_id, person("me"), on)

    def let_go(self) -> None:
        for run in self.now(self.runs()):
            self.now(self.hold(run.run_id, on=False))

    async def look(self) -> None:
        if self.app is not None:
            await self.store.wake_due()
            await self.store.requeue_lost()

    def settled(self) -> None:
        if self.app is None:
            self.restart()
        self.now(self.settle())
        self.now(self.check())

    async def cancel(self, run_id: str) -> None:
        run = await self.store.ask_cancel(run_id, person("me"), "")
        if run.status is RunStatus.cancelled or run.cancel_asked:
            self.sent[run_id].cancelled = True

    async def answer(self, run_id: str, approve: bool) -> None:
        for approval in await self.store.approvals(run_id, open_only=True):
            await self.store.decide_approval(approval.approval_id, approve, person("me"), approval.bound_to, "")

    async def advance(self, number: int) -> None:
        """One of the runs that can start now; as often as a dispatcher may, also for nothing."""
        if self.app is not None and (startable := await self.store.startable()):
            await self.app.engine.advance(*startable[number % len(startable)])

    async def settle(self) -> None:
        """Everything that an engine does by itself."""
        assert self.app is not None
        while True:
            await self.store.wake_due()
            await self.store.requeue_lost()
            moved = [await self.app.engine.advance(*each) for each in await self.store.startable()]
            if all(end == "stale" for end in moved):
                return

    async def runs(self) -> tuple[Run, ...]:
        runs = await self.store.list_runs(RunFilter(limit=1000, oldest_first=True))
        for run in runs:
            self.sent.setdefault(run.run_id, Sent())  # a child
        return runs

    async def check(self) -> None:
        """After everything has settled: nobody sleeps who should be awake."""
        due = await self.store.next_due()
        assert due is None or due > self.clock(), f"something was due {self.clock() - due} s ago and nobody looked"
        for run in await self.runs():
            assert run.status is not RunStatus.running, f"{run.run_id} is at work, and nobody works"
            assert run.status is not RunStatus.queued or run.held, f"{run.run_id} could start and was not started"
            await {RunStatus.waiting: self._waits_rightly}.get(run.status, self._stands_rightly)(run)

    async def _waits_rightly(self, run: Run) -> None:
        sent, since = self.sent[run.run_id], min(run.waits_since.values())
        assert not run.cancel_asked
        assert run.deadline_at > self.clock()
        if run.loop_id == "gather":
            assert self.clock() < since + WAIT_FOR
            assert len(sent.accepted) < sent.needed, f"{run.run_id} sleeps past its signal"
            assert set(await self._seen(run)) == sent.accepted, f"{run.run_id} lost a signal"
        elif run.loop_id == "ask":
            states = [approval.state for approval in await self.store.approvals(run.run_id)]
            assert states == [ApprovalState.asked], f"{run.run_id} sleeps past its answer: {states}"
        else:
            children = await self.store.list_runs(RunFilter(parent=run.run_id))
            assert any(child.status not in ENDED for child in children), f"{run.run_id} sleeps past its children"

    async def _stands_rightly(self, run: Run) -> None:
        sent = self.sent[run.run_id]
        if run.status is RunStatus.cancelled:
            assert sent.cancelled
        elif run.status is RunStatus.completed and run.loop_id == "gather":
            assert len(set(await self._seen(run)) & sent.accepted) >= sent.needed
        elif run.status is RunStatus.ready_for_handoff:
            assert run.reason in {
                "wait_expired", "deadline_passed", "children.unfinished", "approval.denied", "approval.expired"
            }  # fmt: skip
        else:
            assert run.status in (RunStatus.queued, RunStatus.completed), (
                f"{run.run_id}: {run.status} {run.reason} {run.detail}"
            )

    async def _seen(self, run: Run) -> list[str]:
        steps = [step for step in await self.store.steps(run.run_id) if step.id == "gather"]
        return list(steps[-1].outputs["seen"]) if steps else []

    async def check_end(self) -> None:
        """Every run has ended; its events are one unbroken chain and tell the status it has (looked at for two)."""
        assert self.app is not None
        runs = await self.runs()
        for run in runs:
            assert run.status in ENDED, f"{run.run_id} is {run.status} although its deadline has passed"
        for run in (runs[0], runs[-1]):
            wrong = [check for check in await verify_run(self.app, run.run_id, rerun=False) if not check.ok]
            assert not wrong, f"{run.run_id}: {wrong}"
