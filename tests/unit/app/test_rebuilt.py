"""The watchdog's own stores when they are damaged: told, kept aside, begun anew."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from becket.app.state import StateFolder
from becket.app.watchdog_store import ALARMS, open_own
from becket.parts.services.book import SqliteServiceStore
from becket.parts.services.ports import Service
from becket.parts.services.rebuilt_book import SERVICES, open_book


def broken_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE services SET body = '{'")
        raw.commit()


def no_database(path: Path) -> None:
    path.write_bytes(b"no database" * 500)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(root=tmp_path, common=tmp_path).make()


@pytest.mark.parametrize("deed", [no_database, cut, to_folder])
def test_damaged_alarms_are_kept_aside_and_begun_anew(state: StateFolder, deed: Callable[[Path], None]) -> None:
    async def alerts() -> list[str]:
        own = await open_own(state.watchdog_database)
        told = [alert.key for alert in await own.alerts()]
        await own.close()
        return told

    assert asyncio.run(alerts()) == []
    deed(state.watchdog_database)
    assert asyncio.run(alerts()) == [ALARMS]
    assert asyncio.run(alerts()) == [ALARMS]
    assert len(list(state.folder.glob("damaged-watchdog-*/watchdog.db"))) == 1


@pytest.mark.parametrize("deed", [no_database, cut, to_folder, broken_row])
def test_a_damaged_record_of_services_starts_and_stops_nothing(
    state: StateFolder, deed: Callable[[Path], None]
) -> None:
    with closing(SqliteServiceStore(state.services_database)) as book:
        book.put(Service(name="web"))
    deed(state.services_database)
    for _ in range(2):
        with closing(open_book(state)) as book:
            assert [incident.key for _, incident in book.untold()] == [SERVICES]
            assert book.services() == ()
            assert book.open_requests() == ()
    assert len(list(state.folder.glob("damaged-services-*/services.db"))) == 1


def test_an_emptied_record_of_services_is_told_where_there_were_releases(state: StateFolder) -> None:
    open_book(state).close()
    state.releases.mkdir()
    (state.releases / "web").mkdir()
    os.truncate(state.services_database, 0)
    with closing(open_book(state)) as book:
        ((_, incident),) = book.untold()
    assert "gone or empty" in incident.text


def test_a_first_record_of_services_is_silent(state: StateFolder) -> None:
    with closing(open_book(state)) as book:
        assert book.untold() == []
