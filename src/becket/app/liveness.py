"""Whether a process that holds one of our locks is alive, deaf, or merely kept waiting. Standard library only.

Only time in which we looked ourselves counts as silence: a suspended machine, a heavy load, or a stop of everybody
makes nobody deaf.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from becket.app.locks import Writer
from becket.app.state import StateFolder, holder, last_sign, silent_for

LOOK_EVERY = float(os.environ.get("BECKET_WATCHDOG_EVERY", "2"))
DEAF_AFTER = float(os.environ.get("BECKET_DEAF_AFTER", "60"))
"""An event loop that does not go round for so long will not come back by itself."""
START_WITHIN = float(os.environ.get("BECKET_START_WITHIN", "300"))
"""From its beginning to its first sign of life: imports, migrations, what a killed one left to be put in order."""
LEASE = 30.0
"""Seconds that a run at work is its worker's without a further sign."""
TELL_AFTER = min(10.0, DEAF_AFTER / 2)
"""A person is told of a silence that is longer than a busy store's."""


@dataclass(frozen=True, slots=True)
class KeptProcess:
    """One of the two processes that keep each other."""

    verb: str
    lock: Path
    start: Path
    restarts: Path

    @property
    def name(self) -> str:
        """What people call it."""
        return "daemon" if self.verb == "up" else self.verb


def daemon_of(state: StateFolder) -> KeptProcess:
    return KeptProcess("up", state.daemon_lock, state.daemon_start, state.daemon_restarts)


def watchdog_of(state: StateFolder) -> KeptProcess:
    return KeptProcess("watchdog", state.watchdog_lock, state.watchdog_start, state.watchdog_restarts)


@dataclass(frozen=True, slots=True)
class ProcessObservation:
    """One look at a process."""

    pid: int | None = None  # who holds the lock
    sign: float | None = None  # its last sign of life; None before the first
    starting: int | None = None  # who is being started, and does not hold the lock yet
    excused: bool = False  # it waits for somebody else, or somebody holds it on purpose


def see(part: KeptProcess, writer: Writer | None = None) -> ProcessObservation:
    pid = holder(part.lock)
    if pid is None:
        return ProcessObservation(starting=holder(part.start))
    return ProcessObservation(pid, last_sign(part.lock), excused=traced(pid) or _kept_waiting(pid, writer))


def _kept_waiting(pid: int, writer: Writer | None) -> bool:
    """SQLite waits inside the event loop: silence while somebody else writes is no fault of this one."""
    return writer is not None and writer.pid() not in (None, pid)


class Silence:
    """For how long a process gave no sign, counted only while we were looking."""

    def __init__(self, longest_step: float) -> None:
        self._longest_step = longest_step
        self._last: tuple[int | None, float | None, int | None] | None = None
        self._looked_at = 0.0
        self._seconds = 0.0

    def of(self, sight: ProcessObservation, now: float) -> float:
        seen = (sight.pid, sight.sign, sight.starting)
        step = min(now - self._looked_at, self._longest_step)
        if seen != self._last:
            self._seconds = 0.0
        elif not sight.excused:
            self._seconds += step
        self._last, self._looked_at = seen, now
        return self._seconds


class KeeperAction(StrEnum):
    wait = "wait"
    start = "start"
    end = "end"


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    deaf_after: float = DEAF_AFTER
    start_within: float = START_WITHIN


def judge(sight: ProcessObservation, silent: float, limits: SilenceLimits) -> KeeperAction:
    """A start is slow for long before it counts as hung; a free lock that nobody is about to take is a death."""
    if sight.pid is None and sight.starting is None:
        return KeeperAction.start
    patience = limits.deaf_after if sight.sign is not None else limits.start_within
    return KeeperAction.end if silent > patience else KeeperAction.wait


def watched(part: KeptProcess, writer: Writer, patience: float, every: float = 0.2) -> bool:
    """Watch a silent process for a moment: is it deaf? False as soon as it shows life, is excused, or is gone.

    A whole machine that was held up shows old signs too, and new ones within a moment.
    """
    silence, first = Silence(2 * every), silent_for(part.lock)
    known = 0.0 if first is None else first
    while True:
        sight = see(part, writer)
        new = silence.of(sight, time.monotonic())
        quiet = silent_for(part.lock)
        if sight.pid is None or sight.excused or quiet is None or quiet < known:
            return False
        if new >= SURE_AFTER and (quiet >= patience or stopped(sight.pid)):
            return True
        time.sleep(every)


SURE_AFTER = 3.0


def stopped(pid: int) -> bool:
    """By SIGSTOP or Ctrl-Z."""
    return _stat(pid) == "T"


def traced(pid: int) -> bool:
    """By a debugger: whoever holds it there knows."""
    return _stat(pid) == "t"


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def command_of(pid: int) -> str:
    """How a person would have typed it, `becket run heal`."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return "?"
    for place, word in enumerate(words):
        if word == "becket.cli" or Path(word).name == "becket":
            words = ["becket", *words[place + 1 :]]
            break
    text = " ".join(words)
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 3] + "..."


LONGEST_COMMAND = 80


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A process that holds a lock, as a person is told of it."""

    pid: int
    silent: float  # seconds since its last sign of life, or 0 where it has shown none yet
    stopped: bool
    command: str
    sign: float | None = None  # its last one, by the monotonic clock

    @property
    def deaf(self) -> bool:
        return self.silent > TELL_AFTER


def held(lock: Path) -> LockHolder | None:
    pid = holder(lock)
    if pid is None:
        return None
    return LockHolder(pid, silent_for(lock) or 0.0, stopped(pid), command_of(pid), last_sign(lock))


def engine_trouble(state: StateFolder) -> str:
    """Why nothing moves, and what to do: said to whoever waits for the engine. Empty while it shows life."""
    daemon = held(state.daemon_lock)
    deaf = daemon is not None and daemon.deaf and daemon.pid == holder(state.engine_lock)
    return deaf_daemon(state, daemon) if deaf and daemon is not None else ""


def drivers(state: StateFolder) -> tuple[LockHolder, ...]:
    """Commands that drive a run of their own; and whoever else is the engine without being the daemon."""
    daemon = holder(state.daemon_lock)
    places = (state.engine_lock, *sorted(state.drivers.glob("*")))
    return tuple(one for place in places if (one := held(place)) is not None and one.pid != daemon)


def in_hand(state: StateFolder) -> frozenset[str]:
    """The runs that commands were asked to drive, and drive now."""
    lists = [_read(path) for path in state.drivers.glob("*") if holder(path) is not None]
    return frozenset(run_id for text in lists for run_id in text.split()[1:])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:  # it ended meanwhile
        return ""


def is_cared_for(state: StateFolder, run_id: str, worker: str | None) -> bool:
    """Is somebody on this machine at work on the run, or about to be? An engine takes up whatever there is."""
    if holder(state.engine_lock) is not None or run_id in in_hand(state):
        return True
    return worker is not None and holder(state.drivers / worker) is not None


def driver_trouble(state: StateFolder) -> str:
    return next((deaf_driver(one) for one in drivers(state) if one.deaf), "")


def deaf_for(lock: Path) -> float:
    """Seconds without a sign of life, where they are too many; else 0."""
    silent = silent_for(lock) or 0.0
    return silent if silent > TELL_AFTER else 0.0


def deaf_driver(driver: LockHolder) -> str:
    """Never ended by us: it is a person's, in a terminal."""
    how = "is stopped (Ctrl-Z?)" if driver.stopped else f"has given no sign of life for {driver.silent:.0f} s"
    return (
        f"pid {driver.pid} (`{driver.command}`) {how}: its run does not move until it goes on or ends. "
        f"Type `fg` in its terminal, or end it with `kill -KILL {driver.pid}`; its run goes on where it was."
    )


def deaf_daemon(state: StateFolder, daemon: LockHolder) -> str:
    watchdog = held(state.watchdog_lock)
    said = f"The daemon (pid {daemon.pid}) has given no sign of life for {daemon.silent:.0f} s"
    if writer := other_writer(state, daemon.pid):
        return f"{said}. {writer}"
    if watchdog is None or watchdog.deaf:
        return f"{said}, and no watchdog can replace it. Replace it with `becket up --detach`."
    return f"{said}; after {DEAF_AFTER:.0f} s of silence the watchdog (pid {watchdog.pid}) replaces it."


def other_writer(state: StateFolder, pid: int | None) -> str:
    """Who else holds the journal, as a sentence; empty if nobody does."""
    writer = Writer(state.database).pid()
    if writer in (None, pid):
        return ""
    return (
        f"It waits for pid {writer} (`{command_of(writer or 0)}`), which holds the journal. If that one hangs, end it "
        f"with `kill -KILL {writer}`."
    )
