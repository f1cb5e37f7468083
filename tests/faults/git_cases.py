"""One heal while a call of git fails, and what is broken afterwards.

The git that the product finds on its PATH is a script of ours: it counts, and at the n-th call it goes wrong. Two that
run at once get numbers of their own. Whoever talks with a git that says nothing waits for it in vain, as for one that
hangs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app_world import AppWorld
from virtual_time import VirtualLoop, play

from becket.kernel.process.keeper import processes


class Way(StrEnum):
    """How a call goes wrong."""

    refuses = "refuses"  # exit code 128 and a message; nothing was done
    killed = "killed"  # before it did anything
    mute = "mute"  # it does its work, and is killed before it can say so
    hangs = "hangs"  # until whoever called it has had enough


SCRIPT = """#!/bin/sh
real=REAL
[ -f "FOLDER/count" ] || exec $real "$@"
read n < "FOLDER/count"
n=$((${n:-0} + 1))
until (set -C; : > "FOLDER/numbers/$n") 2> /dev/null; do n=$((n + 1)); done
echo $n > "FOLDER/count"
echo "$*" >> "FOLDER/calls"
way=
case $n in
CASES
esac
case $way in
refuses) echo "fatal: the n-th call goes wrong" >&2; exit 128 ;;
killed) kill -9 $$ ;;
mute)
    case "$*" in *"update-ref --no-deref --stdin"*) echo $$ > "FOLDER/hangs" ;; esac
    $real "$@" > /dev/null 2>&1
    kill -9 $$ ;;
hangs) echo $$ > "FOLDER/hangs"; exec sleep 100000 ;;
*) exec $real "$@" ;;
esac
"""


@dataclass(frozen=True, slots=True)
class GitOnPath:
    """The script, and what it left."""

    folder: Path

    def write(self, faults: Mapping[int, Way]) -> None:
        real = shutil.which("git")
        assert real is not None
        cases = "\n".join(f"{number}) way={way} ;;" for number, way in faults.items())
        text = SCRIPT.replace("FOLDER", str(self.folder)).replace("REAL", real).replace("CASES", cases)
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "numbers").mkdir()
        script = self.folder / "bin" / "git"
        script.write_text(text)
        script.chmod(0o755)

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{before}"
        (self.folder / "count").write_text("0\n")
        try:
            yield
        finally:
            (self.folder / "count").unlink()
            os.environ["PATH"] = before

    def calls(self) -> tuple[str, ...]:
        return tuple((self.folder / "calls").read_text().splitlines())

    def hangs(self) -> bool:
        """It sleeps; one that was just signalled is awake and about to end."""
        try:
            seen = processes.look(int((self.folder / "hangs").read_text()))
        except (OSError, ValueError):
            return False
        return seen is not None and seen.state == "S"


@dataclass(frozen=True, slots=True)
class Played:
    problems: tuple[str, ...]
    calls: tuple[str, ...]
    end: str
    lives: tuple[str, ...]


def case(faults: Mapping[int, Way]) -> Played:
    with tempfile.TemporaryDirectory(prefix="becket-git-") as folder:
        return play(lambda loop: _case(loop, Path(folder), faults))


async def _case(loop: VirtualLoop, folder: Path, faults: Mapping[int, Way]) -> Played:
    house = AppWorld(folder, loop)
    git = GitOnPath(folder / "git")
    git.write(faults)
    loop.stuck = git.hangs
    house.break_it(1)
    with git.counting():
        run = await house.see_through()
    problems = await house.broken(heal=lambda: house.heal(3))
    return Played(tuple(problems), git.calls(), f"{run.status} {run.reason}", tuple(house.lives))


def told(faults: Mapping[int, Way]) -> str:
    """How a case is played again."""
    return f"python tests/faults/git_cases.py {','.join(f'{number}={way}' for number, way in sorted(faults.items()))}"


if __name__ == "__main__":
    import logging
    import sys

    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    wanted = {int(number): Way(way) for number, _, way in (one.partition("=") for one in sys.argv[1].split(",") if one)}
    seen = case(wanted)
    struck = [f"{way} at call {number}: git {seen.calls[number - 1]}" for number, way in wanted.items()]
    print(*struck, seen.end, *seen.lives, *seen.problems, f"{len(seen.calls)} calls", sep="\n")
