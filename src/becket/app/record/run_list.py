"""The list of runs, read without the parts that move them: whoever looks must not wait for those to be loaded."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from becket.app.record.status import names_database
from becket.app.state import StateFolder
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.handoff import SETTLED, UNSETTLED
from becket.kernel.contract.run import Run
from becket.kernel.contract.store import RunFilter
from becket.kernel.store.damage import look_before_opening
from becket.kernel.store.mark import objection, read_mark
from becket.kernel.store.quick import QuickJournal, quick_journal
from becket.kernel.store.rows import run_of, short_key

SHORTEST = 12
"""Letters of an id: what is enough today would not be enough tomorrow, were it any shorter."""


def read_list(state: StateFolder, where: RunFilter) -> tuple[tuple[Run, ...], float] | None:
    """The runs and the time. None where the store itself must be asked: a journal that is on Postgres, not there yet,
    older than this program, or not well, of which the store says more.
    """
    try:
        with _journal(state) as journal:
            return None if journal is None else (tuple(_runs(journal, where)), time.time())
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return None


def beginnings(state: StateFolder, run_ids: Sequence[str]) -> dict[str, str]:
    """How much of each id is enough to name its run; all of it where the journal cannot tell."""
    try:
        with _journal(state) as journal:
            return {} if journal is None else {one: _beginning(journal, one) for one in run_ids}
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return {}


def _beginning(journal: QuickJournal, run_id: str) -> str:
    """Only its neighbours in the order of ids can begin as it does."""
    near = journal.neighbours(run_id)
    enough = (size for size in range(SHORTEST, len(run_id)) if not any(one.startswith(run_id[:size]) for one in near))
    return run_id[: next(enough, len(run_id))]


def handed_off(state: StateFolder, run_ids: Sequence[str]) -> dict[str, str] | None:
    """Of the runs whose handoffs are settled, what was said of it last; None where the store must be asked."""
    try:
        with _journal(state) as journal:
            if journal is None:
                return None
            return settled_ones((row["run_id"], row["state"], row["note"]) for row in journal.handoffs_of(run_ids))
    except (sqlite3.Error, BecketError, OSError, ValueError, KeyError):
        return None


def settled_ones(handoffs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """By run; not of one that has another handoff which is still somebody's."""
    found = list(handoffs)
    unsettled = {run_id for run_id, state, _ in found if state in UNSETTLED}
    return {run_id: note.removeprefix(SETTLED) or state for run_id, state, note in found if run_id not in unsettled}


@contextmanager
def _journal(state: StateFolder) -> Iterator[QuickJournal | None]:
    if names_database(state):
        yield None
        return
    look_before_opening(state.database, state.journal_mark)
    kept = read_mark(state.journal_mark)
    with quick_journal(state.database) as journal:
        well = journal.has_tables(state.database) and not objection(kept, journal.mark())
        yield journal if well else None


def _runs(journal: QuickJournal, where: RunFilter) -> Iterator[Run]:
    asked: dict[str, tuple[str, ...]] = {
        "loop_id": () if where.loop_id is None else (where.loop_id,),
        "status": tuple(status.value for status in where.statuses),
        "subject_key": () if where.subject is None else (short_key(where.subject),),
    }
    return (run_of(dict(row)) for row in journal.runs(asked, where.limit))
