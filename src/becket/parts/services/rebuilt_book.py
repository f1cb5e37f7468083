"""The record of services. A damaged one is kept aside, told of and made anew: never a reason to stop watching."""

from __future__ import annotations

import logging
import time

from becket.app.state import StateFolder
from becket.app.watchdog_store import put_damaged_aside
from becket.kernel.contract.errors import StoreDamaged
from becket.parts.services.book import SqliteServiceStore
from becket.parts.services.ports import Incident

log = logging.getLogger("becket.watchdog")

SERVICES = "record:services"


def open_book(state: StateFolder) -> SqliteServiceStore:
    """The record of services. Those that run go on running, and nothing is started for it."""
    path = state.services_database
    fresh = not path.exists() or not path.stat().st_size
    try:
        book = SqliteServiceStore(path)
        _read_through(book)
    except StoreDamaged as error:
        said = put_damaged_aside(path, error)
        book = SqliteServiceStore(path)
    else:
        said = f"{path} was gone or empty" if fresh and _released(state) else ""
    if said:
        text = (
            f"The watchdog's record of services is begun anew: {said}. What runs was left alone, and nobody looks "
            "after it; see `becket service list`, end the old processes and start the services again."
        )
        book.put(Incident(key=SERVICES, service="", text=text, at=time.time()))
    return book


def _read_through(book: SqliteServiceStore) -> None:
    """A row that cannot be read is damage, and better known now."""
    for service in book.services():
        book.releases(service.name)
    book.open_requests()
    book.untold()


def _released(state: StateFolder) -> bool:
    return state.releases.is_dir() and any(state.releases.iterdir())
