"""The list of runs, read without the parts that move them: whoever looks must not wait for those to be loaded."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from becket.app.record.status import names_database
from becket.app.state import State
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.run import Run
from becket.kernel.contract.store import RunFilter
from becket.kernel.store.damage import look_at_tables, look_before_opening, own_mark, read_only
from becket.kernel.store.mark import objection, read_mark
from becket.kernel.store.rows import run_of, short_key


def read_list(state: State, where: RunFilter) -> tuple[tuple[Run, ...], float] | None:
    """The runs and the time. None where the store itself must be asked: a journal that is on Postgres, not there yet,
    older than this program, or not well, of which the store says more.
    """
    try:
        with _journal(state) as journal:
            return None if journal is None else (tuple(_runs(journal, where)), time.time())
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return None


@contextmanager
def _journal(state: State) -> Iterator[sqlite3.Connection | None]:
    if names_database(state):
        yield None
        return
    look_before_opening(state.database, state.journal_mark)
    kept = read_mark(state.journal_mark)
    with closing(read_only(state.database)) as conn:
        conn.row_factory = sqlite3.Row
        well = look_at_tables(conn, state.database) and not objection(kept, own_mark(conn))
        yield conn if well else None


def _runs(conn: sqlite3.Connection, where: RunFilter) -> Iterator[Run]:
    asked: dict[str, tuple[str, ...]] = {
        "loop_id": () if where.loop_id is None else (where.loop_id,),
        "status": tuple(status.value for status in where.statuses),
        "subject_key": () if where.subject is None else (short_key(where.subject),),
    }
    asked = {column: values for column, values in asked.items() if values}
    tests = [f"{column} IN ({', '.join('?' * len(values))})" for column, values in asked.items()]
    found = conn.execute(
        f"SELECT * FROM runs WHERE {' AND '.join(tests) or '1'} ORDER BY number DESC LIMIT ?",  # noqa: S608  # our words
        (*(value for values in asked.values() for value in values), -1 if where.limit is None else where.limit),
    )
    return (run_of(dict(row)) for row in found)
