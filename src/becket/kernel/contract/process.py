"""The port to contained child processes: everything that runs the user's or an agent's code passes here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import Field

from becket.kernel.contract.base import Record

LARGEST_TAIL = 1_000_000
NEUTRAL = Path("/run/becket/tree")
"""Where a step sees its tree. Tools go by a path's names: jest finds nothing below `.git`, node takes every file below
`test` for a test, linters overlook folders with a dot.
"""


class SandboxKind(StrEnum):
    bwrap = "bwrap"
    landlock = "landlock"
    none = "none"


class Network(StrEnum):
    """What a child may reach. `loopback` is its own loopback where the sandbox has network namespaces."""

    none = "none"
    loopback = "loopback"
    full = "full"


class Holds(Record):
    """What a sandbox really keeps apart. Published, shown by doctor, checked by the contract suite.

    `readable` is what becket.yaml lets every program in it read beside the system, at the moment.
    """

    kind: SandboxKind
    files: bool
    processes: bool
    network: bool
    notes: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()

    @property
    def everything(self) -> bool:
        return self.files and self.processes and self.network

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in ("files", "processes", "network") if not getattr(self, name))


class ChildSpec(Record):
    """One child. `argv` is run as it is; a shell command is `("sh", "-euc", text)`.

    `tree` is its working directory and, with a private temporary folder, all it may write. `hidden` folders do not
    exist for it. `readable` is what it may read beside the system (an object store, a set-up cache).

    The child sees its tree `at` that place, where the sandbox can show it there; else, and without one, where it is.

    With `reach`, a loopback entry (`127.0.0.1:11434`) is to be had inside at that very address; every other host
    through the proxy that HTTPS_PROXY and HTTP_PROXY name inside, and through nothing else.
    """

    argv: tuple[str, ...]
    tree: Path
    at: Path | None = None
    env: Mapping[str, str] = Field(default_factory=dict)
    network: Network = Network.none
    timeout: float = 600.0
    output: Path
    output_cap: int = 16_000_000  # of more than that, the beginning and the end are kept
    stdout: Path | None = None  # a second copy of standard output alone, with the same cap
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    stdin: bytes = b""
    home: Path | None = None  # its HOME, kept after it; without one, an empty folder that goes with the child
    reach: tuple[str, ...] = ()  # `host:port`; only with network `none`: the ways out of its own network

    @property
    def output_head(self) -> int:
        """Bytes that are written as they come. What follows is kept back until the child has ended."""
        return self.output_cap - min(LARGEST_TAIL, self.output_cap // 4)


class ChildEnd(StrEnum):
    exited = "exited"
    timeout = "timeout"
    killed = "killed"
    not_started = "not_started"


class ChildResult(Record):
    """How a child ended. `exit_code` is -N for signal N, as in subprocess; None only if it did not start.

    `message` of a timeout is the command line that was at work then.
    """

    end: ChildEnd
    exit_code: int | None
    seconds: float
    output_bytes: int
    output_capped: bool
    sandbox: SandboxKind
    left_running: int = 0  # processes that outlived the child and were killed
    denied: tuple[str, ...] = ()  # `host:port` that it asked the proxy for and was not allowed to reach
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.end is ChildEnd.exited and self.exit_code == 0


class ChildRef(Record):
    """Names a live process beyond doubt: a pid alone may be reused."""

    pid: int
    started: int  # clock ticks since boot, field 22 of /proc/PID/stat
    boot: str  # /proc/sys/kernel/random/boot_id


class ChildControl:
    """Held by whoever started a child, to say more to it on its standard input, and to end it early.

    For one call of `run`, made and used in its event loop. With it, standard input stays open after
    `ChildSpec.stdin` until `close`.
    """

    def __init__(self) -> None:
        self.spoken: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.ended = asyncio.Event()

    def say(self, data: bytes) -> None:
        self.spoken.put_nowait(data)

    def close(self) -> None:
        """Nothing more is said: the child reads the end of its standard input."""
        self.spoken.put_nowait(None)

    def end(self) -> None:
        """Kill the child and all it started; `run` then returns `killed`."""
        self.ended.set()


class ChildWatcher(Protocol):
    """Told about a child before and after it lives, so that a crash of ours leaves no unknown process behind."""

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        """Called once, after the spawn and before the child's program runs; if it raises, the program never runs."""
        ...

    async def ended(self, child: ChildRef) -> None:
        """Called once, after everything the child started is gone."""
        ...


class Processes(Protocol):
    """Runs contained children. One instance per process; safe for many concurrent calls."""

    def holds(self) -> Holds:
        """What the sandbox in use keeps apart. Called at start, by doctor and by the autonomy check."""
        ...

    async def run(
        self, spec: ChildSpec, watcher: ChildWatcher | None = None, control: ChildControl | None = None
    ) -> ChildResult:
        """Run one child to its end.

        Never raises for what the child does: a missing program is `not_started`. On cancellation everything the
        child started is killed before CancelledError leaves.
        """
        ...

    def sweep(self, children: Sequence[ChildRef]) -> list[ChildRef]:
        """Kill what is still alive of children recorded by an earlier process of ours; returns those found alive.

        Called at boot with what the journal remembers. Never touches a pid whose start time or boot differs.
        """
        ...
