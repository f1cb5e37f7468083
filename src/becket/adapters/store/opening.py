"""How a journal is opened. Whoever comes first makes it; whoever comes with newer code brings it up to date."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import sqlalchemy as sa

from becket.adapters.store.journal import Journal
from becket.adapters.store.schema import bring_up_to_date
from becket.adapters.store.sqlite import SqliteDatabase, unavailable
from becket.adapters.store.steady import Steady
from becket.adapters.store.tables import VERSION
from becket.adapters.store.tx import Clock
from becket.contract.store import Store


def open_sqlite(path: str | Path, clock: Clock | None = None, steady: Steady | None = None) -> Store:
    """The journal in one file; made if it is not there. `clock` replaces the computer's, for work too."""
    return _opened(Path(path), clock or time.time, steady or _steady(clock))


def open_memory(clock: Clock | None = None, steady: Steady | None = None) -> Store:
    """A journal that is gone with the process: for tests and for trying out."""
    return _opened(None, clock or time.time, steady or _steady(clock))


def open_postgres(url: str, clock: Clock | None = None, steady: Steady | None = None) -> Store:
    """The journal on Postgres, which may have many workers. Without a `clock`, time is the database's."""
    from becket.adapters.store.postgres import PostgresDatabase, prepare

    prepare(url)
    return Journal(PostgresDatabase(url, clock, steady or _steady(clock)))


def _steady(clock: Clock | None) -> Steady:
    return Steady() if clock is None else Steady(clock, clock)


def _opened(path: Path | None, clock: Clock, steady: Steady) -> Store:
    database = SqliteDatabase(path, clock, steady)
    try:
        _prepare(database.connection)
    except (sa.exc.DatabaseError, sqlite3.Error) as error:
        database.dispose()
        raise unavailable(path, error) from error
    except BaseException:
        database.dispose()
        raise
    return Journal(database)


def _prepare(conn: sa.Connection) -> None:
    if _is_current(conn):
        return
    conn.exec_driver_sql("BEGIN EXCLUSIVE")
    try:
        bring_up_to_date(conn)
        conn.exec_driver_sql("COMMIT")
    except BaseException:
        conn.exec_driver_sql("ROLLBACK")
        raise


def _is_current(conn: sa.Connection) -> bool:
    try:
        return conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == VERSION
    except sa.exc.OperationalError:
        return False
