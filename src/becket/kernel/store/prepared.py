"""A statement turned into SQL once. Executing one through SQLAlchemy costs 40 us; a recorded step has six of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

Process = Callable[[Any], Any]


class Prepared:
    """SQL for SQLite, with its parameters in order."""

    __slots__ = ("_columns", "_places", "sql")

    def __init__(
        self, sql: str, places: Sequence[tuple[str, Any, Process | None]], columns: Sequence[tuple[str, Process | None]]
    ) -> None:
        self.sql = sql
        self._places = places
        self._columns = columns

    def first(self, raw: sqlite3.Connection, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The first row by column name."""
        row = raw.execute(self.sql, self._values(params)).fetchone()
        if row is None:
            return None
        columns = zip(self._columns, row, strict=True)
        return {name: process(value) if process is not None else value for (name, process), value in columns}

    def _values(self, params: Mapping[str, Any]) -> list[Any]:
        given = ((params.get(name, default), process) for name, default, process in self._places)
        return [process(value) if process is not None else value for value, process in given]

    def run(self, raw: sqlite3.Connection, params: Mapping[str, Any] | list[dict[str, Any]]) -> int:
        """Rows matched. What the database refuses looks as SQLAlchemy would have it."""
        try:
            if isinstance(params, list) and len(params) > 1:
                return raw.executemany(self.sql, [self._values(one) for one in params]).rowcount
            one = params[0] if isinstance(params, list) else params
            return raw.execute(self.sql, self._values(one)).rowcount
        except sqlite3.IntegrityError as error:
            raise sa.exc.IntegrityError(self.sql, None, error) from error


@lru_cache(maxsize=256)
def prepare(statement: sa.Executable, names: tuple[str, ...], dialect: sa.Dialect) -> Prepared | None:
    """None for a statement whose SQL depends on the values (an IN list)."""
    compiled: Any = statement.compile(dialect=dialect, column_keys=list(names))  # type: ignore[attr-defined]
    if compiled._post_compile_expanded_state is not None or compiled.post_compile_params:
        return None
    processors = compiled._bind_processors
    defaults = compiled.params
    places = [(name, defaults.get(name), processors.get(name)) for name in compiled.positiontup]
    columns = [(one.keyname, one.type._cached_result_processor(dialect, None)) for one in compiled._result_columns]
    return Prepared(str(compiled), places, columns)
