"""A heartbeat on a lock file, shown by the event loop of the process that holds it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from becket.app.state import Lock

SIGN_EVERY = 1.0


class LockHeartbeat:
    """Shown as long as the loop goes round, and `well` holds."""

    def __init__(self, lock: Lock, well: Callable[[], bool] = lambda: True) -> None:
        self._lock = lock
        self._well = well
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The first sign says that the start is over. Called again, it changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._beat(), name="pulse")

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _beat(self) -> None:
        while True:
            if self._well():
                self._lock.show_life()
            await asyncio.sleep(SIGN_EVERY)


STOPPED = "\nStopped: its run does not move until `fg` or `bg`; `kill %%` ends it.\n"


@contextlib.contextmanager
def told_when_stopped(role: str) -> Iterator[None]:
    """Ctrl-Z on a `becket run` that drives its run: it stops as asked, and says what stops with it."""
    in_main = threading.current_thread() is threading.main_thread()
    if role == "daemon" or not sys.stderr.isatty() or not in_main:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTSTP, _stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)


def _stop() -> None:
    sys.stderr.write(STOPPED)
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSTOP)
