"""Starts and ends the daemon and the watchdog. A start is known by its pid at once; an end is waited for."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from becket.app.liveness import TELL_AFTER, KeptProcess, stopped
from becket.app.locks import UNNAMED, StartLock
from becket.app.state import StateFolder, holder, silent_for
from becket.kernel.contract.crash import CrashPoint

STOP_WITHIN = 20.0
NAMED_WITHIN = 15.0  # a start on a busy machine
DEAF_STOP_WITHIN = 2.0
"""Whoever does not hear will not hear SIGTERM either."""
WORDS_KEPT = 4000

before_spawn = CrashPoint("launch.before_spawn", "the start is locked; no process exists")
after_spawn = CrashPoint("launch.after_spawn", "the process runs; the lock of its start does not name it yet")


def launch(state: StateFolder, part: KeptProcess) -> int | None:
    """Start one of the two. None if it runs already, or somebody else is starting it."""
    start = StartLock(part.start)
    if not start.acquire():
        return None
    try:
        if holder(part.lock) is not None:  # the other start has just come to its end
            return None
        before_spawn()
        pid = _spawn(state, part.verb, start.file)
        after_spawn()
        start.name(pid)
        return pid
    finally:
        start.close()


def _spawn(state: StateFolder, verb: str, start: int) -> int:
    """In a session of its own, its words in a log."""
    state.logs.mkdir(exist_ok=True)
    with (state.logs / f"{verb}.out").open("ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "becket.cli", "-C", str(state.root), verb],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            pass_fds=(start,),
            env={**os.environ, StartLock.VARIABLE: str(start)},
        )
    # Its parent may live long: reap it when it ends, whoever looks first.
    _spawned.append(child)
    reap()
    return child.pid


_spawned: list[subprocess.Popen[bytes]] = []


def reap() -> None:
    _spawned[:] = [one for one in _spawned if one.poll() is None]


@dataclass(frozen=True, slots=True)
class EndedProcess:
    pid: int
    killed: bool = False  # it did not end by itself
    gone: bool = True


def end_holder(lock: Path, pid: int | None = None) -> EndedProcess | None:
    """End whoever holds the lock, or only `pid` if given, and see it gone. None if nobody does."""
    found = _named_holder(lock)
    if found is None or pid not in (None, found):
        return None
    if found == UNNAMED:  # a start whose starter was killed before it could name it
        return EndedProcess(found, gone=False)
    try:
        process = os.pidfd_open(found)
    except ProcessLookupError:
        return EndedProcess(found)
    try:
        # Else it ended meanwhile, and its number may be another's.
        return _stop(process, found, _patience(lock, found)) if holder(lock) == found else EndedProcess(found)
    finally:
        os.close(process)


def _named_holder(lock: Path) -> int | None:
    """Who holds it; a start that is only now getting its name is waited for."""
    until = time.monotonic() + NAMED_WITHIN
    while (found := holder(lock)) == UNNAMED and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _patience(lock: Path, pid: int) -> float:
    deaf = stopped(pid) or (silent_for(lock) or 0.0) > TELL_AFTER
    return DEAF_STOP_WITHIN if deaf else STOP_WITHIN


def _stop(process: int, pid: int, patience: float) -> EndedProcess:
    _send(process, signal.SIGTERM)
    if _gone(process, patience):
        return EndedProcess(pid)
    _send(process, signal.SIGKILL)
    return EndedProcess(pid, killed=True, gone=_gone(process, STOP_WITHIN))


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, number)


def _gone(process: int, within: float) -> bool:
    """Is the process itself gone, and not only its lock?"""
    return bool(select.select([process], [], [], within)[0])


def last_words(state: StateFolder, verb: str) -> str:
    """What a process that died said last: of its own output, else of its log."""
    said = [line for line in _tail(state.logs / f"{verb}.out") if line.strip()]
    if said and not said[-1].startswith(GREETING):
        return said[-1].strip()
    logged = _tail(state.logs / ("daemon.log" if verb == "up" else f"{verb}.log"))
    return logged[-1].strip() if logged else ""


GREETING = "becket is up"


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - WORDS_KEPT, 0))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


class LogFile(RotatingFileHandler):
    """Made again by the next line where somebody removed it."""

    def emit(self, record: logging.LogRecord) -> None:
        path = Path(self.baseFilename)
        if self.stream is not None and not path.exists():
            with contextlib.suppress(OSError):
                path.parent.mkdir(exist_ok=True)
                gone, self.stream = self.stream, self._open()
                gone.close()
        super().emit(record)


def log_to(state: StateFolder, name: str) -> None:
    state.logs.mkdir(exist_ok=True)
    handler = LogFile(state.logs / f"{name}.log", maxBytes=5_000_000, backupCount=3)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("becket")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
