"""What the process suite plays on: decoys for the escapes, small children, and ways to look at real processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import process_probes
import pytest
from process_table import ESCAPED, HELD, published
from process_wire import DENIED, Wire

from becket.kernel.contract.process import ChildResult, ChildSpec, ChildWatcher, Network, SandboxKind
from becket.kernel.process import ContainedProcesses, KeeperProgram, available

LANDLOCK_WORKS = any(offer.kind is SandboxKind.landlock and offer.holds for offer in available())
KINDS = [
    pytest.param(SandboxKind.none, id="none"),
    *([pytest.param(SandboxKind.landlock, id="landlock")] if LANDLOCK_WORKS else []),
    pytest.param(SandboxKind.bwrap, id="bwrap", marks=pytest.mark.slow),
]
"""Where the kernel has no landlock, test_process_choice.py holds that it is refused with advice."""


class Ground:
    """A sandbox and a tree to run small children in."""

    def __init__(self, processes: ContainedProcesses, base: Path) -> None:
        self.processes = processes
        self.base = base
        self.tree = base / "tree"
        self.tree.mkdir()
        self.output = base / "logs" / "step.log"

    def spec(self, *argv: str, **fields: object) -> ChildSpec:
        given: dict[str, object] = {"argv": argv, "tree": self.tree, "output": self.output, "timeout": 30.0}
        return ChildSpec.model_validate(given | fields)

    def run(self, *argv: str, watcher: ChildWatcher | None = None, **fields: object) -> ChildResult:
        return asyncio.run(self.processes.run(self.spec(*argv, **fields), watcher))

    def python_spec(self, script: str, *arguments: str, **fields: object) -> ChildSpec:
        return self.spec(sys.executable, "-I", "-c", script, *arguments, **fields)

    def shell(self, script: str, **fields: object) -> ChildResult:
        return self.run("sh", "-euc", script, **fields)

    def shell_that_times_out(self, script: str) -> ChildResult:
        """A script that makes the file `ready` gets as much time as it needs for that, however slow the machine is."""
        for timeout in (0.3, 1.5, 6.0, 24.0):
            result = self.shell(script, timeout=timeout)
            if (self.tree / "ready").exists():
                break
        return result

    def python(self, script: str, *arguments: str, **fields: object) -> ChildResult:
        return asyncio.run(self.processes.run(self.python_spec(script, *arguments, **fields)))

    @property
    def said(self) -> str:
        return self.output.read_text()


def unique_sleep() -> str:
    """A duration that no other process sleeps: its text names the process on the whole machine."""
    return f"300.{int.from_bytes(os.urandom(6), 'big')}"


def sleeping(duration: str) -> list[int]:
    """The host's pids of the processes that sleep it, zombies excluded."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and duration.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until(what: str, condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Poll for something that another process brings about."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds} s in vain: {what}"
        time.sleep(0.005)


class Stage:
    """A tree for the child, and decoys around it: the only things an attempt may hit."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tree, self.state, self.home, self.outside, self.main = (
            base / name for name in ("tree", "state", "home", "outside", "main")
        )
        self.child_home = base / "child-home"
        for folder in (self.tree, self.state, self.home, self.outside, self.child_home):
            folder.mkdir()
        self.secrets = {name: f"{name}-{os.urandom(8).hex()}" for name in ("journal", "token", "key", "netrc", "env")}
        (self.state / "journal").write_text(self.secrets["journal"])
        (self.state / "token").write_text(self.secrets["token"])
        (self.state / "key").write_text(self.secrets["key"])
        (self.home / ".netrc").write_text(self.secrets["netrc"])
        for name in ("precious", "deletable", "linkable", "modest"):
            (self.outside / name).write_text("kept")
        (self.outside / "modest").chmod(0o600)
        self.commits = self._make_repository()
        self.secrets["arg"] = unique_sleep()
        self.decoy = subprocess.Popen(
            ["sleep", self.secrets["arg"]],
            env={"PATH": os.environ["PATH"], "DECOY": self.secrets["env"]},
            start_new_session=True,
        )
        self.nap = unique_sleep()
        self.wire = Wire()

    def _git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=decoy", "-c", "user.email=decoy@example.org"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"HOME": "/"}
        command = ["git", *identity, "-C", str(self.main), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()

    def _make_repository(self) -> tuple[str, str]:
        self.main.mkdir()
        self._git("init", "-q", "-b", "main")
        self._git("commit", "-q", "--allow-empty", "-m", "one")
        first = self._git("rev-parse", "HEAD")
        self._git("commit", "-q", "--allow-empty", "-m", "two")
        return first, self._git("rev-parse", "HEAD")

    def targets(self, *, reach: bool, proxy: str) -> str:
        return json.dumps(
            {
                "outside": str(self.outside),
                "state": str(self.state),
                "home": str(self.home),
                "main": str(self.main),
                "other_commit": self.commits[0],
                "pid": self.decoy.pid,
                "nap": self.nap,
                "reach": reach,
                "proxy": proxy,
                **self.wire.targets(),
            }
        )

    def outcomes(self, said: str) -> dict[str, str]:
        """What became of each attempt, by the decoys themselves and never by the child's word."""
        escaped = {
            "write_outside": (self.outside / "planted").exists(),
            "truncate_outside": (self.outside / "precious").read_text() == "",
            "delete_outside": not (self.outside / "deletable").exists(),
            "move_out": (self.outside / "carried").exists(),
            "link_in": (self.outside / "linkable").read_text() != "kept",
            "symlink_write": (self.outside / "through_link").exists(),
            "symlink_read": self.secrets["journal"] in said,
            "read_state": self.secrets["token"] in said,
            "read_home": self.secrets["netrc"] in said,
            "move_ref": self._git("rev-parse", "refs/heads/main") != self.commits[1],
            "plant_fsmonitor": "fsmonitor" in (self.main / ".git" / "config").read_text(),
            "see_process": self.secrets["arg"] in said,
            "read_environment": self.secrets["env"] in said,
            "signal_process": _ended(self.decoy),
            "home_link_write": (self.outside / "through_home").exists(),
            "home_link_read": self.secrets["key"] in said,
            "chmod_outside": (self.outside / "modest").stat().st_mode & 0o777 != 0o600,
            "leave_setsid": sleeping(self.nap) != [],
        } | self.wire.arrived()
        return {name: ESCAPED if out else HELD for name, out in escaped.items()}

    def close(self) -> None:
        self.wire.close()
        self.decoy.kill()
        self.decoy.wait()
        for pid in sleeping(self.nap):
            os.kill(pid, signal.SIGKILL)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=0.3)
    except subprocess.TimeoutExpired:
        return False
    return True


@dataclass(frozen=True)
class Played:
    """What became of each attempt, what was announced, and what the child said."""

    outcomes: dict[str, str]
    published: dict[str, str]
    said: str


def play(kind: SandboxKind, python: str, base: Path, *, reach: bool, keeper: KeeperProgram | None = None) -> Played:
    """Let one child try everything."""
    stage = Stage(base)
    try:
        processes = ContainedProcesses(kind, keeper=keeper, resolve=stage.wire.resolve)
        expected = published(processes.holds(), reach=reach) | dict.fromkeys(stage.wire.impossible(), HELD)
        spec, result = asyncio.run(_let_try(processes, python, stage, reach=reach))
        said = spec.output.read_text()
        assert result.ok, (result, said)
        assert "all attempts made" in said
        assert result.denied == (DENIED if reach else ())
        outcomes = stage.outcomes(said)
        return Played({name: outcomes[name] for name in expected}, expected, said)
    finally:
        stage.close()


async def _let_try(
    processes: ContainedProcesses, python: str, stage: Stage, *, reach: bool
) -> tuple[ChildSpec, ChildResult]:
    async with stage.wire.proxy_of_another() as proxy:
        spec = ChildSpec(
            argv=(python, "-I", "-", stage.targets(reach=reach, proxy=proxy)),
            tree=stage.tree,
            output=stage.base / "log",
            hidden=(stage.state, stage.home),
            home=stage.child_home,
            network=Network.none,
            reach=stage.wire.reach if reach else (),
            timeout=30,
            stdin=Path(process_probes.__file__).read_bytes(),
        )
        return spec, await processes.run(spec)


def first_python_for_everyone() -> Path:
    """A Python that an ordinary user may run; the one of the tests may lie in a private folder."""
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
    assert found, "no python3 in /usr/bin or /usr/local/bin: the ordinary user has no Python to run"
    return Path(found)


def play_as(kind: str, uid: int, base: Path, *, reach: bool) -> None:
    """Become an ordinary user for good, play there, and print the outcomes as JSON."""
    asyncio.run(asyncio.to_thread(int))  # whatever is imported late must be imported while we may still read it
    python = first_python_for_everyone()
    package = base / "package" / "keeper"
    shutil.copytree(KeeperProgram.default().package, package, ignore=shutil.ignore_patterns("__pycache__"))
    stage = base / "stage"
    stage.mkdir()
    os.chown(stage, uid, uid)
    os.environ["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    played = play(SandboxKind(kind), str(python), stage, reach=reach, keeper=KeeperProgram(python, package))
    print(json.dumps(asdict(played)))


if __name__ == "__main__":
    play_as(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), reach=sys.argv[4] == "reach")
