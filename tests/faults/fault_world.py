"""The real dispatcher, engine, loops and journal in virtual time, around a modelled git, agent and outside.

A process that cannot begin, or must end, is followed by the next one, as the watchdog sees to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from faulty_store import FaultyDatabase, Plan
from properties import Scene, broken
from properties_git import Moved
from virtual_time import LoopTime, VirtualLoop

from becket.app.serve import SWEEP_EVERY, Deliveries, FolderSweep, ThrottledChore, recover
from becket.kernel.contract.effect import SETTLED
from becket.kernel.contract.errors import StoreUnavailable, WorkerDeclaredDead
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.process import ChildEnd, ChildRef, ChildResult, ChildSpec, ChildWatcher, SandboxKind
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import RunFilter, WorkerInfo
from becket.kernel.dispatch.embedded import Chore, DispatcherContext, EmbeddedDispatcher
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store import open_memory
from becket.kernel.store.database import Database
from becket.kernel.store.journal import Journal
from becket.testing.effects import RecordedEffect
from becket.testing.people import person
from becket_lab.simulated.ground import ModelGround
from becket_lab.simulated.project import ModelAgent, ModelProcesses, ModelWatchdog, Odds, begin, module, source
from becket_lab.simulated.system import BRANCH, Kept, MemoryArtifacts, MemoryVerdicts, Outside, SimulatedSystem, build

TTL = 3.0
PACE = 0.05
PROOF = 60.0
PATIENCE = 200.0
LIVES = 8
SURE = Odds(red=0, torn=0, flake=0, dirty=0, release_fails=0, agent=(("repairs", 1.0),))


class Commands(ModelProcesses):
    """Gates as in the model; any other command is a child that lives for a moment and says nothing."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.shipped: Counter[str] = Counter()

    async def run(self, spec: ChildSpec, watcher: ChildWatcher | None = None) -> ChildResult:
        if spec.argv[-1].startswith("gate "):
            return await super().run(spec, watcher)
        Commands.pids += 1
        child = ChildRef(pid=Commands.pids, started=1, boot="virtual")
        if watcher is not None:
            await watcher.started(child, spec.argv)
        await asyncio.sleep(TTL / 2)
        self.shipped[str(spec.tree)] += "ship" in spec.argv[-1]
        spec.output.write_bytes(b"")
        if spec.stdout is not None:
            spec.stdout.write_bytes(b"")
        if watcher is not None:
            await watcher.ended(child)
        return ChildResult(
            end=ChildEnd.exited, exit_code=0, seconds=TTL / 2, output_bytes=0, output_capped=False,
            sandbox=SandboxKind.bwrap,
        )  # fmt: skip

    pids = 10_000_000  # no process has such a number


@dataclass
class FaultWorld:
    """One case: `await house.settle()` lets it run on until nothing is left to do."""

    folder: Path
    loop: VirtualLoop
    plan: Plan
    database: Database | None = None  # without one: SQLite in memory
    loops: Path | None = None

    def __post_init__(self) -> None:
        self.chance = random.Random("house")
        self.time: Any = LoopTime(self.loop, PACE)
        inner = self.database or open_memory(self.loop.clock)._db  # type: ignore[attr-defined]
        self.truth = Journal(inner)
        store = Journal(self.faulty(inner))
        self.on = ModelGround(self.folder)
        self.moves: list[Moved] = []
        self.processes = Commands(self.on, self.time, self.chance, SURE, PROOF)
        self.watchdog = ModelWatchdog(self.time, self.chance, SURE)
        agent = ModelAgent(self.on, self.time, self.chance, SURE)
        self.outside = Outside(self.on, self.processes, agent, self.watchdog, self._main_was_moved)
        self.box = RecordedEffect("notify.file", EffectClass.queryable)
        self.post = RecordedEffect("http.post", EffectClass.keyed)
        self.kept = Kept(
            store, MemoryArtifacts(), MemoryVerdicts(), ttl=TTL, loops=self.loops, effects=(self.box, self.post)
        )
        self.lives = 0
        self.house: SimulatedSystem | None = None
        self.dispatcher: EmbeddedDispatcher | None = None
        self.people: list[Callable[[], Awaitable[bool]]] = []
        self.on.person_commits(begin(), "begin")

    def break_it(self, number: int, text: str = "") -> str:
        return self.on.person_commits({module(number): source("bug", number, text or f"v{number}")}, f"break {number}")

    async def _main_was_moved(self, old: str, new: str, proof: str) -> None:
        self.moves.append(Moved(old, new))

    # Lives

    def faulty(self, inner: Database) -> FaultyDatabase:
        return FaultyDatabase(inner, self.plan, self.loop.clock, self.loop.block)

    async def begin(self) -> None:
        """Main is known to the triggers, as it is after the first start."""
        house = build(self.folder, self.time, self.outside, self.chance, self.kept)
        await house.triggers.sweep()
        await house.triggers.close()

    async def settle(self) -> list[str]:
        """Processes follow each other until nothing is left to do. What is broken then, and after the last one left."""
        until, self.rests, self.found = self.loop.time() + PATIENCE, False, ["no process came to its end"]
        for _ in range(self.most_lives):
            with contextlib.suppress(StoreUnavailable, WorkerDeclaredDead):
                await self._live(until)
                break
            await asyncio.sleep(1.0)
        return self.found or await broken(await self.scene())

    async def _live(self, until: float) -> None:
        self.lives += 1
        self.plan.killed = False
        kept = replace(self.kept, worker=f"wrk_{self.lives}")
        self.house = build(self.folder, self.time, self.outside, self.chance, kept)
        app = self._app(self.house)
        sweep = ThrottledChore(FolderSweep(app).look, SWEEP_EVERY, kept.store.now)
        now = await kept.store.now()
        worker = WorkerInfo(
            worker_id=kept.worker, pid=1, host="virtual", role="daemon", version="0", started_at=now, beat_at=now,
            dead=False,
        )  # fmt: skip
        staff = DispatcherContext(
            engine=self.house.engine, store=kept.store, worker=worker, ttl=TTL, recover=partial(recover, app),
            chores=[
                *self.first_chores(), self.house.triggers.follow, Deliveries(app).look, self.house.triggers.tick, sweep,
            ],
            residents=[partial(self._watch, self.house)],
        )  # fmt: skip
        self.dispatcher = EmbeddedDispatcher(staff)
        app.kick = self.dispatcher.kick
        serving = asyncio.create_task(self.dispatcher.serve())
        try:
            await self._wait_for_rest(serving, until)
            if not serving.done():
                self.found = await self._ask()
        finally:
            self.dispatcher.stop()
            await asyncio.gather(serving, return_exceptions=True)
            await self.house.triggers.close()
        if serving.cancelled():
            raise StoreUnavailable("killed")
        if serving.exception() is not None:
            raise serving.exception()  # type: ignore[misc]

    def first_chores(self) -> list[Chore]:
        return []

    def kill(self) -> None:
        """The process is gone from one moment to the next: whatever it still tries is in vain."""
        if self.dispatcher is not None:
            self.plan.killed = True
            self.dispatcher.fail(StoreUnavailable("killed"))

    async def _ask(self) -> list[str]:
        """What is broken while the process still lives."""
        tired = [] if self.rests else [f"it did not come to rest within {PATIENCE:g} s"]
        return tired + await broken(await self.scene())

    def _app(self, house: SimulatedSystem) -> Any:
        """As much of the App as boot and deliveries need."""
        app = SimpleNamespace(
            store=house.store, door=house.door, engine=house.engine, processes=self.processes,
            worker_id=house.engine.runtime.worker, config=SimpleNamespace(database=None),
            lost_journal=str,
            state=SimpleNamespace(
                make=lambda: SimpleNamespace(folder=self.folder),
                runs=self.folder / "runs", drivers=self.folder / "drivers", engine_lock=self.folder / "engine.lock"
            ),
        )  # fmt: skip
        app.git = SimpleNamespace(ref_store=None)  # no promotion of theirs leaves an intent
        return app

    async def _watch(self, house: SimulatedSystem) -> None:
        """The watcher of refs: tells of main as it is now, and of every move it sees."""
        seen: str | None = None
        while True:
            if self.on.main != seen:
                await house.triggers.branch_moved(RefMoved(branch=BRANCH, old=seen, new=self.on.main))
                seen = self.on.main
                assert self.dispatcher is not None
                self.dispatcher.kick()
            await asyncio.sleep(0.5)

    async def _wait_for_rest(self, serving: asyncio.Task[None], until: float) -> None:
        while not serving.done() and self.loop.time() < until:
            await asyncio.sleep(1.0)
            people = [await person() for person in self.people]
            if all(people) and await self.at_rest():
                self.rests = True
                return

    async def at_rest(self) -> bool:
        """Nothing is at work, nothing is on its way, and what main is now has been looked at."""
        if await self.truth.list_runs(
            RunFilter(statuses=(RunStatus.queued, RunStatus.running, RunStatus.waiting), limit=1)
        ):
            return False
        if any(effect.state not in SETTLED for effect in await self.truth.effects()):
            return False
        if list((self.folder / "runs").glob("*")) or not self.served_main:
            return not list((self.folder / "runs").glob("*"))
        subject = f"{BRANCH}@{self.on.main}"
        looked = await self.truth.list_runs(RunFilter(loop_id="heal", subject=subject, limit=1))
        return bool(looked) or await self.truth.has_fact("proven", subject, "heal")

    served_main = True
    most_lives = LIVES

    # What is asked of it afterwards

    async def heal(self) -> Run:
        """A later bug with nothing wrong around it: another module, so that it is another repair."""
        self.plan.armed = False
        bad = self.break_it(3)
        self.served_main = True
        self.people.clear()
        broken_later = await self.settle()
        assert not broken_later, broken_later
        found = await self.truth.list_runs(RunFilter(loop_id="heal", subject=f"{BRANCH}@{bad}", limit=1))
        assert found, f"no heal of {bad} was started"
        return found[0]

    async def scene(self, *, heals: bool = False) -> Scene:
        assert self.house is not None
        return Scene(
            self.truth, self.kept.artifacts, lease=TTL, at_work=self.house.engine.at_work, moves=self.moves,
            performed=await self._performed(), folders=self.folder / "runs", heal=self.heal if heals else None,
        )  # fmt: skip

    async def _performed(self) -> dict[str, int]:
        seen = Counter(key for effect in (self.box, self.post) for key, _ in effect.deliveries)
        for effect in await self.truth.effects():
            if effect.call.name == "ship.it":
                seen[effect.key] = sum(n for at, n in self.processes.shipped.items() if effect.origin.run_id in at)
        return dict(seen)


PARCEL = """
version: 1
loop_id: parcel
goal: A parcel is approved, packed by two children, and sent once.
trigger: [{manual: {}}]
subject: "parcel/{n}"
inputs: {n: {type: string, optional: true, default: "1"}}
autonomy: merge
max_iterations: 4
deadline: 1h
stop_conditions: [children.completed, sent]
handoff_conditions: [approval.denied, approval.revoked, approval.expired, children.unfinished]
wait_conditions:
  approval.asked: {wake: approval, for: 30m, then: handoff}
  children.pending: {wake: child, for: 30m, then: handoff}
phases:
  plan:
    objective: ask whether it may go
    actions: [{id: ask, uses: approval.ask, with: {question: "send it?", about: "parcel {n}"}}]
  act:
    objective: pack it and send it
    actions:
      - id: each
        uses: run.start
        with: {loop: leaf, each: [a, b], subject: "leaf/{n}%", inputs: {n: "%"}}
        when: approval.approved
      - {id: stand, uses: run.gather, when: approval.approved}
      - id: post
        uses: http.post
        with: {url: "http://outside.invalid/parcel", body: {n: "1"}}
        when: children.completed and not sent
      - id: ship
        run: "ship it"
        in: scratch
        timeout: 20s
        effects: {name: ship.it, class: blind}
        when: children.completed and not sent
      - {id: mark, run: "true", in: scratch, raises: {"0": sent}, keep: run, when: children.completed and not sent}
  verify:
    objective: it is on its way
    verifiers: [{id: look, run: "true", in: scratch, when: sent}]
  notify:
    objective: tell
    actions: [{id: told, uses: notify.file, with: {path: parcel.jsonl, text: "{decision.outcome} {iteration}"}}]
"""
LEAF = """
version: 1
loop_id: leaf
goal: One line is left, once.
trigger: [{manual: {}}]
subject: "leaf/{n}"
inputs: {n: {type: string, optional: true, default: "0"}}
autonomy: merge
max_iterations: 3
deadline: 1h
concurrency: {group: "leaves", on_busy: queue}
stop_conditions: [look.pass]
phases:
  act:
    objective: leave one line
    actions: [{id: line, uses: notify.file, with: {path: leaf.jsonl, text: "leaf {n}"}}]
  verify:
    objective: look
    verifiers: [{id: look, run: "true", in: scratch}]
"""


def write_loops(folder: Path) -> Path:
    loops = folder / "loops"
    loops.mkdir(parents=True)
    (loops / "parcel.yaml").write_text(PARCEL)
    (loops / "leaf.yaml").write_text(LEAF)
    return loops


@dataclass
class Person:
    """Asks for the parcel until somebody has heard, and says yes to what is asked: each again if it did not arrive."""

    house: FaultWorld
    parcel: int = 1
    asked: str = ""

    async def __call__(self) -> bool:
        """True when there is nothing left for this person to do."""
        try:
            await self._act()
        except StoreUnavailable:
            pass
        except asyncio.CancelledError:  # what a killed process still tries; the person asks the next one
            if not self.house.plan.killed:
                raise
        return bool(self.asked) and (await self.house.truth.get_run(self.asked)).status in ENDED

    async def _act(self) -> None:
        assert self.house.house is not None
        if not self.asked:
            origin, inputs = f"person:parcel:{self.parcel}", {"n": str(self.parcel)}
            ask = StartRequest(loop_id="parcel", origin_key=origin, inputs=inputs, by=person("owner"))
            started = await self.house.house.intake.start(ask)
            assert started.run is not None, started.dropped
            self.asked = started.run.run_id
            self._ring()
        store = self.house.kept.store
        for approval in await self.house.truth.approvals(open_only=True):
            await store.decide_approval(approval.approval_id, True, person("owner"), approval.bound_to, "yes")
            self._ring()

    def _ring(self) -> None:
        if self.house.dispatcher is not None:
            self.house.dispatcher.kick()


logging.getLogger("becket").addHandler(logging.NullHandler())
