"""SQLite: one writer connection, WAL, every commit on disk, every write transaction taken at once.

A transaction never spans a switch to another task, so one connection serves the process. Only while another process
writes the others go on: a whole event loop must not stand still for that.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from becket.kernel.contract.errors import StoreBusy, StoreDamaged, StoreUnavailable
from becket.kernel.store import points
from becket.kernel.store.damage import (
    OpenedFiles,
    damaged,
    faults,
    is_damage,
    look_at_tables,
    look_before_opening,
    own_mark,
)
from becket.kernel.store.mark import UNREADABLE, JournalMark, objection, read_mark, write_mark
from becket.kernel.store.prepared import prepare
from becket.kernel.store.steady import SteadyClock
from becket.kernel.store.tx import Clock, Params, Steadied, Tx

P = ParamSpec("P")
T = TypeVar("T")

BUSY_SECONDS = 5.0
BUSY_NAP = 0.01
"""Seconds that a thread waits for another writer before it lets the rest of the process go on."""
_UNDONE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)
"""After these a transaction is as if it had never been."""

_NAP, _WAIT = (f"PRAGMA busy_timeout = {int(1000 * seconds)}" for seconds in (BUSY_NAP, BUSY_SECONDS))

MARKED = frozenset({"start_run", "fire", "intend", "decide_approval", "set_control"})
"""What must not be forgotten by going back to an older copy: each counts in the journal and in the mark beside it."""


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
    """One file, or memory if `path` is None. With a `mark`, an older copy and a missing file are told from a new one.

    Before every transaction it is asked whether the files are still those that were opened. Once they are not, nothing
    is read or written any more.
    """

    def __init__(self, path: Path | None, clock: Clock, steady: SteadyClock, mark: Path | None = None) -> None:
        self.steady = steady
        self._path = path
        self._mark = mark
        self._clock = clock
        self._raw = _connect(path, mark)
        engine = sa.create_engine("sqlite://", creator=lambda: self._raw, poolclass=sa.StaticPool)
        self._conn = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._lock = threading.RLock()
        self._version = self._data_version()
        self._files = OpenedFiles(path) if path is not None else None
        self._count = 0
        self._stood = self._version
        self._damage: StoreDamaged | None = None

    @property
    def connection(self) -> sa.Connection:
        return self._conn

    def recognise(self) -> None:
        """Before anything is written: raises StoreDamaged if the journal is not the one that the mark tells of."""
        if self._path is None or self._mark is None:
            return
        kept = read_mark(self._mark)  # first: it is never ahead of the journal, which others may be writing
        found = own_mark(self._raw) if look_at_tables(self._raw, self._path) else None
        if said := objection(kept, found):
            raise damaged(self._path, said)

    def adopt(self) -> None:
        """Once it has its tables: a journal without a name gets one, and the mark says so."""
        if self._path is None or self._mark is None:
            return
        found = own_mark(self._raw)
        if not found.journal:
            found = self._named()
        if read_mark(self._mark) in (None, UNREADABLE):
            write_mark(self._mark, found)
        self._count = found.count

    def _named(self) -> JournalMark:
        self._raw.execute("BEGIN IMMEDIATE")
        if not own_mark(self._raw).journal:  # else another process was first
            self._raw.execute(f"PRAGMA application_id = {secrets.randbelow(2**31 - 1) + 1}")
        self._raw.execute("COMMIT")
        return own_mark(self._raw)

    async def read(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock, self._advised():
            self._stand()
            return work(self._tx(), *args, **kwargs)

    async def write(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        until = time.monotonic() + BUSY_SECONDS
        while True:
            with self._lock, self._advised():
                self._stand()
                if self._begun(last=time.monotonic() >= until):
                    result = self._committed(work, *args, **kwargs)
                    break
            await asyncio.sleep(BUSY_NAP)
        points.after_commit(work.__name__)
        return result

    def _begun(self, *, last: bool) -> bool:
        self._raw.execute(_NAP)
        try:
            self._raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if last or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        finally:
            self._raw.execute(_WAIT)
        return True

    def _committed(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        name = work.__name__
        try:
            self._stand_alone()
            result = work(self._tx(), *args, **kwargs)
            marked = self._counted() if name in MARKED and self._mark is not None else None
            points.before_commit(name)
            self._raw.execute("COMMIT")
        except BaseException:
            self._raw.rollback()
            raise
        if self._files is not None:
            self._files.committed()
        if marked is not None and self._mark is not None:
            self._count = marked.count
            write_mark(self._mark, marked)
        return result

    def _tx(self) -> SqliteTx:
        return SqliteTx(self._conn, self._clock, self._raw, self.steady.read)

    def _counted(self) -> JournalMark:
        last = own_mark(self._raw)
        self._raw.execute(f"PRAGMA user_version = {last.count + 1}")
        return JournalMark(last.journal, last.count + 1)

    def _stand(self) -> None:
        """The ground under a transaction: the files that were opened, at the paths where everybody looks for them."""
        if self._damage is None and self._files is not None:
            self._distrust(self._files.trouble(self._count))
        if self._damage is not None:
            raise self._damage

    def _stand_alone(self) -> None:
        """In a write transaction: whatever others committed is known to SQLite now, and nobody writes but us."""
        if self._files is None:
            return
        seen, self._stood = self._stood, self._data_version()
        self._distrust(self._files.overwritten(self._count, by_commit=seen != self._stood))
        if self._damage is not None:
            raise self._damage

    def _distrust(self, said: str) -> None:
        if said:
            self._damage = damaged(self._path, said)

    @contextmanager
    def _advised(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DatabaseError, sqlite3.DatabaseError) as error:
            if is_damage(error):
                self._damage = damaged(self._path, str(getattr(error, "orig", None) or error))
                raise self._damage from error
            if isinstance(error, sa.exc.OperationalError | sqlite3.OperationalError):
                raise unavailable(self._path, error) from error
            raise
        except ValueError as error:
            raise damaged(self._path, f"a row cannot be read ({' '.join(str(error).split())[:200]})") from error

    async def faults(self, whole: bool) -> tuple[str, ...]:
        """Raises StoreUnavailable where it cannot be told, as on a full disk."""
        if self._path is None:
            return ()
        with self._advised():
            return await asyncio.to_thread(faults, self._path, whole=whole)

    async def version_changed(self) -> bool:
        with self._lock, self._advised():
            self._stand()
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
    kind = StoreBusy if getattr(said, "sqlite_errorcode", 0) & 0xFF in _UNDONE else StoreUnavailable
    return kind(
        f"the journal {path or 'in memory'} cannot be used: {said}; is the disk full, the file unreadable, or another "
        "process writing for long?"
    )


def _connect(path: Path | None, mark: Path | None) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    look_before_opening(path, mark)
    try:
        _make_private(path)
        raw = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise unavailable(path, error) from error
    try:
        look_at_tables(raw, path)
        _use_wal(raw)
        raw.execute("PRAGMA synchronous = FULL")
    except StoreDamaged:
        raw.close()
        raise
    except (sqlite3.Error, ValueError) as error:
        raw.close()
        raise (damaged(path, str(error)) if is_damage(error) else unavailable(path, error)) from error
    return raw


def _make_private(path: Path) -> None:
    """The journal holds what agents and tests said: it is for its owner alone, and so are WAL and index beside it.

    One that is there is not opened here: closing it again would take SQLite's locks from this whole process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


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
