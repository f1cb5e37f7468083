"""`becket up`: one daemon and one watchdog, which start each other again. Stop means stopped, verified (L30)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path

from becket.app.compose import App
from becket.app.serve import serve
from becket.app.state import Lock, State, holder
from becket.contract.errors import BecketError, UsageError

log = logging.getLogger("becket.daemon")

LOOK_EVERY = 2.0
START_WITHIN = 15.0
STOP_WITHIN = 20.0


@dataclass(frozen=True, slots=True)
class Started:
    pid: int
    watchdog_pid: int | None
    already: bool


@dataclass(frozen=True, slots=True)
class Stopped:
    """The process ids that were stopped; None where nothing ran."""

    daemon: int | None
    watchdog: int | None


def run_foreground(state: State) -> int:
    """Be the daemon until SIGINT or SIGTERM. Returns the exit code."""
    state.make()
    with Lock(state.daemon_lock) as lock:
        if not lock.acquire():
            raise UsageError(f"a daemon runs already (pid {holder(state.daemon_lock)}); see `becket status`")
        log_to(state, "daemon")
        state.wanted.touch()
        try:
            asyncio.run(_daemon(App.open(state), lock))
        except BecketError as error:
            log.error("%s", error)
            raise
        return 0


async def _daemon(app: App, lock: Lock) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, partial(_asked_to_stop, app.state, number, stop))
    log.info("daemon %d begins", os.getpid())
    keeper = asyncio.create_task(_keep_watchdog(app.state, lock, stop))
    try:
        while not stop.is_set() and not await serve(app, "daemon", stop=stop):
            await asyncio.sleep(0.2)  # a `becket run` of another process is the engine for the moment
    finally:
        keeper.cancel()
        await app.store.close()
        log.info("daemon %d ends", os.getpid())


def _asked_to_stop(state: State, number: signal.Signals, stop: asyncio.Event) -> None:
    if number == signal.SIGINT:  # a person at the terminal: both are to end
        state.wanted.unlink(missing_ok=True)
    stop.set()


async def _keep_watchdog(state: State, lock: Lock, stop: asyncio.Event) -> None:
    """The watchdog restarts the daemon; the daemon restarts the watchdog."""
    while not stop.is_set():
        if not lock.stands():
            log.error(
                "%s was removed or replaced, so that another daemon could start; this one ends", state.daemon_lock
            )
            stop.set()
            return
        if state.wanted.exists() and holder(state.watchdog_lock) is None:
            spawn(state, "watchdog")
            await asyncio.sleep(LOOK_EVERY)
        await asyncio.sleep(LOOK_EVERY)


def start_detached(state: State) -> Started:
    """Start both in the background and see them alive."""
    state.make()
    if (pid := holder(state.daemon_lock)) is not None:
        return Started(pid, holder(state.watchdog_lock), already=True)
    App.open(state)  # a wrong configuration is told here, not in a log nobody reads
    state.wanted.touch()
    child = spawn(state, "up")
    pid = _within(START_WITHIN, lambda: holder(state.daemon_lock))
    if pid is None:
        state.wanted.unlink(missing_ok=True)
        raise BecketError(f"the daemon (pid {child}) did not start; its last words are in {state.logs / 'daemon.log'}")
    return Started(pid, _within(START_WITHIN, lambda: holder(state.watchdog_lock)), already=False)


def stop(state: State) -> Stopped:
    """Stop both, the watchdog first, and wait until they are gone."""
    state.wanted.unlink(missing_ok=True)
    watchdog = _end(state.watchdog_lock)
    return Stopped(_end(state.daemon_lock), watchdog)


def _end(lock: Path) -> int | None:
    pid = holder(lock)
    if pid is None:
        return None
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return pid
    try:
        if holder(lock) == pid:  # else it ended meanwhile, and its number may be another's
            _stop(process)
    finally:
        os.close(process)
    return pid


def _stop(process: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, number)
        if _ended(process):
            return


def _ended(process: int) -> bool:
    """Is the process itself gone, and not only its lock?"""
    return bool(select.select([process], [], [], STOP_WITHIN)[0])


def spawn(state: State, verb: str) -> int:
    """Start a verb of ours in a session of its own, its words in a log."""
    state.logs.mkdir(exist_ok=True)
    with (state.logs / f"{verb}.out").open("ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "becket.cli", "-C", str(state.root), verb],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    # Its parent may live long: reap it when it ends, whoever looks first.
    _spawned.append(child)
    _spawned[:] = [one for one in _spawned if one.poll() is None]
    return child.pid


_spawned: list[subprocess.Popen[bytes]] = []


def log_to(state: State, name: str) -> None:
    state.logs.mkdir(exist_ok=True)
    handler = RotatingFileHandler(state.logs / f"{name}.log", maxBytes=5_000_000, backupCount=3)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("becket")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _within(seconds: float, look):  # type: ignore[no-untyped-def]
    """The first truthy answer within the time, or the last answer."""
    end = time.monotonic() + seconds
    while not (answer := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return answer
