"""How a journal is opened. Whoever comes first makes it; whoever comes with newer code brings it up to date."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import sqlalchemy as sa

from becket.kernel.contract.store import Store
from becket.kernel.contract.tables import Tables
from becket.kernel.store import brought as of_parts
from becket.kernel.store.backups import BACKUPS, KEEP, MIGRATION, make_backup
from becket.kernel.store.damage import damaged, is_damage
from becket.kernel.store.journal import Journal
from becket.kernel.store.schema import bring_up_to_date, version_of
from becket.kernel.store.sqlite import SqliteDatabase, unavailable
from becket.kernel.store.steady import SteadyClock
from becket.kernel.store.tables import VERSION
from becket.kernel.store.tx import Clock

_NONE: Mapping[str, Tables] = MappingProxyType({})


def open_sqlite(
    path: str | Path,
    clock: Clock | None = None,
    mark: Path | None = None,
    steady: SteadyClock | None = None,
    brought: Mapping[str, Tables] = _NONE,
) -> Store:
    """The journal in one file; made if it is not there, and by `mark` never was. `clock` replaces the computer's, for
    work too. `brought` are the tables of parts, by their names.

    Raises StoreDamaged for a file that is not the journal it should be; nothing is written over it.
    """
    return _opened(Path(path), clock or time.time, steady or _steady(clock), mark, brought)


def open_memory(
    clock: Clock | None = None, steady: SteadyClock | None = None, brought: Mapping[str, Tables] = _NONE
) -> Store:
    """A journal that is gone with the process: for tests and for trying out."""
    return _opened(None, clock or time.time, steady or _steady(clock), None, brought)


def open_postgres(
    url: str, clock: Clock | None = None, steady: SteadyClock | None = None, brought: Mapping[str, Tables] = _NONE
) -> Store:
    """The journal on Postgres, which may have many workers. Without a `clock`, time is the database's."""
    from becket.kernel.store.postgres import PostgresDatabase, prepare

    prepare(url, brought)
    return Journal(PostgresDatabase(url, clock, steady or _steady(clock)))


def _steady(clock: Clock | None) -> SteadyClock:
    return SteadyClock() if clock is None else SteadyClock(clock, clock)


def _opened(
    path: Path | None, clock: Clock, steady: SteadyClock, mark: Path | None, brought: Mapping[str, Tables]
) -> Store:
    database = SqliteDatabase(path, clock, steady, mark)
    try:
        database.recognise()
        _prepare(database.connection, path if mark is not None else None, brought)
        database.adopt()
    except (sa.exc.DatabaseError, sqlite3.Error, ValueError) as error:
        database.dispose()
        said = str(getattr(error, "orig", None) or error)
        raise (damaged(path, said) if is_damage(error) else unavailable(path, error)) from error
    except BaseException:
        database.dispose()
        raise
    return Journal(database)


def _prepare(conn: sa.Connection, kept: Path | None, brought: Mapping[str, Tables]) -> None:
    """`kept` is a journal of which there is to be a backup before its tables are changed."""
    if _is_current(conn) and of_parts.are_current(conn, brought):
        return
    if kept is not None and version_of(conn) is not None:
        make_backup(kept, kept.parent / BACKUPS, MIGRATION, KEEP)
    conn.exec_driver_sql("BEGIN EXCLUSIVE")
    try:
        bring_up_to_date(conn)
        of_parts.bring_up_to_date(conn, brought)
        conn.exec_driver_sql("COMMIT")
    except BaseException:
        conn.exec_driver_sql("ROLLBACK")
        raise


def _is_current(conn: sa.Connection) -> bool:
    try:
        return conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == VERSION
    except sa.exc.OperationalError:
        return False
