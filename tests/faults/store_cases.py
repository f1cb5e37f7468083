"""The two stories that the store's faults are tried on. One case: play it, let it come to rest, ask what is broken."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fault_world import TTL, FaultWorld, Person, write_loops
from faulty_store import Plan, Way
from properties import broken
from virtual_time import VirtualLoop, play

from becket.kernel.contract.store import RunFilter

STORIES = ("heal", "parcel")


@dataclass(frozen=True, slots=True)
class Played:
    problems: tuple[str, ...]
    calls: tuple[str, ...]  # the names of the store's calls, in their order
    struck: tuple[str, ...]
    ends: tuple[str, ...]
    lives: int
    seconds: float


def case(story: str, faults: Mapping[int, Way], *, heals: bool = True) -> Played:
    with tempfile.TemporaryDirectory(prefix="becket-fault-") as folder:
        return play(lambda loop: _case(loop, Path(folder), story, faults, heals))


async def play_out(house: FaultWorld, story: str) -> list[str]:
    """Begin, with a fault in what follows; what is broken when everything has settled."""
    await house.begin()
    if story == "heal":
        house.break_it(1)
    else:
        house.served_main = False
        house.people.append(Person(house))
    house.plan.armed = True
    return await house.settle()


async def _case(loop: VirtualLoop, folder: Path, story: str, faults: Mapping[int, Way], heals: bool) -> Played:
    plan = Plan(faults, TTL)
    house = FaultWorld(folder, loop, plan, loops=write_loops(folder))
    problems = await play_out(house, story)
    if heals and not problems:
        problems = await broken(await house.scene(heals=True))
    runs = await house.truth.list_runs(RunFilter(limit=None, oldest_first=True))
    ends = tuple(f"{run.loop_id} {run.status} {run.reason}".strip() for run in runs)
    await house.truth.close()
    return Played(tuple(problems), tuple(plan.names), tuple(plan.struck), ends, house.lives, loop.passed)


def told(story: str, faults: Mapping[int, Way]) -> str:
    """How a case is played again."""
    said = ",".join(f"{call}={way}" for call, way in sorted(faults.items()))
    return f"python tests/faults/store_cases.py {story} {said}"


if __name__ == "__main__":
    import logging
    import sys

    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    _, which, *rest = sys.argv
    wanted = {int(call): Way(way) for call, _, way in (one.partition("=") for one in ",".join(rest).split(",") if one)}
    seen = case(which, wanted)
    print(*seen.struck, *seen.ends, *seen.problems, f"{len(seen.calls)} calls, {seen.lives} lives", sep="\n")
