"""One transaction: the connection, its time, and the little that the two databases do differently."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import sqlalchemy as sa

Clock: TypeAlias = Callable[[], float]
Steadied: TypeAlias = Callable[[float], float]
Row: TypeAlias = sa.Row[*tuple[Any, ...]]
Params: TypeAlias = Mapping[str, Any] | list[dict[str, Any]]

_DATABASE_NOW = sa.text("SELECT extract(epoch FROM clock_timestamp())::double precision")


class Tx:
    """What every function of the store works on. Made by a backend, used for one transaction."""

    __slots__ = ("_clock", "_now", "_steadied", "conn", "dialect")

    def __init__(self, conn: sa.Connection, clock: Clock | None, steadied: Steadied | None = None) -> None:
        self.conn = conn
        self.dialect = conn.dialect.name
        self._clock = clock
        self._steadied = steadied
        self._now: float | None = None

    @property
    def now(self) -> float:
        """Read once per transaction, and after the first locks: a time from before a wait for a lock is stale."""
        if self._now is None:
            raw = self._clock() if self._clock else float(self.conn.execute(_DATABASE_NOW).scalar_one())
            self._now = self._steadied(raw) if self._steadied else raw
        return self._now

    @property
    def many_writers(self) -> bool:
        """Whether other transactions write at the same time as this one."""
        return self.dialect == "postgresql"

    def one(self, statement: sa.Executable, **params: Any) -> Row | None:
        return self.conn.execute(statement, params).first()

    def all(self, statement: sa.Executable, **params: Any) -> Sequence[Row]:
        return self.conn.execute(statement, params).all()

    def ids(self, statement: sa.Executable, **params: Any) -> list[str]:
        """The first column of every row."""
        return list(self.conn.execute(statement, params).scalars())

    def run(self, statement: sa.Executable, params: Params) -> int:
        """Rows matched. A list of parameters is one statement for all of them, and nothing if it is empty."""
        if isinstance(params, list) and not params:
            return 0
        return self.conn.execute(statement, params).rowcount

    def locked_row(self, statement: sa.Executable, **params: Any) -> dict[str, Any] | None:
        row = self.one(statement, **params)
        return None if row is None else dict(row._mapping)

    def add_new(self, table: sa.Table, rows: Params) -> int:
        """Insert what is not there yet; existing rows stay as they are."""
        return self.run(_insert_new(table, self.dialect), rows)

    def mutex(self, names: Iterable[str]) -> None:
        """Serialise with every other transaction that names the same things. SQLite has one writer anyway."""
        if self.many_writers and (wanted := sorted(set(names))):
            locks = (sa.func.pg_advisory_xact_lock(_lock_number(name)) for name in wanted)
            self.conn.execute(sa.select(*locks))


def _lock_number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


@cache
def _insert_new(table: sa.Table, dialect: str) -> sa.Executable:
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table).on_conflict_do_nothing()
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table).on_conflict_do_nothing()
