"""Opens the watchdog's own store. A damaged one is moved aside, reported and replaced, so that watching goes on."""

from __future__ import annotations

import logging
from pathlib import Path

from becket.kernel.contract.errors import StoreDamaged
from becket.kernel.contract.store import Store
from becket.kernel.store import open_sqlite
from becket.kernel.store.backups import free_name, put_aside

log = logging.getLogger("becket.watchdog")

ALARMS = "record:alarms"


async def open_own(path: Path) -> Store:
    """The store of alarms. What is still wrong is told again."""
    try:
        own = open_sqlite(path)
        if wrong := await own.faults():
            await own.close()
            raise StoreDamaged(wrong[0])
        return own
    except StoreDamaged as error:
        said = put_damaged_aside(path, error)
    own = open_sqlite(path)
    await own.raise_alert(ALARMS, f"The watchdog's record of alarms was damaged, and is begun anew: {said}", {})
    return own


def put_damaged_aside(path: Path, error: StoreDamaged) -> str:
    aside = free_name(path.parent, f"damaged-{path.stem}")
    put_aside(path, aside)
    log.error("%s; kept in %s", error, aside)
    return f"{error} (kept in {aside})"
