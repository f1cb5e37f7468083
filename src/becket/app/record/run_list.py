"""The list of runs, read without the parts that move them: whoever looks must not wait for those to be loaded."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

from becket.app.record.status import names_database
from becket.app.state import State
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.handoff import SETTLED, UNSETTLED
from becket.kernel.contract.run import Run
from becket.kernel.contract.store import RunFilter
from becket.kernel.store.damage import look_at_tables, look_before_opening, own_mark, read_only
from becket.kernel.store.mark import objection, read_mark
from becket.kernel.store.rows import run_of, short_key

SHORTEST = 12
"""Letters of an id: what is enough today would not be enough tomorrow, were it any shorter."""


def read_list(state: State, where: RunFilter) -> tuple[tuple[Run, ...], float] | None:
    """The runs and the time. None where the store itself must be asked: a journal that is on Postgres, not there yet,
    older than this program, or not well, of which the store says more.
    """
    try:
        with _journal(state) as journal:
            return None if journal is None else (tuple(_runs(journal, where)), time.time())
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return None


def beginnings(state: State, run_ids: Sequence[str]) -> dict[str, str]:
    """How much of each id is enough to name its run; all of it where the journal cannot tell."""
    try:
        with _journal(state) as journal:
            return {} if journal is None else {one: _beginning(journal, one) for one in run_ids}
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return {}


def _beginning(conn: sqlite3.Connection, run_id: str) -> str:
    """Only its neighbours in the order of ids can begin as it does."""
    before, after = conn.execute(
        "SELECT (SELECT MAX(run_id) FROM runs WHERE run_id < ?), (SELECT MIN(run_id) FROM runs WHERE run_id > ?)",
        (run_id, run_id),
    ).fetchone()
    near = [other for other in (before, after) if other is not None]
    enough = (size for size in range(SHORTEST, len(run_id)) if not any(one.startswith(run_id[:size]) for one in near))
    return run_id[: next(enough, len(run_id))]


def handed_off(state: State, run_ids: Sequence[str]) -> dict[str, str] | None:
    """Of the runs whose handoffs are settled, what was said of it last; None where the store must be asked."""
    marks = ", ".join("?" * len(run_ids))
    try:
        with _journal(state) as journal:
            if journal is None:
                return None
            found = journal.execute(
                f"SELECT run_id, state, note FROM handoffs WHERE run_id IN ({marks}) ORDER BY created_at",  # noqa: S608
                tuple(run_ids),
            )
            return settled_ones((row["run_id"], row["state"], row["note"]) for row in found)
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return None


def settled_ones(handoffs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """By run; not of one that has another handoff which is still somebody's."""
    found = list(handoffs)
    unsettled = {run_id for run_id, state, _ in found if state in UNSETTLED}
    return {run_id: note.removeprefix(SETTLED) or state for run_id, state, note in found if run_id not in unsettled}


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
