"""The watchdog's own stores. A damaged one is kept aside, told of and made anew: never a reason to stop watching."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from becket.app.state import State
from becket.kernel.contract.errors import StoreDamaged
from becket.kernel.contract.store import Store
from becket.kernel.store import open_sqlite
from becket.kernel.store.backups import free_name, put_aside
from becket.parts.services.book import SqliteBook
from becket.parts.services.ports import Incident

log = logging.getLogger("becket.watchdog")

ALARMS = "record:alarms"
SERVICES = "record:services"


async def open_own(path: Path) -> Store:
    """The store of alarms. What is still wrong is told again."""
    try:
        own = open_sqlite(path)
        if wrong := await own.faults():
            await own.close()
            raise StoreDamaged(wrong[0])
        return own
    except StoreDamaged as error:
        said = _aside(path, error)
    own = open_sqlite(path)
    await own.raise_alert(ALARMS, f"The watchdog's record of alarms was damaged, and is begun anew: {said}", {})
    return own


def open_book(state: State) -> SqliteBook:
    """The record of services. Those that run go on running, and nothing is started for it."""
    path = state.services_database
    fresh = not path.exists() or not path.stat().st_size
    try:
        book = SqliteBook(path)
        _read_through(book)
    except StoreDamaged as error:
        said = _aside(path, error)
        book = SqliteBook(path)
    else:
        said = f"{path} was gone or empty" if fresh and _released(state) else ""
    if said:
        text = (
            f"The watchdog's record of services is begun anew: {said}. What runs was left alone, and nobody looks "
            "after it; see `becket service list`, end the old processes and start the services again."
        )
        book.put(Incident(key=SERVICES, service="", text=text, at=time.time()))
    return book


def _read_through(book: SqliteBook) -> None:
    """A row that cannot be read is damage, and better known now."""
    for service in book.services():
        book.releases(service.name)
    book.open_requests()
    book.untold()


def _released(state: State) -> bool:
    return state.releases.is_dir() and any(state.releases.iterdir())


def _aside(path: Path, error: StoreDamaged) -> str:
    aside = free_name(path.parent, f"damaged-{path.stem}")
    put_aside(path, aside)
    log.error("%s; kept in %s", error, aside)
    return f"{error} (kept in {aside})"
