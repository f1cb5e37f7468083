"""The faults of the soak. Each begins, lasts as long as it says, and is over when its function returns.

They reach nothing but the soak's own processes, found by its own locks, and its own small file system.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from town import PROGRAM, Deed, Town, person

DAY = 86400.0


def daemon_killed(town: Town) -> None:
    _kill(town.daemon)


def watchdog_killed(town: Town) -> None:
    _kill(town.watchdog)


def both_killed(town: Town) -> None:
    _kill(town.daemon)
    _kill(town.watchdog)


def child_killed(town: Town) -> None:
    """A gate, an agent or a git of the daemon."""
    if (daemon := town.daemon) is not None and (below := [*_below(daemon)]):
        _kill(town.chance.choice(below))


def daemon_stopped(town: Town) -> None:
    _stopped(town, town.daemon, town.chance.choice((2.0, 8.0, 35.0, 70.0)))


def watchdog_stopped(town: Town) -> None:
    _stopped(town, town.watchdog, town.chance.choice((2.0, 8.0, 35.0, 70.0)))


def journal_locked(town: Town) -> None:
    """Somebody else's transaction."""
    kind = town.chance.choice(("IMMEDIATE", "IMMEDIATE", "EXCLUSIVE"))
    journal = town.journal()
    try:
        journal.execute(f"BEGIN {kind}")
        _live_on(town, town.chance.choice((1.0, 6.0, 12.0, 40.0)))
        journal.execute("ROLLBACK")
    except sqlite3.OperationalError:
        town.did("fault: journal_locked could not")
    finally:
        journal.close()


def disk_full(town: Town) -> None:
    ballast = town.folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 65536)
        with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 512)
        _live_on(town, town.chance.choice((2.0, 8.0, 25.0)))
    finally:
        ballast.unlink()


def garbage_collected(town: Town) -> None:
    for _ in range(town.chance.choice((1, 3, 8))):
        town.git("gc", "--prune=now", "--quiet", check=False)
        _live_on(town, 0.5)


def clock_jumped(town: Town) -> None:
    """There it stays: a clock that was put right is the rule, not the exception."""
    if not town.preload:
        return
    town.offset += town.chance.choice((25 * 3600.0, -25 * 3600.0, 30 * DAY, 90.0, -90.0))
    town.clock_file.write_text(f"{town.offset:+.0f}s")
    _live_on(town, 3.0)


def machine_suspended(town: Town) -> None:
    """Everything of ours stands still, and the wall clock goes on."""
    pids = [pid for pid in (town.watchdog, town.daemon) if pid is not None]
    with _standing_still([*pids, *(child for pid in pids for child in _below(pid))]):
        time.sleep(town.chance.choice((1.0, 4.0)))
        if town.preload:
            town.offset += town.chance.choice((60.0, 3600.0, DAY))
            town.clock_file.write_text(f"{town.offset:+.0f}s")


def taken_down_and_up(town: Town) -> None:
    code, said = town.becket("down", seconds=180.0)
    if code == 124:
        raise AssertionError(said)
    town.becket("up", "--detach")


def somebody_else_is_the_engine(town: Town) -> None:
    """A person's `becket run` drives its run for a while, and is killed."""
    town.becket("down", seconds=180.0)
    run = subprocess.Popen(
        [*PROGRAM, "run", "heal", "--follow"], cwd=town.root, env=town.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    _live_on(town, town.chance.uniform(0.5, 6.0))
    run.send_signal(town.chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
    run.wait(timeout=120)
    town.becket("up", "--detach")


def configuration_broken(town: Town) -> None:
    good = town.paths.config.read_bytes()
    broken = town.chance.choice((b"gates: [", b"", b"\xff\xfe", good.replace(b"autonomy", b"autonomie")))
    try:
        town.paths.config.write_bytes(broken)
        time.sleep(4.0)
    finally:
        town.paths.config.write_bytes(good)


def tree_damaged(town: Town) -> None:
    tree = town.root / ".worktrees" / "base"
    git = tree / ".git"
    with contextlib.suppress(OSError):
        if town.chance.random() < 0.5:
            shutil.rmtree(tree)
        elif git.is_dir():
            shutil.rmtree(git)
        else:
            git.unlink()


FAULTS: tuple[Deed, ...] = (
    daemon_killed, watchdog_killed, both_killed, child_killed, child_killed, daemon_stopped, watchdog_stopped,
    journal_locked, journal_locked, disk_full, disk_full, garbage_collected, garbage_collected, clock_jumped,
    machine_suspended, taken_down_and_up, somebody_else_is_the_engine, configuration_broken, tree_damaged,
)  # fmt: skip


def _kill(pid: int | None) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _stopped(town: Town, pid: int | None, seconds: float) -> None:
    if pid is not None:
        with _standing_still([pid]):
            _live_on(town, seconds)


@contextlib.contextmanager
def _standing_still(pids: list[int]) -> Iterator[None]:
    """By descriptor: whoever is replaced meanwhile leaves its number to a stranger."""
    opened = []
    for pid in pids:
        with contextlib.suppress(OSError):
            opened.append(os.pidfd_open(pid))
    try:
        _signal(opened, signal.SIGSTOP)
        yield
    finally:
        _signal(opened, signal.SIGCONT)
        for one in opened:
            os.close(one)


def _signal(opened: list[int], number: signal.Signals) -> None:
    for one in opened:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(one, number)


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _below(child)


def _live_on(town: Town, seconds: float) -> None:
    """The fault lasts; people do what they do."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if town.chance.random() < 0.3:
            person(town)
        time.sleep(0.3)
