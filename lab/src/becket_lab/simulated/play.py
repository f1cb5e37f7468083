"""Plays people, commits and time against the heal loop, and keeps what must be judged afterwards."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from becket.app.serve import follow_clock
from becket.kernel.contract.git import RefMoved
from becket.testing.clock import ManualClock
from becket_lab.simulated.ground import Changes, Ground, ModelGround
from becket_lab.simulated.project import (
    MODULES,
    ModelAgent,
    ModelProcesses,
    ModelWatchdog,
    Odds,
    begin,
    broken,
    module,
    source,
)
from becket_lab.simulated.system import BRANCH, TTL, WORKER, Outside, SimulatedSystem, build, worker
from becket_lab.simulated.time import SimulatedTime, breathe

MEDIAN_GAP = 105.0
SPREAD = 1.2
"""Of the logarithm of the gaps: bursts of commits within seconds, and pauses of an hour."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One move of main that Becket made."""

    at: float
    old: str
    new: str
    proof: str


@dataclass
class Play:
    """One seed's worth of history. `await play.run(events)`, then look at what it kept."""

    folder: Path
    seed: int
    proof: float
    odds: Odds = field(default_factory=Odds)
    ground: Ground | None = None  # without one: a modelled git
    moves: list[Moved] = field(default_factory=list)
    people: list[str] = field(default_factory=list)  # every commit that a person made
    trace: list[tuple[float, Changes]] = field(default_factory=list)  # when, and what they changed

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed} {self.proof}")  # noqa: S311 - a story, not a secret
        self.time = SimulatedTime(ManualClock(), moved=self._beat)
        self.on = self.ground or ModelGround(self.folder)
        self.processes = ModelProcesses(self.on, self.time, self.chance, self.odds, self.proof)
        self.agent = ModelAgent(self.on, self.time, self.chance, self.odds)
        self.watchdog = ModelWatchdog(self.time, self.chance, self.odds)
        outside = Outside(self.on, self.processes, self.agent, self.watchdog, self._main_was_moved)
        self.system: SimulatedSystem = build(self.folder, self.time, outside, self.chance)
        self._left = 0

    async def run(self, events: int) -> None:
        """That many commits of people, and then time until nothing can happen any more by itself."""
        await self.system.store.join(worker(self.time.clock()), alone=True)
        self.people.append(self.on.person_commits(begin(), "begin"))
        await self.system.triggers.sweep()
        self._left = events
        self._plan_commit()
        while await self._go_on():
            pass
        await self.system.triggers.close()

    async def _go_on(self) -> bool:
        await self._settle()
        due = await self.system.store.next_due()
        planned = self.time.next_at
        times = [at for at in (due, planned) if at is not None]
        if not times or (planned is None and due is not None and due > self.time.clock() + 30 * 86400):
            return False
        await self.time.until(max(min(times), self.time.clock()))
        return True

    async def _settle(self) -> None:
        """As the dispatcher does: wake, deliver, start; one run after another, as the loop's group demands."""
        store = self.system.store
        while True:
            await follow_clock(store)
            await store.wake_due()
            await self.system.triggers.follow()
            for effect in await store.due_effects():
                await self.system.door.resume(effect)
            moved = [await self._advance(run_id, segment) for run_id, segment in await store.startable(1)]
            if all(end == "stale" for end in moved):
                return

    async def _advance(self, run_id: str, segment: int) -> str:
        end = await self.system.engine.advance(run_id, segment)
        run = await self.system.store.get_run(run_id)
        if run.ended_at is not None:
            self.on.gone(self.folder / "runs" / run_id)
        return str(end)

    async def _beat(self) -> None:
        await self.system.store.beat(WORKER, TTL, self.system.engine.at_work)

    def _plan_commit(self) -> None:
        if self._left > 0:
            self._left -= 1
            gap = MEDIAN_GAP * math.exp(self.chance.gauss(0.0, SPREAD))
            self.time.plan(self.time.clock() + gap, self._person)

    async def _person(self) -> None:
        """A person commits, now and then with a bug, and now and then repairs what is broken."""
        old, number = self.on.main, self.chance.choice(MODULES)
        version = len(self.people)
        wrong = broken(self.on.files(old))
        if wrong and self.chance.random() < self.odds.repaired_by_person:
            changes: Changes = {module(n): source("good", n, f"v{version}") for n in wrong}
        else:
            changes = {module(number): source(self._word(), number, f"v{version}")}
        made = self.on.person_commits(changes, f"change {version}")
        self.people.append(made)
        self.trace.append((self.time.clock(), changes))
        self._leave_unfinished_work()
        self._plan_commit()
        await self._tell(old, made)

    def _word(self) -> str:
        dice = self.chance.random()
        if dice < self.odds.red:
            return "bug"
        return "torn" if dice < self.odds.red + self.odds.torn else "good"

    def _leave_unfinished_work(self) -> None:
        if self.chance.random() >= self.odds.dirty:
            return
        path = module(self.chance.choice(MODULES))
        self.on.litter(path)

        async def finished() -> None:
            self.on.tidy(path)

        self.time.plan(self.time.clock() + self.chance.uniform(60.0, 3600.0), finished)

    async def _main_was_moved(self, old: str, new: str, proof: str) -> None:
        """The watcher may see it at once, before the run has written down what it did, or a moment later."""
        self.moves.append(Moved(self.time.clock(), old, new, proof))
        if self.chance.random() < 0.5:
            await self._tell(old, new)
        else:
            self.time.plan(self.time.clock() + 0.05, partial(self._tell, old, new))

    async def _tell(self, old: str, new: str) -> None:
        await self.system.triggers.branch_moved(RefMoved(branch=BRANCH, old=old, new=new))
        await breathe()
