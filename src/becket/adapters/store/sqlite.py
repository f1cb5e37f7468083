"""SQLite: one writer connection, WAL, every commit on disk, every write transaction taken at once.

Nothing here awaits: a transaction never spans a switch to another task, so one connection serves the process.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from becket.adapters.store import points
from becket.adapters.store.prepared import prepare
from becket.adapters.store.steady import Steady
from becket.adapters.store.tx import Clock, Params, Steadied, Tx
from becket.contract.errors import StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")

BUSY_SECONDS = 5.0


class SqliteTx(Tx):
    """Writes by prepared SQL on the driver's own connection; reads as any other."""

    __slots__ = ("_raw",)

    def __init__(self, conn: sa.Connection, clock: Clock, raw: sqlite3.Connection, steadied: Steadied) -> None:
        super().__init__(conn, clock, steadied)
        self._raw = raw

    def run(self, statement: sa.Executable, params: Params) -> int:
        if not params:
            return 0 if isinstance(params, list) else super().run(statement, params)
        first = params[0] if isinstance(params, list) else params
        prepared = prepare(statement, tuple(first), self.conn.dialect)
        return super().run(statement, params) if prepared is None else prepared.run(self._raw, params)

    def locked_row(self, statement: sa.Executable, **params: Any) -> dict[str, Any] | None:
        prepared = prepare(statement, tuple(params), self.conn.dialect)
        if prepared is None:
            return super().locked_row(statement, **params)
        return prepared.first(self._raw, params)


class SqliteDatabase:
    """One file, or memory if `path` is None."""

    def __init__(self, path: Path | None, clock: Clock, steady: Steady) -> None:
        self.steady = steady
        self._path = path
        self._clock = clock
        self._raw = _connect(path)
        engine = sa.create_engine("sqlite://", creator=lambda: self._raw, poolclass=sa.StaticPool)
        self._conn = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._lock = threading.RLock()
        self._version = self._data_version()

    @property
    def connection(self) -> sa.Connection:
        return self._conn

    async def read(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            try:
                return work(self._tx(), *args, **kwargs)
            except (sa.exc.OperationalError, sqlite3.OperationalError) as error:
                raise self._unavailable(error) from error

    async def write(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            try:
                self._raw.execute("BEGIN IMMEDIATE")
                try:
                    result = work(self._tx(), *args, **kwargs)
                    points.before_commit(work.__name__)
                    self._raw.execute("COMMIT")
                except BaseException:
                    self._raw.rollback()
                    raise
            except (sa.exc.OperationalError, sqlite3.OperationalError) as error:
                raise self._unavailable(error) from error
        points.after_commit(work.__name__)
        return result

    def _tx(self) -> SqliteTx:
        return SqliteTx(self._conn, self._clock, self._raw, self.steady.read)

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return unavailable(self._path, error)

    async def version_changed(self) -> bool:
        with self._lock:
            seen, self._version = self._version, self._data_version()
        return seen != self._version

    def _data_version(self) -> int:
        return int(self._raw.execute("PRAGMA data_version").fetchone()[0])

    async def close(self) -> None:
        self.dispose()

    def dispose(self) -> None:
        with self._lock:
            self._conn.close()
            self._conn.engine.dispose()
            self._raw.close()


def unavailable(path: Path | None, error: Exception) -> StoreUnavailable:
    said = getattr(error, "orig", None) or error
    return StoreUnavailable(
        f"the journal {path or 'in memory'} cannot be used: {said}; is the disk full, the file unreadable, or another "
        "process writing for long?"
    )


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        # The journal holds what agents and tests said: it is for its owner alone, and so are WAL and index beside it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        raw = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise unavailable(path, error) from error
    try:
        _use_wal(raw)
        raw.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raw.close()
        raise unavailable(path, error) from error
    return raw


def _use_wal(raw: sqlite3.Connection) -> None:
    """The busy timeout does not cover this switch when two processes open a new file at once."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)
