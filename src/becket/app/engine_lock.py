"""What an engine relies on while it works: an intact journal, and the lock that makes it the only engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from becket.app.compose import App
from becket.app.state import Lock
from becket.kernel.contract.errors import BecketError, StoreUnavailable
from becket.kernel.store.damage import companions, damaged

LOOK_EVERY = 1.0
INTEGRITY_EVERY = 60.0
"""A journal that was written to is checked at most this often: 0.1 s for 100 MB, in a thread."""

_LOCK_GONE = "the lock of this engine was removed or replaced, so that another one could start beside it"


async def check_journal(app: App) -> None:
    """Before an engine begins. Raises StoreDamaged."""
    if wrong := await app.store.faults():
        raise damaged(app.state.database, wrong[0])


async def watch_engine_lock(app: App, lock: Lock, fail: Callable[[BecketError], None]) -> None:
    """Looks as long as the engine works. Every transaction looks at the journal's files for itself."""
    looked = time.time()
    while True:
        await asyncio.sleep(LOOK_EVERY)
        wrong = "" if lock.stands() else _LOCK_GONE
        if not wrong and _changed(app.state.database) > looked and time.time() - looked > INTEGRITY_EVERY:
            looked = time.time()
            with suppress(StoreUnavailable):  # a full disk is no damage, and every write tells of it
                wrong = next(iter(await app.store.faults()), "")
        if wrong:
            return fail(damaged(app.state.database, wrong))


def _changed(path: Path) -> float:
    """Its last commits may be in the file beside it."""
    try:
        return max(one.stat().st_mtime for one in (path, companions(path)[0]))
    except OSError:
        return 0.0
