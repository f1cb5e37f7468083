"""Keeps the other process: starts it when it is gone, ends it when it is deaf, and gives up before that is a storm.

A thread with no journal and no event loop under it: what hangs the one process must not hang the other's judgement.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from becket.app.launch import end_holder, last_words, launch, reap
from becket.app.liveness import (
    LOOK_EVERY,
    KeeperAction,
    KeptProcess,
    ProcessObservation,
    Silence,
    SilenceLimits,
    judge,
    see,
)
from becket.app.locks import Writer
from becket.app.state import StateFolder
from becket.kernel.contract.crash import CrashPoint

log = logging.getLogger("becket.keeper")

RESTARTS = 5
"""So many restarts within `RESTART_WINDOW`; then a person must look (L28)."""
RESTART_WINDOW = 600.0
LONGEST_PAUSE = 60.0

counted = CrashPoint("keeper.counted", "the restart is counted; nothing is started yet")


class RestartTiming(StrEnum):
    now = "now"
    later = "later"
    never = "never"  # given up


@dataclass(frozen=True, slots=True)
class Restarts:
    """When it was started again, so that what always dies is left to a person. Times are of the clock that counts
    suspended time too, and mean nothing after a boot.
    """

    boot: str = ""
    at: tuple[float, ...] = ()
    given_up: bool = False
    why: str = ""

    def turn(self, now: float) -> RestartTiming:
        recent = self.recent(now)
        if self.given_up or len(recent) >= RESTARTS:
            return RestartTiming.never
        return RestartTiming.now if not recent or now - recent[-1] >= _pause(recent) else RestartTiming.later

    def unlimited_turn(self, now: float) -> RestartTiming:
        """For the watchdog: production recovery lives there, so it is tried for ever, but slowly."""
        recent = self.recent(now)
        return RestartTiming.now if not recent or now - recent[-1] >= _pause(recent) else RestartTiming.later

    def noted(self, now: float) -> Restarts:
        return replace(self, at=(*self.recent(now), now))

    def recent(self, now: float) -> tuple[float, ...]:
        return tuple(one for one in self.at if 0 <= now - one < RESTART_WINDOW)


def _pause(recent: tuple[float, ...]) -> float:
    return min(2.0 ** len(recent), LONGEST_PAUSE)


def read_restarts(path: Path) -> Restarts:
    """As they were written since the last boot; a file that cannot be read counts as none."""
    fresh = Restarts(boot=_boot())
    try:
        found = json.loads(path.read_text())
        known = Restarts(str(found["boot"]), tuple(map(float, found["at"])), bool(found["given_up"]), str(found["why"]))
    except (OSError, ValueError, KeyError, TypeError):
        return fresh
    return known if known.boot == fresh.boot else fresh


def write_restarts(path: Path, restarts: Restarts) -> None:
    """Whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(asdict(restarts)))
    new.replace(path)


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class KeeperTrouble:
    """What the keeper could not mend, for people."""

    stuck: int | None = None  # a process that does not even end by SIGKILL
    ended: str = ""  # what it last ended, and why


@dataclass
class Keeper:
    """Looks every few seconds, in a thread. `wanted` says whether the other is supposed to live."""

    state: StateFolder
    part: KeptProcess
    wanted: Callable[[], bool]
    gives_up: bool
    limits: SilenceLimits = field(default_factory=SilenceLimits)
    every: float = LOOK_EVERY
    trouble: KeeperTrouble = field(default_factory=KeeperTrouble)

    def __post_init__(self) -> None:
        self._silence = Silence(2 * self.every)
        self._writer = Writer(self.state.database)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"keeper of {self.part.verb}", daemon=True)
        self._looked_at = time.monotonic()
        self._unwritten: Restarts | None = None  # where the disk did not take it

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def alive(self, within: float) -> bool:
        """Ending a deaf process takes its time."""
        return self._thread.is_alive() and time.monotonic() - self._looked_at < within

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            try:
                self.look()
            except Exception:
                log.exception("keeper of %s", self.part.verb)
            self._looked_at = time.monotonic()

    def look(self) -> KeeperAction:
        reap()
        if self._unwritten is not None:
            self._note(self._unwritten)
        if not self.wanted():
            return KeeperAction.wait
        sight = see(self.part, self._writer)
        silent = self._silence.of(sight, time.monotonic())
        if sight.sign is not None and not silent:
            self.trouble = KeeperTrouble()
        do = judge(sight, silent, self.limits)
        if do is KeeperAction.end:
            self._end(sight, silent)
        elif do is KeeperAction.start:
            self._start()
        return do

    def _end(self, sight: ProcessObservation, silent: float) -> None:
        pid, lock = (sight.pid, self.part.lock) if sight.pid is not None else (sight.starting, self.part.start)
        what = "gave no sign of life" if sight.sign is not None else "did not come up"
        self.trouble.ended = f"pid {pid} {what} for {silent:.0f} s and was ended"
        log.error("%s: %s", self.part.name, self.trouble.ended)
        ended = end_holder(lock, pid)
        self.trouble.stuck = ended.pid if ended is not None and not ended.gone else None

    def _start(self) -> None:
        self.trouble.stuck = None
        restarts, now = self._unwritten or read_restarts(self.part.restarts), since_boot()
        turn = restarts.turn(now) if self.gives_up else restarts.unlimited_turn(now)
        if turn is RestartTiming.now:
            self._start_again(restarts, now)
        elif turn is RestartTiming.never and not restarts.given_up:
            self._note(replace(restarts, given_up=True, why=self._why()))
            log.error("%s: given up after %d restarts", self.part.name, RESTARTS)

    def _start_again(self, restarts: Restarts, now: float) -> None:
        """Counted before it is done: a kill in between costs one restart and starts no storm."""
        self._note(restarts.noted(now))
        counted()
        if (pid := launch(self.state, self.part)) is None:
            self._note(restarts)  # somebody else is starting it
        else:
            log.warning("%s is gone; started again as pid %d", self.part.name, pid)

    def _why(self) -> str:
        return " ".join(part for part in (self.trouble.ended, last_words(self.state, self.part.verb)) if part)

    def _note(self, restarts: Restarts) -> None:
        try:
            write_restarts(self.part.restarts, restarts)
            self._unwritten = None
        except OSError as error:
            self._unwritten = restarts
            log.error("%s: %s", self.part.restarts, error)


def forget_restarts(part: KeptProcess) -> None:
    """A person starts it: everything that was is forgiven."""
    part.restarts.unlink(missing_ok=True)
