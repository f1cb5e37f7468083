"""The repository of the soak, its people and its processes: real git, the real program, a daemon and a watchdog.

It lies on a small file system of its own, so that a full disk is one here and nowhere else, and its clock can be moved:
every process of ours is started with a preloaded library that reads its offset from a file.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becket.app.state import StateFolder, holder

MODULES = 4
PROGRAM = (sys.executable, "-m", "becket.cli")
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
HIDDEN = ("GIT_", "BECKET_", "PYTEST_", "PYTHON", "NO_COLOR", "LD_PRELOAD")

CONFIG = """\
version: 1
autonomy: merge
gates:
  fast:
    - name: unit
      run: PYTHON -I -S -B tests/check.py
      rerun: PYTHON -I -S -B tests/check.py {tests}
      report: "junit:report.xml"
      min_tests: 1
      timeout: 60s
  slow:
    - {name: whole, run: "sleep 0.2; test -s m0.py"}
test_side: ["tests/**"]
sandbox: {use: none, without: [files, processes, network]}
heal: {agent: fixer}
retention: {backups: 1}
agents:
  fixer: {driver: command, run: "sleep 0.3; sed -i 's/number + 2/number * 2/' m*.py"}
"""

CHECK = """\
import pathlib, sys
sys.path.insert(0, ".")
wanted = [name.rpartition(".")[2].rpartition("::")[2] for name in sys.argv[1:]]
cases, bad = [], 0
for number in range(MODULES):
    name = f"test_m{number}"
    if wanted and name not in wanted:
        continue
    good = __import__(f"m{number}").it(3) == 6
    bad += not good
    failure = "" if good else '<failure message="it is bad"/>'
    cases.append(f'<testcase classname="tests.check" name="{name}">{failure}</testcase>')
pathlib.Path("report.xml").write_text(f'<testsuite tests="{len(cases)}">{"".join(cases)}</testsuite>')
sys.exit(bad > 0)
"""

ASK = """\
version: 1
loop_id: ask
goal: A person decides, and it is told.
trigger: [{manual: {}}]
subject: "question/{topic}"
inputs: {topic: {type: string}}
max_iterations: 3
deadline: 7d
stop_conditions: [approval.approved, told.pass]
handoff_conditions: [approval.denied, approval.expired, approval.revoked]
wait_conditions:
  approval.asked: {wake: approval, for: 3d}
phases:
  decide:
    objective: Ask.
    actions: [{id: ask, uses: approval.ask, with: {question: "Make {topic}?", about: "{topic}"}}]
  verify:
    objective: Nothing to doubt.
    verifiers: [{id: told, run: "true", in: scratch}]
  notify:
    objective: Tell it.
    actions: [{id: tell, uses: notify.console, with: {text: "{topic}"}}]
"""

TICK = """\
version: 1
loop_id: tick
goal: It is looked at every few seconds.
trigger: [{schedule: {cron: "*/20 * * * * *", missed: skip}}]
max_iterations: 1
deadline: 10m
stop_conditions: [fine.pass]
phases:
  verify:
    objective: Look.
    verifiers: [{id: fine, run: "true", in: scratch}]
"""


def module(text: str, word: str = "*") -> str:
    return f"def it(number):\n    return number {word} 2\n\n\nABOUT = {text!r}\n"


@dataclass
class Town:
    """One repository and what lives in it."""

    folder: Path
    seed: int
    clock_file: Path
    preload: str = ""
    deeds: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.root = self.folder / "repo"
        self.paths = StateFolder(root=self.root, common=self.root / ".git")
        self.offset = 0.0

    def begin(self) -> None:
        self.root.mkdir()
        self.clock_file.write_text("+0")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "gc.auto", "0")
        (self.root / "tests").mkdir()
        files = {
            "becket.yaml": CONFIG.replace("PYTHON", sys.executable),
            "tests/check.py": CHECK.replace("MODULES", str(MODULES)),
            ".gitignore": "report.xml\n.worktrees/\n",
            ".becket/loops/ask.yaml": ASK,
            ".becket/loops/tick.yaml": TICK,
            **{f"m{number}.py": module("begin") for number in range(MODULES)},
        }
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.commit("begin")
        # As `becket init` does: a gate that was never green is a person's, and nothing would be repaired here.
        code, said = self.becket("gates", "try")
        assert code == 0, said

    def environment(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        env |= {"BECKET_WATCHDOG_EVERY": "1", "HOME": str(self.folder)}
        if self.preload:
            env |= {
                "LD_PRELOAD": self.preload, "PYTHONPATH": str(Path(__file__).parent / "preloaded"),
                "FAKETIME_TIMESTAMP_FILE": str(self.clock_file), "NO_FAKE_STAT": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_CACHE_DURATION": "1",
            }  # fmt: skip
        return env

    def git(self, *arguments: str, check: bool = True) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        who = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=self.root, env=env, check=False, capture_output=True, text=True, timeout=300
        )
        if check and done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr}")
        return done.stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "-m", message)

    def becket(self, *arguments: str, seconds: float = 120.0) -> tuple[int, str]:
        """The exit code and everything it said. Whoever does not come back has failed: no verb may hang."""
        try:
            done = subprocess.run(
                [*PROGRAM, *arguments], cwd=self.root, env=self.environment(), check=False, capture_output=True,
                text=True, timeout=seconds, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, f"becket {' '.join(arguments)} did not come back within {seconds:g} s"
        return done.returncode, done.stdout + done.stderr

    def ask(self, *arguments: str) -> Any:
        code, said = self.becket(*arguments, "--json")
        if code not in (0, 1):
            raise RuntimeError(f"becket {' '.join(arguments)}: exit code {code}: {said[-2000:]}")
        return json.loads(said)

    @property
    def daemon(self) -> int | None:
        return holder(self.paths.daemon_lock)

    @property
    def watchdog(self) -> int | None:
        return holder(self.paths.watchdog_lock)

    def journal(self) -> sqlite3.Connection:
        return sqlite3.connect(self.paths.database, timeout=30, isolation_level=None)

    def did(self, what: str) -> None:
        self.deeds[what] = self.deeds.get(what, 0) + 1


def person(town: Town) -> None:
    """One deed of somebody who knows nothing of the faults; a full disk or a lock may keep them from it."""
    deed = town.chance.choice((breaks, breaks, changes, changes, asks, answers, amends, looks, cancels))
    try:
        deed(town)
        town.did(f"person: {deed.__name__}")
    except (RuntimeError, OSError, ValueError) as error:
        town.did(f"person: {deed.__name__} could not")
        print(f"    {deed.__name__}: {str(error)[:200]}", flush=True)


def breaks(town: Town) -> None:
    _change(town, "+")


def changes(town: Town) -> None:
    _change(town, "*")


def _change(town: Town, word: str) -> None:
    number = town.chance.randrange(MODULES)
    path = town.root / f"m{number}.py"
    old = path.read_text()
    keep = "+" if "number + 2" in old else word
    path.write_text(module(f"{time.time()}", keep))
    try:
        # Not by way of the index: what a full disk kept from being committed must not stay staged.
        town.git("commit", "--quiet", "--no-verify", "-m", f"m{number}: another text", "--", path.name)
    except RuntimeError:
        path.write_text(old)
        raise


def amends(town: Town) -> None:
    town.git("commit", "--quiet", "--amend", "--no-edit", "--no-verify")


def asks(town: Town) -> None:
    code, said = town.becket("run", "ask", "--with", f"topic=t{time.time_ns()}", "--no-follow")
    if code:
        raise RuntimeError(said)


def answers(town: Town) -> None:
    for one in town.ask("approvals", "list")[:3]:
        verb = town.chance.choice(("approve", "approve", "deny"))
        town.becket(verb, one["approval_id"])


def looks(town: Town) -> None:
    code, said = town.becket("status")
    if code == 124 or "internal error" in said or "Traceback" in said:
        raise AssertionError(f"status: {said[-2000:]}")


def cancels(town: Town) -> None:
    if open_runs := [run for run in town.ask("runs", "list") if run["status"] in ("queued", "running", "waiting")]:
        code, said = town.becket("runs", "cancel", town.chance.choice(open_runs)["run_id"])
        if code == 124:
            raise AssertionError(said)


Deed = Callable[[Town], None]
