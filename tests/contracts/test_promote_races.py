"""Promote against a person who works at the same moment: no lost commit, no unproven main, no silent revert."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from git_repos import commit, git
from promote_world import World, permit_for, request_for

from becket.kernel.contract import crash
from becket.kernel.contract.promote import NotPromoted, Promoted, WhyNot
from becket.kernel.git.repository import discover
from becket.parts.promote.adapters.promote import promoter_of

RACER = Path(__file__).with_name("promote_racer.py")
IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "Racer", "EMAIL": "racer@example.org"}.items()
}
ENV = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass
class Race:
    """What both sides say they have done."""

    world: World
    promoted: dict[str, str] = field(default_factory=dict)  # new by its unique file
    refused: dict[str, str] = field(default_factory=dict)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    reasons: Counter[str] = field(default_factory=Counter)
    said: list[dict[str, Any]] = field(default_factory=list)

    async def one(self, number: int) -> None:
        """Prove something on top of whatever main is now, and promote it."""
        old = git(self.world.home, "rev-parse", "refs/heads/main")
        name = f"promoted/{number}"
        new = self._candidate(old, name)
        request = request_for(old, new, key=f"k{number}")
        answer = await promoter_of(discover(self.world.home)).promote(request, permit_for(request), self.world.log)
        if isinstance(answer, Promoted):
            self.promoted[name] = new
            self.pairs.add((old, new))
        else:
            self.refused[name] = new
            self.reasons[answer.reason] += 1

    def _candidate(self, old: str, name: str) -> str:
        """Adds a file of its own and changes one that every candidate changes, without any work tree."""
        with tempfile.TemporaryDirectory(dir=self.world.folder) as folder:
            env = {**ENV, **IDENTITY, "GIT_AUTHOR_NAME": "Becket", "GIT_INDEX_FILE": f"{folder}/index"}

            def plumb(*command: str, text: str = "") -> str:
                done = subprocess.run(
                    ["git", *command],
                    cwd=self.world.home,
                    env=env,
                    input=text,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                return done.stdout.strip()

            plumb("read-tree", old)
            for path in (name, "app.py"):
                blob = plumb("hash-object", "-w", "--stdin", text=f"{name}\n")
                plumb("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
            return plumb("commit-tree", plumb("write-tree"), "-p", old, "-m", f"proven {name}")


@contextmanager
def racing(world: World, seed: int, habits: str) -> Iterator[Race]:
    race = Race(world)
    said = world.folder / "said"
    with said.open("w") as output:
        racer = subprocess.Popen(
            [sys.executable, str(RACER), str(world.home), str(seed), habits],
            stdin=subprocess.PIPE,
            stdout=output,
            env={**ENV, **IDENTITY},
        )
        assert racer.stdin is not None
        try:
            yield race
        finally:
            racer.stdin.close()
            assert racer.wait(300) == 0
    race.said = [json.loads(line) for line in said.read_text().splitlines()]


def nobody_lost_anything(race: Race) -> None:
    home = race.world.home
    everything = set(git(home, "ls-tree", "-r", "--name-only", "main").splitlines())
    everything |= set(git(home, "ls-tree", "-r", "--name-only", "side").splitlines())
    on_main = set(git(home, "ls-tree", "-r", "--name-only", "main").splitlines())
    done = [line for line in race.said if line["did"] == "commit"]
    for line in done:
        assert set(line["files"]) <= everything, f"lost: {line}"
    assert set(race.promoted) <= on_main, "a promoted change was reverted"
    assert not set(race.refused) & on_main, "an unproven candidate landed"
    edits = [line["text"] for line in race.said if line["did"] == "edit"]
    if edits:
        assert (home / "racer/dirty").read_text() == edits[-1]
    for name in race.said[-1]["waiting"]:
        assert (home / name).read_text() == f"{name}\n"


def every_commit_holds_only_its_own(race: Race) -> None:
    """A commit made on top of a stale index would undo a promotion without a word."""
    log = git(race.world.home, "log", "--no-renames", "--name-only", "--format=%x00%an%x00%H", "main", "side")
    fields = log.split("\0")[1:]
    for author, rest in zip(fields[::2], fields[1::2], strict=True):
        sha, *paths = rest.split()
        if author == "Racer":
            assert all(path.startswith("racer/") for path in paths), f"{sha} of the racer holds {paths}"


def main_moved_only_as_proven(race: Race) -> None:
    entries = git(race.world.home, "reflog", "show", "--format=%H %gs", "main").splitlines()
    values = [entry.split(" ", 1) for entry in reversed(entries)]
    ours = {(before[0], after[0]) for before, after in pairwise(values) if "becket" in after[1]}
    assert ours == race.pairs


def nothing_is_left_over(race: Race) -> None:
    world = race.world
    assert world.locks() == []
    world.no_traces()
    left = {line[3:] for line in world.status()}
    assert all(path.startswith("racer/") for path in left), left
    git(world.home, "fsck", "--no-dangling", "--no-progress")


def run_races(folder: Path, count: int, seed: int, habits: str) -> Race:
    world = World(folder)
    world.old = commit(world.home, {"racer/tracked": "0\n", "racer/dirty": "0\n"})
    git(world.home, "branch", "side")
    commit(world.home, {"app.py": "x = 1\n"})

    async def all_of_them(race: Race) -> None:
        for number in range(count):
            await race.one(number)

    with racing(world, seed, habits) as race:
        asyncio.run(all_of_them(race))
    return race


def judge(race: Race) -> None:
    nobody_lost_anything(race)
    every_commit_holds_only_its_own(race)
    main_moved_only_as_proven(race)
    nothing_is_left_over(race)


HABITS = {
    "committing": "commit,commit,commit_all,amend,edit,look",
    "switching": "switch,switch,commit,commit_all,amend,look",
}


@pytest.mark.parametrize("habits", HABITS.values(), ids=HABITS)
def test_thirty_races(tmp_path: Path, habits: str) -> None:
    race = run_races(tmp_path, 30, 1, habits)
    judge(race)
    assert race.promoted
    assert sum(line["did"] == "commit" for line in race.said) > 5


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("habits", HABITS.values(), ids=HABITS)
def test_a_thousand_races(tmp_path: Path, habits: str, seed: int) -> None:
    race = run_races(tmp_path, 100, seed, habits)
    judge(race)
    assert len(race.promoted) > 2
    assert len(race.refused) > 1


def test_a_person_who_commits_while_the_ref_is_held_is_told_and_loses_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    new = world.candidate()
    git(world.home, "switch", "--quiet", "main")
    world.change({"mine": "m\n"})
    git(world.home, "add", "mine")
    seen: list[tuple[str, int]] = []

    def hook(name: str) -> None:
        if name in ("promote.before_checkout", "promote.after_index"):
            for command in (("commit", "-m", "mine"), ("switch", "-q", "side"), ("add", "."), ("reset", "--hard")):
                done = subprocess.run(["git", *command], cwd=world.home, env={**ENV, **IDENTITY}, check=False)
                seen.append((command[0], done.returncode))

    git(world.home, "branch", "side", "main~1")
    crash.install(hook)
    try:
        answer = world.promote(new)
    finally:
        crash.install(None)
    assert isinstance(answer, Promoted)
    assert all(code != 0 for _, code in seen), seen
    assert len(seen) == 8
    assert world.status() == {"A  mine"}
    git(world.home, "commit", "--quiet", "-m", "mine")
    assert git(world.home, "rev-parse", "HEAD~1") == new


def test_a_commit_that_was_there_first_wins(tmp_path: Path) -> None:
    world = World(tmp_path)
    new = world.candidate()
    world.change({"mine": "m\n"})
    git(world.home, "add", "mine")

    def hook(name: str) -> None:
        if name == "promote.after_intent":
            git(world.home, "commit", "--quiet", "-m", "mine")

    crash.install(hook)
    try:
        answer = world.promote(new)
    finally:
        crash.install(None)
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, answer.main) == (WhyNot.main_moved, world.main())
    assert git(world.home, "log", "-1", "--format=%s") == "mine"
    assert world.status() == set()
    world.no_traces()
