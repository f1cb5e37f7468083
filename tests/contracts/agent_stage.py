"""What the agents' suite plays on: each kind of agent as production makes it, a scripted model, decoys around it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_programs import fakes, live_as_a_daemon, real, settings
from becket.app.sections import config_model
from becket.kernel.contract.agent import (
    Agent,
    AgentEvent,
    AgentEventKind,
    AgentReport,
    CallContext,
    CallFiles,
    CallJudgement,
    Limits,
    judge,
)
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import ChildRef, SandboxKind
from becket.kernel.process import ContainedProcesses, available
from becket.kernel.process.resolve import Resolve
from becket.parts.agents.adapters.inbox import put
from becket.parts.agents.configured import ConfiguredAgents
from becket.parts.agents.section import Price
from becket.testing.model import Edit, Say, ScriptedModel, Shell, Step, Write

LANDLOCK_WORKS = any(offer.kind is SandboxKind.landlock and offer.holds for offer in available())
PRICES = {"scripted": Price(input=2.0, output=20.0), "gemini-2.5": Price(input=2.0, output=20.0)}
TELLS_TWICE = "function response parts is equal to the number of function call parts"
"""What the real gemini 0.61 does wrong when it resumes a session with tool calls."""

BRIEF = "Make value.txt say good. (suite)"
REPAIR = Edit("value.txt", "bad\n", "good\n")


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table: a program, real or fake, in a sandbox."""

    program: str
    real: bool = False
    sandbox: SandboxKind = SandboxKind.landlock

    def __str__(self) -> str:
        return f"{'real' if self.real else 'fake'}-{self.program}-{self.sandbox}"

    @property
    def contained(self) -> bool:
        return self.sandbox is not SandboxKind.none

    def config(self, model: ScriptedModel, **more: Any) -> AgentConfig:
        """As a user writes it who has his model at this address."""
        if self.program in ("command", "acp"):  # any program that is started by `run`
            return AgentConfig.model_validate({"driver": self.program, "sandbox": self.sandbox.value, **more})
        given = settings(self.program, model)
        given["set"] = {**given.get("set", {}), **more.pop("set", {})}
        return AgentConfig.model_validate({"sandbox": self.sandbox.value, **given, **more})


CODEX, CLAUDE, GEMINI = (Kind(program, True, SandboxKind.bwrap) for program in ("codex", "claude", "gemini"))

IN_LANDLOCK = tuple(Kind(program, True) for program in ("codex", "claude") if LANDLOCK_WORKS)


def kinds(*reals: Kind, fakes: Sequence[str] = ("codex", "claude", "gemini"), bare: bool = False) -> list[Any]:
    """The fakes always, in bubblewrap only where it is installed for that; the real ones that are named.

    Where the kernel has no landlock, the fakes work without a sandbox, and only what needs none is played.
    """
    found = []
    for program in fakes:
        if LANDLOCK_WORKS:
            found.append(pytest.param(Kind(program), id=f"fake-{program}"))
        if bare:
            found.append(pytest.param(Kind(program, sandbox=SandboxKind.none), id=f"fake-{program}-bare"))
        held = Kind(program, sandbox=SandboxKind.bwrap)
        found.append(pytest.param(held, id=f"fake-{program}-bwrap", marks=pytest.mark.slow))
    for kind in reals:
        place = "" if kind.sandbox is SandboxKind.bwrap else f"-{kind.sandbox}"
        found.append(pytest.param(kind, id=f"real-{kind.program}{place}", marks=pytest.mark.agents))
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call that is over: what the driver said, and what the runtime makes of it with the real work tree."""

    report: AgentReport
    judged: CallJudgement
    events: tuple[AgentEvent, ...]

    def of(self, kind: AgentEventKind) -> list[AgentEvent]:
        return [event for event in self.events if event.kind is kind]


class Watcher:
    """Knows the children that were started, as the journal does."""

    def __init__(self) -> None:
        self.alive: list[ChildRef] = []
        self.seen: list[ChildRef] = []

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        self.alive.append(child)
        self.seen.append(child)

    async def ended(self, child: ChildRef) -> None:
        self.alive.remove(child)


class AgentStage:
    """A repository with its work tree, a person's HOME, a decoy, and one agent. Made by the `stage` fixture."""

    def __init__(self, folder: Path, kind: Kind, model: ScriptedModel, resolve: Resolve | None = None) -> None:
        self.folder, self.kind, self.model = folder, kind, model
        self.mark = f"suite-{os.urandom(8).hex()}"
        self.home, self.tree, self.root, self.decoy = (folder / name for name in ("user", "tree", "repo", "decoy"))
        self.agent_home = folder / "agent-home"
        self.watcher = Watcher()
        self.heard: list[AgentEvent] = []
        self.calls = 0
        self.on_event: Callable[[AgentEvent], None] = lambda event: None
        self.processes = ContainedProcesses(kind.sandbox, grace=0.5, resolve=resolve)
        self._lay_out()

    def _lay_out(self) -> None:
        for place in (self.home / ".codex", self.tree, self.root, self.decoy):
            place.mkdir(parents=True)
        (self.home / ".codex" / "auth.json").write_text('{"token": "of the person"}')
        (self.home / ".netrc").write_text(f"password netrc-{self.mark}\n")
        (self.root / ".env").write_text(f"TOKEN=dotenv-{self.mark}\n")
        (self.decoy / "letter.txt").write_text("Do not touch.\n")
        (self.tree / "value.txt").write_text("bad\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "begin")

    def git(self, *arguments: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-C", str(self.tree), "-c", "user.name=suite", "-c", "user.email=s@example.org", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout

    def agent(self, **more: Any) -> Agent:
        given = self.kind.config(self.model, **more)
        # The mark goes on to whatever the agent starts, and names it on the whole machine.
        given = given.model_copy(update={"set": {**given.set, "SUITE_MARK": self.mark}})
        config = config_model()(version=1, agents={"fixer": given}, prices=PRICES)
        hidden = (self.root / ".git", self.home)
        return ConfiguredAgents(lambda: config, lambda _: self.processes, lambda: hidden, self.root).get("fixer")

    @property
    def files(self) -> CallFiles:
        return CallFiles(self.folder / "calls" / str(self.calls))

    async def work(
        self, brief: str = BRIEF, *, session: str | None = None, limits: Limits | None = None, **more: Any
    ) -> Outcome:
        """One call, and nothing of it left."""
        self.calls += 1
        self.heard = []
        call_context = CallContext(self.watcher, files=self.files, home=self.agent_home, heard=self._hear)
        limits = limits or Limits(seconds=60)
        report = await self.agent(**more).run(brief, self.tree, limits, session, call_context=call_context)
        assert self.watcher.alive == []
        assert self.left() == []
        return Outcome(report, judge(report, self.changed()), tuple(self.heard))

    def call(self, *steps: Step, brief: str = BRIEF, **more: Any) -> Outcome:
        self.model.script(*steps)
        return asyncio.run(self.work(brief, **more))

    def changed(self) -> tuple[str, ...]:
        return tuple(line[3:] for line in self.git("status", "--porcelain", "-uall").splitlines())

    def say(self, text: str) -> None:
        """A person speaks to the agent of the running call."""
        put(self.files.inbox, text, by="ada")

    def _hear(self, event: AgentEvent) -> None:
        self.heard.append(event)
        self.on_event(event)

    def left(self) -> list[str]:
        """Processes of this stage's agent, wherever they hide."""
        return [words for pid, words in processes() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        try:
            return f"SUITE_MARK={self.mark}".encode() in Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def program_pid(self, *, youngest: bool = False) -> int:
        """Of the agent's program itself, found below the child that was started for it.

        Gemini runs itself once more; the `youngest` does the work.
        """
        (child,) = self.watcher.alive
        below = descendants(child.pid)
        found = shutil.which(self.kind.program)
        real = str(Path(found or "").resolve())
        # An interpreter and its option may stand before it.
        ours = [pid for pid, words in processes() if pid in below and real in words.split("\0")[:3]]
        assert ours, f"no {self.kind.program} below {child.pid}: {sorted(below)}"
        return ours[-1 if youngest else 0]


def processes() -> Iterator[tuple[int, str]]:
    """Pid and command line, words apart by NUL; the oldest first. Zombies have no words and are left out."""
    for entry in sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            words = Path("/proc", str(entry), "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if words:
            yield entry, words


def descendants(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def make_stage(
    folder: Path, kind: Kind, model: ScriptedModel, patch: pytest.MonkeyPatch, resolve: Resolve | None = None
) -> AgentStage:
    """In the environment of a daemon, with a secret of its own."""
    stage = AgentStage(folder, kind, model, resolve)
    live_as_a_daemon(patch, stage.home, real(kind.program) if kind.real else fakes(folder / "bin"))
    patch.setenv("DAEMON_SECRET", f"daemon-{stage.mark}")
    return stage


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """Whatever the agents asked of it must have been a request that the real services accept."""
    with ScriptedModel() as server:
        yield server
    assert [wrong for wrong in server.violations if TELLS_TWICE not in wrong] == []


@pytest.fixture
def stage(kind: Kind, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentStage]:
    made = make_stage(tmp_path, kind, model, monkeypatch)
    decoy = tree_of(made.decoy), tree_of(made.home)
    yield made
    assert (tree_of(made.decoy), tree_of(made.home)) == decoy
    assert made.left() == []


def tree_of(folder: Path) -> dict[str, bytes]:
    """All files below it with what is in them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def repairs(*more: Step) -> tuple[Step, ...]:
    return (REPAIR, Say("It is good now."), *more)


ASK_PROXY = """\
address=${HTTPS_PROXY#http://}; port=${address##*:}
login="Proxy-Authorization: Basic $(printf %s "${address%@*}" | base64 -w0)"
exec 3<>/dev/tcp/127.0.0.1/$port
printf 'CONNECT elsewhere.test:443 HTTP/1.1\\r\\nHost: elsewhere.test:443\\r\\n%s\\r\\n\\r\\n' "$login" >&3
head -1 <&3 > told.txt
"""


def asks_the_proxy_for_elsewhere() -> tuple[Step, ...]:
    """By a file: gemini takes the quotes off a script of `bash -c`, and blocks what substitutes a command."""
    return Write("ask.sh", ASK_PROXY), *shell("bash ask.sh")


def shell(command: str) -> tuple[Step, ...]:
    return Shell(command), Say("Done.")
