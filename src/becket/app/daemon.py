"""`becket up`: one daemon and one watchdog, which keep each other. Stop means stopped, verified (L30)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from becket.app.compose import App
from becket.app.heartbeat import LockHeartbeat
from becket.app.keeper import RESTARTS, Keeper, forget_restarts, read_restarts, since_boot
from becket.app.launch import EndedProcess, end_holder, last_words, launch, log_to
from becket.app.liveness import (
    DEAF_AFTER,
    LOOK_EVERY,
    START_WITHIN,
    TELL_AFTER,
    KeptProcess,
    daemon_of,
    deaf_daemon,
    held,
    watchdog_of,
    watched,
)
from becket.app.locks import UNNAMED, Writer, start_is_over, started_by_becket
from becket.app.serve import serve
from becket.app.state import Lock, StateFolder, holder, silent_for
from becket.app.writing import disk_trouble
from becket.kernel.contract.errors import BecketError, StoreUnavailable, UsageError
from becket.kernel.contract.tables import TableStore

log = logging.getLogger("becket.daemon")

UNKEPT = "watchdog_restarts"


@dataclass(frozen=True, slots=True)
class DaemonStart:
    pid: int
    watchdog_pid: int | None
    already: bool
    replaced: tuple[int, ...] = ()  # what was deaf and was ended for it


@dataclass(frozen=True, slots=True)
class DaemonStop:
    """What was stopped; None where nothing ran."""

    daemon: EndedProcess | None
    watchdog: EndedProcess | None


def run_foreground(state: StateFolder, ready: Callable[[], None] = lambda: None) -> int:
    """Be the daemon until SIGINT or SIGTERM; `ready` is called once it is the only one. Returns the exit code."""
    state.make()
    with Lock(state.daemon_lock) as lock:
        if not lock.acquire():
            raise UsageError(_runs_already(state))
        by_a_person = not started_by_becket()
        start_is_over()
        log_to(state, "daemon")
        if by_a_person:  # else whoever started it knows; and `becket down` may have come in between
            forget_restarts(daemon_of(state))
            state.wanted.touch()
        try:
            app = _opened(state)
            ready()
            asyncio.run(_daemon(app, lock))
        except BecketError as error:
            log.error("%s", error)
            raise
        except Exception:
            log.exception("the daemon ends")
            raise
        return 0


def _runs_already(state: StateFolder) -> str:
    daemon = held(state.daemon_lock)
    if daemon is not None and daemon.deaf:
        return f"{deaf_daemon(state, daemon)} `becket up --detach` sees to that."
    return f"a daemon runs already (pid {holder(state.daemon_lock)}); see `becket status`"


async def _daemon(app: App, lock: Lock) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, partial(_asked_to_stop, app.state, number, stop))
    log.info("daemon %d begins", os.getpid())
    pulse = LockHeartbeat(lock)
    keeper = Keeper(app.state, watchdog_of(app.state), app.state.wanted.exists, gives_up=False)
    keeper.start()
    beside = [asyncio.create_task(tell_of_watchdog(app)), asyncio.create_task(_keep_lock(app.state, lock, stop))]
    try:
        while not stop.is_set() and not await serve(app, "daemon", stop=stop, ready=pulse.begin):
            pulse.begin()
            await asyncio.sleep(0.2)  # another engine is about to end
    finally:
        keeper.stop()
        for task in beside:
            task.cancel()
        pulse.end()
        await app.store.close()
        log.info("daemon %d ends", os.getpid())


def _asked_to_stop(state: StateFolder, number: signal.Signals, stop: asyncio.Event) -> None:
    if number == signal.SIGINT:  # a person at the terminal: both are to end
        state.wanted.unlink(missing_ok=True)
    stop.set()


async def _keep_lock(state: StateFolder, lock: Lock, stop: asyncio.Event) -> None:
    """A lock whose file was removed or replaced keeps nobody out."""
    while lock.stands():
        await asyncio.sleep(LOOK_EVERY)
    log.error("%s was removed or replaced, so that another daemon could start; this one ends", state.daemon_lock)
    stop.set()


async def tell_of_watchdog(app: App, every: float = 30.0) -> None:
    """A watchdog that does not stay cannot tell of itself."""
    part = watchdog_of(app.state)
    told: bool | None = None  # perhaps by the daemon before this one
    while True:
        await asyncio.sleep(every)
        often = len(read_restarts(part.restarts).recent(since_boot())) >= RESTARTS
        try:
            if often and not told:
                said = last_words(app.state, part.verb)
                await app.store.raise_alert(UNKEPT, f"The watchdog does not stay; its log says: {said}", {})
            elif not often and told is not False:
                await app.store.close_alert(UNKEPT)
            told = often
        except BecketError as error:
            log.warning("%s: %s", UNKEPT, error)


def start_detached(state: StateFolder, say: Callable[[str], None] = lambda _: None) -> DaemonStart:
    """Start both in the background and see them alive. What is deaf is replaced, and `say` told so."""
    state.make()
    replaced = tuple(
        ended.pid for part in (watchdog_of(state), daemon_of(state)) if (ended := end_if_deaf(state, part, say))
    )
    if (pid := holder(state.daemon_lock)) is not None:
        forget_restarts(daemon_of(state))
        return DaemonStart(pid, _see_watchdog(state, bool(replaced)), already=True, replaced=replaced)
    if (trouble := disk_trouble(state.folder)) is not None:  # it would come up, and end at its first write
        raise StoreUnavailable(trouble.text)
    _opened(state)  # a wrong configuration is told here, not in a log nobody reads
    forget_restarts(daemon_of(state))
    state.wanted.touch()
    launch(state, daemon_of(state))
    pid = _see(daemon_of(state))
    if pid is None:
        state.wanted.unlink(missing_ok=True)
        raise BecketError(_did_not_start(state))
    forget_restarts(daemon_of(state))  # the watchdog may have seen it gone, and have counted this start as its own
    return DaemonStart(pid, _see_watchdog(state, wanted=True), already=False, replaced=replaced)


def _opened(state: StateFolder) -> App:
    """With what parts bring, which may fail; what a daemon would end at is told before it counts as up."""
    app = App.open(state)
    for tried in (lambda: app.redactor, lambda: app.registry, lambda: app.port(TableStore)):
        tried()
    return app


def _did_not_start(state: StateFolder) -> str:
    log_file, said = state.logs / "daemon.log", last_words(state, "up")
    if (pid := holder(state.daemon_start)) is not None:
        return f"the daemon (pid {pid}) is not up after {START_WITHIN:.0f} s; its last words are in {log_file}: {said}"
    return f"the daemon did not start: {said} (more in {log_file} and {state.logs / 'up.out'})"


def end_if_deaf(
    state: StateFolder, part: KeptProcess, say: Callable[[str], None] = lambda _: None
) -> EndedProcess | None:
    """By the same rule as the watchdog's; but one that is stopped for good need not be waited for."""
    pid, silent = holder(part.lock), silent_for(part.lock)
    if pid is None or silent is None or silent <= TELL_AFTER:
        return None
    silence = f"The {part.name} (pid {pid}) has given no sign of life for {silent:.0f} s"
    say(f"{silence}; it is replaced if it does not come back.")
    if not watched(part, Writer(state.database), DEAF_AFTER):
        return None
    ended = end_holder(part.lock, pid)
    if ended is not None and not ended.gone:
        raise BecketError(_does_not_end(part.name, pid))
    return ended


def _does_not_end(name: str, pid: int) -> str:
    if pid == UNNAMED:
        return f"a start of the {name} is under way, and it has not come up yet; type the same again in a moment"
    return (
        f"the {name} (pid {pid}) does not end, even by SIGKILL: it hangs in the kernel, most likely on a disk that "
        "does not answer. Mend that, or restart the machine; then `becket up --detach`"
    )


def _see_watchdog(state: StateFolder, wanted: bool) -> int | None:
    part = watchdog_of(state)
    if wanted and holder(part.lock) is None:
        launch(state, part)  # the daemon would do so too, in its own time
    return _see(part) if wanted else holder(part.lock)


def _see(part: KeptProcess) -> int | None:
    """Its pid when it holds its lock; None as soon as its start ended, or took too long."""
    end = time.monotonic() + START_WITHIN
    while (pid := holder(part.lock)) is None and time.monotonic() < end:
        if holder(part.start) is None and holder(part.lock) is None:
            return None
        time.sleep(0.05)
    return pid


def stop(state: StateFolder) -> DaemonStop:
    """Stop both, the watchdog first, and wait until they are gone; what was only being started, too."""
    state.wanted.unlink(missing_ok=True)
    watchdog = _end(state, watchdog_of(state))
    return DaemonStop(_end(state, daemon_of(state)), watchdog)


def _end(state: StateFolder, part: KeptProcess) -> EndedProcess | None:
    start = end_holder(part.start)
    ended = end_holder(part.lock) or start
    forget_restarts(part)
    if ended is not None and not ended.gone:
        raise BecketError(_does_not_end(part.name, ended.pid))
    return ended
