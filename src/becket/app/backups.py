"""The daemon's daily backup of the journal, made in a thread so that no run waits for it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time

from becket.app.compose import App
from becket.kernel.contract.errors import StoreDamaged, StoreUnavailable
from becket.kernel.store.backups import backups, make_backup

log = logging.getLogger("becket.backups")

EVERY = 86400.0


async def keep_backup(app: App) -> None:
    """A chore. Postgres has its own ways. A journal that is found damaged is for the next transaction to tell."""
    if app.config.database or not app.state.database.exists():
        return
    last = next((one.at for one in backups(app.state.backups)), None)
    if last is not None and 0 <= time.time() - last < EVERY:
        return
    keep = app.config.retention.backups
    try:
        made = await asyncio.to_thread(make_backup, app.state.database, app.state.backups, "daily", keep)
        log.info("backup %s, %d bytes", made.name, made.size)
    except StoreDamaged:
        raise
    except (StoreUnavailable, OSError, sqlite3.Error) as error:
        log.error("no backup of the journal: %s", error)
