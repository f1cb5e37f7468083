"""Simulated weeks: the real dispatcher, engine, loops and journal in virtual time, with faults by chance.

People break main and mend it, and send parcels (a run that asks, waits, starts children and has effects). The store
fails in every way that tests/faults knows, the process is killed, stands still, or is suspended, and the clock is set
forth and back. After every quarter of a day it is left in peace, and the properties of tests/faults/properties.py are
asked for. `python tests/soak/weeks.py --weeks 4 --seed 7`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from fault_world import TTL, FaultWorld, Person, write_loops
from faulty_store import Plan, Way
from properties import broken
from virtual_time import BEGINNING, VirtualLoop, play

from becket.app.serve import follow_clock
from becket.kernel.contract.store import RunFilter
from becket.kernel.dispatch.embedded import Chore
from becket.kernel.store import open_memory
from becket.kernel.store.steady import SteadyClock

QUARTER = 6 * 3600.0
WEEK = 7 * 86400.0
RATE = 1 / 150
"""So many of the store's calls fail."""


@dataclass(slots=True)
class Chances(Plan):
    """Any call may fail, in any way."""

    chance: random.Random = field(default_factory=random.Random)

    def next(self, name: str, now: float) -> Way | None:
        if self.armed and self.chance.random() < RATE:
            self.faults = {self.calls + 1: self.chance.choice(list(Way))}
        return Plan.next(self, name, now)


class Wall:
    """The wall's clock: people set it, and it goes on while the machine sleeps."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.ahead = self.slept = 0.0

    def __call__(self) -> float:
        return BEGINNING + self._loop.passed + self.ahead + self.slept

    def real(self) -> float:
        return self._loop.passed + self.slept


class Weeks(FaultWorld):
    """A house that follows its clock, and whose process may be killed often."""

    most_lives = 1000

    def first_chores(self) -> list[Chore]:
        assert self.house is not None
        return [partial(follow_clock, self.house.store)]


@dataclass
class Story:
    seed: int
    weeks: float
    deeds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"weeks {self.seed}")

    async def tell(self, loop: VirtualLoop, folder: Path) -> None:
        wall = Wall(loop)
        plan = Chances({}, TTL, chance=self.chance)
        database = open_memory(wall, SteadyClock(loop.time, wall.real))._db  # type: ignore[attr-defined]
        house = Weeks(folder, loop, plan, database, loops=write_loops(folder))
        await house.begin()
        number = 0
        while wall.real() < self.weeks * WEEK and not self.wrong:
            number += 1
            for _ in range(self.chance.randint(1, 3)):
                self._person(house)
            house.people = [Person(house, parcel=10 * number + each) for each in range(self.chance.randint(0, 2))]
            self.deeds["parcels"] += len(house.people)
            plan.armed = True
            troubles = asyncio.ensure_future(self._trouble(house, wall))
            problems = await house.settle()
            plan.armed = False
            troubles.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await troubles
            problems = problems or await broken(await house.scene())
            self.wrong += [f"quarter {number}: {each} (struck: {plan.struck[-6:]})" for each in problems]
            plan.struck.clear()
            plan.names.clear()
            house.lives = 0
            loop.block(QUARTER * self.chance.random() * 2)
        for run in await house.truth.list_runs(RunFilter(limit=None)):
            self.ends[f"{run.loop_id}: {run.status} {run.reason}".strip()] += 1
        self.deeds["promotions"] = len(house.moves)
        await house.truth.close()

    def _person(self, house: FaultWorld) -> None:
        self.deeds["broken by a person"] += 1
        house.break_it(self.chance.randrange(3), f"v{self.deeds.total()}")

    async def _trouble(self, house: FaultWorld, wall: Wall) -> None:
        """Between the faults of the store: those of the process and of the clock."""
        for _ in range(self.chance.randint(0, 6)):
            await asyncio.sleep(self.chance.expovariate(1 / 6.0))
            deed = self.chance.choice(("kill", "stand still", "sleep", "jump", "jump"))
            self.deeds[deed] += 1
            if deed == "kill":
                house.kill()
            elif deed == "stand still":
                house.loop.block(self.chance.choice((1.0, TTL, 4 * TTL)))
            elif deed == "sleep":
                wall.slept += self.chance.choice((60.0, 3600.0, 86400.0))
            else:
                wall.ahead += self.chance.choice((25 * 3600.0, -25 * 3600.0, 40.0, -40.0, 10 * 86400.0))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--weeks", type=float, default=4.0)
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    story = Story(options.seed, options.weeks)
    with tempfile.TemporaryDirectory(prefix="becket-weeks-") as folder:
        play(lambda loop: story.tell(loop, Path(folder)))
    print(f"seed {story.seed}: {story.weeks:g} weeks, {dict(sorted(story.deeds.items()))}, {dict(story.ends)}")
    print(*story.wrong, sep="\n")
    return 1 if story.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
