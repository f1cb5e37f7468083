"""One repair in a folder of its own, killed where a test says, and what must be true of it afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import heal_world
from crash_compare import no_stray_process

from becket.kernel.contract.base import Json
from becket.testing.crashes import Nursery, ProcessLife
from becket.testing.world import run_git

HERE = Path(__file__).parent
PATIENCE = 120.0


@dataclass
class HealCase:
    """`bad` is the red commit that somebody made."""

    folder: Path
    nursery: Nursery
    bad: str

    @property
    def root(self) -> Path:
        return self.folder / "repo"

    def git(self, *arguments: str) -> str:
        return run_git(self.root, arguments)

    def live(self, crash_at: str | None = None, **arguments: Json) -> ProcessLife:
        return self.nursery.live(self.folder, crash_at, **arguments)

    def stop(self, kind: str) -> None:
        """The next child of this kind stays where it is."""
        (self.folder / "stop" / kind).touch()

    def kill_stopped(self, kind: str) -> None:
        """Kill the child that has stopped: not us."""
        file, until = self.folder / "stop" / f"{kind}.pid", time.monotonic() + PATIENCE
        while not (file.exists() and file.read_text().endswith("\n")):
            assert time.monotonic() < until, f"no {kind} came by"
            time.sleep(0.01)
        os.kill(int(file.read_text()), signal.SIGKILL)

    def main_may_be_here(self) -> None:
        """At any moment, also right after a kill: main is at the old commit or at the one candidate on top of it."""
        made = self.git("for-each-ref", "--format=%(objectname)", "refs/becket/candidate/").splitlines()
        assert self.git("rev-parse", "refs/heads/main") in {self.bad, *made}

    def repaired(self, life: ProcessLife) -> dict[str, Any]:
        """The next life ended it: once, whole, proven, and nothing of ours is left in the person's way."""
        assert life.code == 0, life.said
        found: dict[str, Any] = life.value
        assert (found["status"], found["reason"]) == ("completed", "stop_conditions_met"), found
        main = self.git("rev-parse", "refs/heads/main")
        assert self.git("rev-parse", f"{main}^") == self.bad
        assert found["proven"] == [main]
        assert self.git("show", f"{main}:it.py") == heal_world.REPAIR.strip()
        self.nothing_left(found)
        promoted = [line for line in self.git("reflog", "show", "main").splitlines() if "becket" in line]
        assert len(promoted) == 1, promoted
        assert [state for name, state in found["effects"] if name == "git.promote"] == ["done"]
        assert found["counted"] == 1
        assert "candidate.holdout_passed" in found["raised"]
        return found

    def handed_over(self, life: ProcessLife, reason: str) -> dict[str, Any]:
        """It ended honestly without moving main."""
        assert life.code == 0, life.said
        found: dict[str, Any] = life.value
        assert (found["status"], found["reason"]) == ("ready_for_handoff", reason), found
        assert self.git("rev-parse", "refs/heads/main") == self.bad
        self.nothing_left(found)
        return found

    def nothing_left(self, found: dict[str, Any]) -> None:
        assert self.git("symbolic-ref", "HEAD") == "refs/heads/main"
        assert self.git("status", "--porcelain") == ""
        assert self.git("for-each-ref", "--format=%(refname)", "refs/heads/", "refs/tags/") == "refs/heads/main"
        left = {name: found[name] for name in ("against", "missing", "alive", "folders", "locks", "intent")}
        assert not any(left.values()), left


class HealMatrix:
    """The nursery, and how often a repair that nobody kills passes each point."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self._folder = folder
        self._begun = folder / "begun"
        self._shared = shared
        self._cases = 0
        self.nursery = Nursery("heal_world:play", paths=[HERE])

    @contextlib.contextmanager
    def case(self) -> Iterator[HealCase]:
        """One at a time: each has the same folder, because the state that it begins with names it."""
        folder = self._folder / "heal"
        if not self._begun.exists():
            folder.mkdir()
            self._begin(folder)
            folder.rename(self._begun)
        subprocess.run(["cp", "--archive", self._begun, folder], check=True)
        try:
            yield HealCase(folder, self.nursery, run_git(folder / "repo", ["rev-parse", "main"]))
        finally:
            no_stray_process(folder)
            self._cases += 1
            folder.rename(self._folder / f"heal-{self._cases}")

    def _begin(self, folder: Path) -> None:
        """Main was proven when it was right; now it is red."""
        heal_world.prepare(folder)
        first = self.nursery.live(folder, None, again="when it was right")
        assert first.value["status"] == "completed", (first.said, first.value)
        heal_world.break_it(folder)

    def baseline(self) -> ProcessLife:
        """Told once per test session, however many processes it has."""
        file = self._shared / "heal-baseline.json"
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                with self.case() as case:
                    life = case.live()
                    case.repaired(life)
                file.write_text(json.dumps(asdict(life)))
        return ProcessLife(**json.loads(file.read_text()))

    def check(self, point: str, nth: int) -> dict[str, Any]:
        """Kill at the nth hit, start again, see that it ended as it should."""
        with self.case() as case:
            life = case.live(f"{point}@{nth}")
            if life.killed:
                case.main_may_be_here()
                return case.repaired(case.live())
        hits = life.hits.get(point, 0) if life.code == 0 else 0
        assert 0 < hits < nth, f"not killed at {point}@{nth}: exit code {life.code}\n{life.said}"
        return self.check(point, hits)  # how often it looks around is a matter of timing
