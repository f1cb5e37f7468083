"""What the doctor is told: plain values and callables about this machine, this repository and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from becket.kernel.contract.base import Record
from becket.kernel.contract.candidate import BrokenRef
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.git import TreeHealth
from becket.kernel.contract.process import Holds
from becket.kernel.contract.store import WorkerInfo


class Level(StrEnum):
    ok = "ok"
    warn = "warn"
    error = "error"


class AgentFindings(Record):
    """One agent as programs read it: what was found of it, where it will work, and what it can reach from there."""

    agent: str
    driver: str
    program: str | None  # where it is; None: nowhere, or a shell starts it
    version: str
    sandbox: str | None
    network: str  # none: `hosts` and nothing else
    hosts: tuple[str, ...]
    held: bool  # False: the sandbox does not keep it from other ways out


class Diagnosis(Record):
    """One thing looked at. `mend` is the exact command or edit; `where` is a file, with the line if there is one."""

    name: str
    level: Level
    what: str
    mend: str | None = None
    where: str | None = None
    agent: AgentFindings | None = None


@dataclass(frozen=True, slots=True)
class SandboxFact:
    """One sandbox this Becket knows. `reason` says why it is not available here."""

    holds: Holds
    available: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LockFact:
    """A lock or pid file of ours. `started` and `boot` tell a process from a later one with the same pid."""

    path: Path
    pid: int | None
    started: int | None = None
    boot: str | None = None


@dataclass(frozen=True, slots=True)
class TreeFact:
    """The resident tree, or what blocks its place; and what was moved aside when it was made anew."""

    path: Path
    health: TreeHealth
    aside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ContentFacts:
    """Of HEAD: submodules and large files that the repository lacks; without git-lfs, what leaves files to it."""

    submodules: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    lfs: bool = True  # git-lfs is installed


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What the database says: its time, and who works on it."""

    now: float
    workers: tuple[WorkerInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class RefsFacts:
    """Refs of Becket's own: those that are broken, and what the saved work takes on the disk."""

    broken: tuple[BrokenRef, ...] = ()
    rescues: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LoginFact:
    """A file or a variable that an agent is to be given. Only whether it is there is known, never what it holds."""

    what: str
    there: bool
    trouble: str = ""  # such as: it is empty


@dataclass(frozen=True, slots=True)
class AgentFact:
    """What was found of one agent of becket.yaml, without calling it."""

    name: str
    program: str  # as it is named; empty where a shell text starts something that cannot be told
    path: Path | None  # where it is; None: nowhere
    version: str = ""
    untested: str = ""  # what to say about a version that the drivers were not tested with
    install: str = ""  # the command that brings it
    logins: tuple[LoginFact, ...] = ()
    network: str = ""  # its network, where it is not bounded by hosts
    ways: tuple[str, ...] = ()  # `host:port` that it can reach
    unpriced: str = ""  # why its limit in money cannot be held
    why_unenforceable: str = ""  # why a budget in money cannot be held for it
    unseen: str = ""  # why contained programs cannot start it although it is there, and what to write
    wrong: tuple[str, ...] = ()  # what else keeps it from being called, each with what to do


@dataclass(frozen=True, slots=True)
class InotifyFacts:
    """The kernel's limits for watching files; None where a number cannot be known."""

    works: bool
    max_watches: int | None = None
    max_instances: int | None = None
    used_watches: int | None = None
    used_instances: int | None = None
    blind_mount: str | None = None  # the kind of file system that tells of no remote changes


@dataclass(frozen=True, kw_only=True)
class DoctorFacts:
    """Filled by `app`. A callable is called at most once or twice, and may raise: that becomes a diagnosis."""

    git_version: str | None  # what `git --version` printed; None: no git
    git_minimum: tuple[int, ...]
    python_version: tuple[int, ...]
    python_minimum: tuple[int, ...] = (3, 11)

    root: Path | None  # None: not inside a repository
    state: Path | None  # the state folder, which may not exist yet
    socket: Path | None  # the doorbell's path
    working_text: str | None  # becket.yaml of the work tree; None: no such file
    committed_text: str | None  # becket.yaml of HEAD; None: not there
    load_config: Callable[[str], Config]  # raises InvalidDocument

    sandboxes: tuple[SandboxFact, ...]  # best first: the order in which `auto` takes them
    open_store: Callable[[], StoreFacts | None]  # must not create one; None: none yet. Raises StoreUnavailable
    last_backup: Callable[[], str | None] = lambda: None  # the newest backup of the journal that is whole
    now: Callable[[], float]
    locks: tuple[LockFact, ...] = ()
    alive: Callable[[LockFact], bool]
    disk_free: Callable[[Path], int]
    write_problem: Callable[[Path], str | None]  # why a folder cannot be written; None: it can
    which: Callable[[str], str | None]
    unseen: Callable[[Config, str], Path | None] = lambda *_: None  # what of a program contained ones cannot read
    trouble: Callable[[Config, str], str] = lambda *_: ""  # what a program says that does not work when contained
    contents: Callable[[], ContentFacts] = ContentFacts
    remotes: Callable[[], tuple[str, ...]] = tuple  # the names that git knows
    not_held_out: Callable[[], str] = lambda: ""  # why no hold-out check can be written for what the repository holds
    env: Mapping[str, str] = field(default_factory=dict)
    inotify: Callable[[], InotifyFacts]
    lint_loops: Callable[[], Iterable[Finding]]
    absent_branches: Callable[[], Iterable[Finding]] = lambda: ()  # what loops wait for and is not there
    refs: Callable[[], RefsFacts] = RefsFacts
    look_at_tree: Callable[[], TreeFact | None] = lambda: None
    unwritable: Callable[[], str] = lambda: ""  # why nobody can write the journal now
    look_at_agents: Callable[[Config], tuple[AgentFact, ...]] = lambda _: ()
    worker_ttl: float = 30.0  # a worker without a heartbeat for this long does not count as alive


class Exam:
    """The facts of one examination, with what several checks need read once."""

    def __init__(self, facts: DoctorFacts) -> None:
        self.facts = facts
        self.opened_at = 0.0  # this machine's time when the store told its own

    @cached_property
    def loaded(self) -> Config | Exception | None:
        """The working copy's configuration, why it cannot be had, or None without a file."""
        return self._load(self.facts.working_text)

    @cached_property
    def committed(self) -> Config | Exception | None:
        return self._load(self.facts.committed_text)

    @cached_property
    def store(self) -> StoreFacts | Exception | None:
        try:
            found = self.facts.open_store()
            self.opened_at = self.facts.now()
        except Exception as error:  # the check that owns it tells it; the others do without
            return error
        return found

    @property
    def config(self) -> Config | None:
        return self.loaded if isinstance(self.loaded, Config) else None

    def _load(self, text: str | None) -> Config | Exception | None:
        if text is None:
            return None
        try:
            return self.facts.load_config(text)
        except Exception as error:  # as above
            return error


Check = Callable[[Exam], Iterable[Diagnosis]]
"""Looks at one thing. Whatever it raises becomes a diagnosis of its own."""


class MissingTool(Record):
    """A tool that a proposed step needs and the machine lacks."""

    tool: str
    mend: str
