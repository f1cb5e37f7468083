"""A repository in a temporary folder and the real `becket` program, called as a person would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from warm_program import Warm

T = TypeVar("T")

CONFIG = "version: 1\nbranch: main\nautonomy: propose\n"

GREET = """\
version: 1
loop_id: greet
goal: A greeting is written and was seen.
trigger:
  - manual: {}
  - event: {name: guest.came}
subject: "guest/{who}"
inputs:
  who: {type: string, default: world}
  times: {type: integer, default: 1}
max_iterations: 2
deadline: 10m
stop_conditions: [greeted, seen.pass]
phases:
  act:
    objective: Write it.
    actions:
      - id: write
        run: echo "hello {who}" | tee greeting.txt
        in: scratch
        outputs: {text: stdout}
        raises: {"0": greeted}
    persist_outputs: [write.text]
  verify:
    objective: See it.
    verifiers:
      - {id: seen, run: grep -q hello greeting.txt, in: scratch}
"""

ASK = """\
version: 1
loop_id: ask
goal: A person decides.
trigger:
  - manual: {}
subject: "question/{topic}"
inputs:
  topic: {type: string, default: tea}
max_iterations: 3
deadline: 7d
stop_conditions: [approval.approved, told.pass]
handoff_conditions: [approval.denied, approval.expired, approval.revoked]
wait_conditions:
  approval.asked: {wake: approval, for: 3d}
phases:
  decide:
    objective: Ask.
    actions:
      - {id: ask, uses: approval.ask, with: {question: "Make {topic}?", about: "{topic}"}}
  verify:
    objective: Nothing to doubt.
    verifiers:
      - {id: told, run: "true", in: scratch}
"""

SLOW = """\
version: 1
loop_id: slow
goal: Something takes its time.
trigger:
  - manual: {}
max_iterations: 1
deadline: 10m
stop_conditions: [rested, fine.pass]
phases:
  act:
    objective: Rest until a file says otherwise.
    actions:
      - id: rest
        run: touch resting; while [ ! -e wake ]; do sleep 0.05; done
        in: scratch
        timeout: 1m
        raises: {"0": rested}
  verify:
    objective: Look.
    verifiers:
      - {id: fine, run: "true", in: scratch}
"""

FAIL = """\
version: 1
loop_id: fail
goal: It cannot be done.
trigger:
  - manual: {}
max_iterations: 1
deadline: 10m
stop_conditions: [good.pass]
phases:
  verify:
    objective: Look.
    verifiers:
      - {id: good, run: "echo it is broken; exit 1", in: scratch}
"""

LOOPS = {"greet": GREET, "ask": ASK, "slow": SLOW, "fail": FAIL}


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Stage:
    def __init__(self, folder: Path, *loops: str) -> None:
        self.root = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("becket.yaml", CONFIG)
        for name in loops:
            self.write(f".becket/loops/{name}.yaml", LOOPS[name])
        self.commit("begin")

    @property
    def state(self) -> Path:
        return self.root / ".git" / "becket"

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", message)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment(), check=True, capture_output=True, text=True
        )
        return done.stdout

    def becket(
        self, *arguments: str, code: int = 0, env: dict[str, str] | None = None, traceback: bool = False
    ) -> Answer:
        done, *said = call(arguments, self.root, environment() | (env or {}))
        out, err = (text.decode().replace("\r\n", "\n") for text in said)
        assert done == code, f"becket {' '.join(arguments)}: {done}\n{out}\n{err}"
        assert ("Traceback" in err) == traceback
        assert "\x1b" not in out + err
        return Answer(done, out, err)

    def becket_bytes(self, *arguments: str) -> bytes:
        """Standard output to the byte, whatever is in it."""
        code, out, _ = call(arguments, self.root, environment())
        assert code == 0
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The one document of --json; anything else on standard output does not parse."""
        return self.becket(*arguments, "--json", code=code).json

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, *arguments], cwd=self.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True, preexec_fn=as_in_a_terminal,  # noqa: PLW1509  # no threads are here
        )  # fmt: skip

    def end(self, process: subprocess.Popen[str]) -> Answer:
        """Wait for a program that was started."""
        out, err = process.communicate(timeout=300)
        return Answer(process.returncode, out, err)

    def scratch_of(self, run_id: str) -> Path:
        return self.state / "runs" / run_id / "scratch"


def as_in_a_terminal() -> None:
    """What is started in the background, or by nohup, ignores these, and so would the program that is interrupted."""
    for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def wait_for(what: Callable[[], T], seconds: float = 120.0) -> T:
    """The first truthy answer; fails when none comes."""
    end = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
    return answer


PROGRAM = (sys.executable, "-m", "becket.cli")


@cache
def warm() -> Warm:
    return Warm(environment())


def call(arguments: Sequence[str], folder: Path, env: dict[str, str]) -> tuple[int, bytes, bytes]:
    """One call of the program to its end: exit code, standard output, standard error."""
    if warm().fits(env):
        return warm().call(arguments, folder, env)
    done = subprocess.run([*PROGRAM, *arguments], cwd=folder, env=env, check=False, capture_output=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def environment() -> dict[str, str]:
    hidden = ("GIT_", "BECKET_", "PYTEST_", "PYTHON", "NO_COLOR")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
