"""One lock per key, held by this process: it cannot outlive its owner (L31)."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.5


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Wait for the lock. Polled: a thread that waits for a file lock cannot be cancelled, and would get it later."""
    wait = _FIRST_WAIT
    while (lock := _taken(path)) is None:
        await asyncio.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def held_if_free(path: Path) -> Iterator[bool]:
    lock = _taken(path)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def _taken(path: Path) -> int | None:
    """The locked file; None if somebody else has it, or removed it while we looked."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None
