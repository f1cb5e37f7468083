"""Kill -9 at a named point, start again, compare: for actions and adapters that must lose nothing.

    async def story(folder: Path, **arguments) -> Json: ...      # opens its parts anew, as a new process would

    with Nursery("my_stories:story", paths=[Path(__file__).parent]) as nursery:
        assert nursery.live(tmp_path, crash_at="door.after_perform@2").killed
        print(nursery.live(tmp_path).value)                      # the next life goes on where the first one fell

A nursery is one clean process that has imported everything; each life is a fork of it, which costs milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import becket
from becket.kernel.contract import crash
from becket.kernel.contract.base import Json

LONGEST_LIFE = 20.0
_PR_SET_PDEATHSIG = 1


class Crashed(BaseException):
    """Stands for kill -9 within one process. No `except Exception` of the runtime can hold it up."""


@contextlib.contextmanager
def crashing(name: str, nth: int = 1) -> Iterator[None]:
    """Within the block, the nth hit of a point raises Crashed. What the memory held is then to be thrown away."""
    left = nth

    def hook(hit: str) -> None:
        nonlocal left
        if hit == name:
            left -= 1
            if left == 0:
                raise Crashed(f"{name}@{nth}")

    crash.install(hook)
    try:
        yield
    finally:
        crash.install(None)


def every_point() -> dict[str, crash.CrashPoint]:
    """All crash points of Becket itself, whether or not their module was imported before."""
    for module in pkgutil.walk_packages(becket.__path__, "becket."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)
    return crash.points()


@dataclass(frozen=True, slots=True)
class ProcessLife:
    """How one process fared from its start to its end."""

    killed: bool  # by SIGKILL: its own at the crash point, or somebody's from outside
    code: int | None  # as in subprocess; None if it was killed for taking too long
    seconds: float
    hits: dict[str, int] = field(default_factory=dict)  # how often it passed each point; empty if it was killed
    value: Json = None  # what the story returned
    said: str = ""  # the traceback of a story that failed


class Nursery:
    """Forks one process per life of a story. One life at a time; `with` or `close` ends it and whatever it runs."""

    def __init__(self, story: str, paths: Sequence[Path] = ()) -> None:
        """`story` is `module:function`; `paths` are where the module is looked for."""
        ours, theirs = socket.socketpair()
        search = [*map(str, paths), *(entry for entry in sys.path if entry)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "becket.testing.crashes", story, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()
        self._channel = ours.makefile("rw", encoding="utf-8", newline="\n")
        ours.close()
        self._hear()  # it has imported everything

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.close()
        self._process.wait(10)

    def live(self, folder: Path, crash_at: str | None = None, **arguments: Json) -> ProcessLife:
        """One whole life. `crash_at` is `name` or `name@n`, as in BECKET_CRASH_AT."""
        self.begin(folder, crash_at, **arguments)
        return self.end()

    def begin(self, folder: Path, crash_at: str | None = None, **arguments: Json) -> int:
        """Start a life and come back at once with its process id, which stays its own until `end`."""
        self._say({"folder": str(folder), "crash_at": crash_at, "arguments": arguments})
        return int(self._hear()["pid"])

    def end(self, timeout: float = LONGEST_LIFE) -> ProcessLife:
        """Wait for the life that was begun; after `timeout` seconds it is killed."""
        self._say({"timeout": timeout})
        return ProcessLife(**self._hear())

    def _say(self, message: dict[str, Json]) -> None:
        self._channel.write(json.dumps(message) + "\n")
        self._channel.flush()

    def _hear(self) -> dict[str, Any]:
        line = self._channel.readline()
        if not line:
            raise RuntimeError(f"the nursery has ended (exit code {self._process.wait(10)}); see its words above")
        heard: dict[str, Any] = json.loads(line)
        return heard


def _nurse(reference: str, channel: socket.socket) -> None:
    """The nursery's own process: never a thread, never an event loop, or its forks would inherit them half alive."""
    module, _, name = reference.partition(":")
    every_point()
    story = getattr(importlib.import_module(module), name)
    with channel.makefile("rw", encoding="utf-8", newline="\n") as lines:
        _tell(lines, {})
        for wish in map(json.loads, iter(lines.readline, "")):
            assert threading.active_count() == 1, "a module started a thread when it was imported"
            answer = os.memfd_create("becket-life")
            began = time.monotonic()
            pid = os.fork()
            if pid == 0:
                _be_born(story, wish, answer)
            _tell(lines, {"pid": pid})
            patience = json.loads(lines.readline() or '{"timeout": 0}')["timeout"]
            _tell(lines, _buried(pid, patience, answer, began))


def _tell(lines: Any, message: dict[str, Json]) -> None:
    lines.write(json.dumps(message) + "\n")
    lines.flush()


def _buried(pid: int, patience: float, answer: int, began: float) -> dict[str, Json]:
    handle = os.pidfd_open(pid)
    watching = select.poll()
    watching.register(handle, select.POLLIN)
    in_time = bool(watching.poll(patience * 1000))
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(handle)
    with os.fdopen(answer, "rb") as file:
        file.seek(0)
        told = json.loads(file.read() or b"{}") if in_time and code >= 0 else {}
    life = {"killed": in_time and code == -signal.SIGKILL, "code": code if in_time else None}
    return {**life, "seconds": time.monotonic() - began, **told}


def _be_born(story: Any, wish: dict[str, Any], answer: int) -> None:
    """In the fork. Never returns: two nurseries must not go on."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        random.seed()
        folder = Path(wish["folder"])
        (folder / "tmp").mkdir(exist_ok=True)
        tempfile.tempdir = str(folder / "tmp")
        hits: Counter[str] = Counter()
        _arm(hits, wish["crash_at"])
        told: dict[str, Json] = {}
        try:
            told["value"] = asyncio.run(story(folder, **wish["arguments"]))
            code = 0
        except Exception:
            told["said"] = traceback.format_exc()
        os.write(answer, json.dumps({**told, "hits": dict(hits)}).encode())
    finally:
        os._exit(code)


def _arm(hits: Counter[str], crash_at: str | None) -> None:
    kill = crash.KillAt(crash_at) if crash_at else None

    def hook(name: str) -> None:
        hits[name] += 1
        if kill is not None:
            kill(name)

    crash.install(hook)


if __name__ == "__main__":
    _nurse(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
