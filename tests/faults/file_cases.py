"""One heal while a file operation below the state folder fails, and what is broken afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app_world import AppWorld
from faulty_files import Disk, Errno, insert
from virtual_time import VirtualLoop, play


@dataclass(frozen=True, slots=True)
class Played:
    problems: tuple[str, ...]
    operations: tuple[str, ...]
    struck: tuple[str, ...]
    end: str
    lives: tuple[str, ...]


def case(faults: Mapping[int, Errno], lasts: float = 0.0) -> Played:
    with tempfile.TemporaryDirectory(prefix="becket-disk-") as folder:
        return play(lambda loop: _case(loop, Path(folder), faults, lasts))


async def _case(loop: VirtualLoop, folder: Path, faults: Mapping[int, Errno], lasts: float) -> Played:
    house = AppWorld(folder, loop)
    disk = Disk(house.state.folder, dict(faults), loop.clock, lasts)
    insert(disk)
    try:
        run = await house.heal(1)
    finally:
        insert(None)
    problems = await house.broken(heal=lambda: house.heal(3))
    end = f"{run.status} {run.reason}"
    return Played(tuple(problems), tuple(disk.seen), tuple(disk.struck), end, tuple(house.lives))


def told(faults: Mapping[int, Errno], lasts: float) -> str:
    """How a case is played again."""
    said = ",".join(f"{number}={way.name}" for number, way in sorted(faults.items()))
    return f"python tests/faults/file_cases.py {said} {lasts:g}"


if __name__ == "__main__":
    import logging
    import sys

    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    _, said, *rest = sys.argv
    wanted = {int(number): Errno[way] for number, _, way in (one.partition("=") for one in said.split(",") if one)}
    seen = case(wanted, float(rest[0]) if rest else 0.0)
    print(*seen.struck, seen.end, *seen.lives, *seen.problems, f"{len(seen.operations)} operations", sep="\n")
