"""The journal's file read by the standard library alone, in milliseconds: for whoever only looks.

No other file outside of this room speaks SQL to the journal. Table and column names are those of `tables`; a test
compares them. Rows are as they are stored: JSON is text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from becket.kernel.store.damage import look_at_tables, own_mark, read_only
from becket.kernel.store.keys import index_key
from becket.kernel.store.mark import JournalMark

LOOKS_BACK = 20_000
Row = sqlite3.Row
Rows = Sequence[sqlite3.Row]


class QuickJournal:
    """A journal's file, open for reading. Raises sqlite3.Error where it cannot be read."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        conn.row_factory = sqlite3.Row

    def has_tables(self, path: Path) -> bool:
        """False for a new file; raises StoreDamaged for a foreign one."""
        return look_at_tables(self._conn, path)

    def mark(self) -> JournalMark:
        return own_mark(self._conn)

    def _all(self, query: str, *values: object) -> Rows:
        return self._conn.execute(query, values).fetchall()

    def _one(self, query: str, *values: object) -> Row | None:
        row: Row | None = self._conn.execute(query, values).fetchone()
        return row

    def counts(self, but_of: str) -> dict[str, int]:
        """Runs by status, without those of one loop."""
        rows = self._all("SELECT status, COUNT(*) FROM runs WHERE loop_id != ? GROUP BY status", but_of)
        return {str(row[0]): int(row[1]) for row in rows}

    def handed(self) -> int:
        """Runs with a handoff that is still somebody's."""
        row = self._one(
            "SELECT COUNT(DISTINCT run_id) FROM handoffs WHERE state IN ('open', 'taken', 'accepted', 'changing')"
        )
        return 0 if row is None else int(row[0])

    def of_status(self, status: str, most: int) -> Rows:
        """Open runs, the oldest first."""
        return self._all(
            "SELECT run_id, loop_id, subject, status, iteration, held, waiting_on, waits_since, worker, lease_until, "
            "created_at, updated_at FROM runs WHERE ended_at IS NULL AND status = ? ORDER BY number LIMIT ?",
            status, most,
        )  # fmt: skip

    def runs(self, columns: Mapping[str, Sequence[str]], most: int | None) -> Rows:
        """Whole rows, the newest first, whose columns have one of these values each."""
        tests = [f"{column} IN ({', '.join('?' * len(values))})" for column, values in columns.items() if values]
        return self._all(
            f"SELECT * FROM runs WHERE {' AND '.join(tests) or '1'} ORDER BY number DESC LIMIT ?",  # noqa: S608
            *(value for values in columns.values() for value in values), -1 if most is None else most,
        )  # fmt: skip

    def neighbours(self, run_id: str) -> tuple[str, ...]:
        """The ids before and after it in their order."""
        query = (
            "SELECT (SELECT MAX(run_id) FROM runs WHERE run_id < ?), (SELECT MIN(run_id) FROM runs WHERE run_id > ?)"
        )
        return tuple(str(one) for row in self._all(query, run_id, run_id) for one in row if one is not None)

    def last_step(self, run_id: str, iteration: int) -> Row | None:
        query = "SELECT phase, id FROM steps WHERE run_id = ? AND iteration = ? ORDER BY number DESC LIMIT 1"
        return self._one(query, run_id, iteration)

    def claimed_at(self, run_id: str) -> float | None:
        query = "SELECT at FROM events WHERE run_id = ? AND kind = 'run.claimed' ORDER BY seq DESC LIMIT 1"
        return None if (row := self._one(query, run_id)) is None else float(row["at"])

    def wakeups(self, run_id: str) -> Rows:
        return self._all("SELECT wake, due, expires FROM wakeups WHERE run_id = ?", run_id)

    def handoffs(self, most: int) -> Rows:
        """Those that are still somebody's."""
        return self._all(
            "SELECT handoff_id, run_id, loop_id, subject, owner, reason, next_step, state, taken_by, created_at, "
            "evidence FROM handoffs WHERE state IN ('open', 'taken', 'accepted', 'changing') "
            "ORDER BY created_at LIMIT ?",
            most,
        )

    def handoff(self, run_id: str) -> Row | None:
        """One of a run's that is still somebody's."""
        return self._one(
            "SELECT owner, reason FROM handoffs WHERE run_id = ? "
            "AND state IN ('open', 'taken', 'accepted', 'changing')",
            run_id,
        )

    def handoffs_of(self, run_ids: Sequence[str]) -> Rows:
        """All of these runs, settled or not, in their order."""
        marks = ", ".join("?" * len(run_ids))
        query = f"SELECT run_id, state, note FROM handoffs WHERE run_id IN ({marks}) ORDER BY created_at"  # noqa: S608
        return self._all(query, *run_ids)

    def questions(self, now: float, most: int) -> Rows:
        return self._all(
            "SELECT approval_id, run_id, question, bound_to, role, asked_at, expires_at FROM approvals "
            "WHERE state = 'asked' AND expires_at > ? ORDER BY asked_at LIMIT ?",
            now, most,
        )  # fmt: skip

    def brakes(self) -> Rows:
        return self._all("SELECT * FROM controls ORDER BY scope")

    def fires(self, most: int) -> Rows:
        return self._all(
            "SELECT name, due_at FROM cursors WHERE due_at IS NOT NULL AND name LIKE 'schedule:%' "
            "ORDER BY due_at LIMIT ?",
            most,
        )

    def alerts(self, most: int) -> Rows:
        """Also of the watchdog's own store, which has this table too."""
        query = (
            "SELECT key, text, count, first_at FROM alerts WHERE state IN ('open', 'told') ORDER BY first_at LIMIT ?"
        )
        return self._all(query, most)

    def last_beat(self, pid: int) -> float | None:
        row = self._one("SELECT MAX(beat_at) FROM workers WHERE pid = ? AND dead = 0", pid)
        return None if row is None else row[0]

    def calls_since(self, since: float) -> list[str | None] | None:
        """How the calls of agents ended; None in a journal from before there were calls."""
        try:
            return [row[0] for row in self._all("SELECT result FROM agent_calls WHERE began_at >= ?", since)]
        except sqlite3.OperationalError:
            return None

    def ended_calls(self, run_id: str) -> Rows:
        return self._all(
            "SELECT iteration, step_id, agent, result FROM agent_calls WHERE run_id = ? AND result IS NOT NULL "
            "ORDER BY number",
            run_id,
        )

    def proof(self, subject: str) -> Row | None:
        """The run that proved it last."""
        return self._one(
            "SELECT facts.run_id AS run_id, facts.at AS at, runs.loop_id AS loop_id, runs.detail AS detail FROM facts "
            "JOIN runs ON runs.run_id = facts.run_id WHERE facts.fact = 'proven' AND facts.subject_key = ? "
            "ORDER BY facts.number DESC LIMIT 1",
            subject,
        )

    def last_about(self, subject: str, loop_id: str) -> Row | None:
        """The newest run of a loop with this subject that said or will say something of it."""
        return self._one(
            "SELECT run_id, loop_id, status, reason, worker, created_at FROM runs "
            "WHERE subject_key = ? AND loop_id = ? AND status NOT IN ('cancelled', 'completed_dry_run') "
            "ORDER BY number DESC LIMIT 1",
            index_key(subject), loop_id,
        )  # fmt: skip

    def completed(self, loop_id: str, most: int) -> Rows:
        """Among the newest runs of all. An index of the loop (hence the plus) holds too many of them."""
        return self._all(
            "SELECT subject, detail FROM runs WHERE +loop_id = ? AND status = 'completed' "
            "AND number > (SELECT MAX(number) FROM runs) - ? ORDER BY number DESC LIMIT ?",
            loop_id, LOOKS_BACK, most,
        )  # fmt: skip

    def conditions_about(self, subject: str, loop_id: str, about: str) -> list[str]:
        """Of the steps whose conditions name it, of the runs that judged the subject, the newest first."""
        query = (
            "SELECT steps.conditions FROM steps JOIN runs ON runs.run_id = steps.run_id "
            "WHERE runs.subject_key = ? AND runs.loop_id = ? AND runs.status NOT IN ('cancelled', 'completed_dry_run') "
            "AND steps.conditions LIKE ? ORDER BY runs.number DESC, steps.number DESC"
        )
        return [str(row[0]) for row in self._all(query, index_key(subject), loop_id, f"%{about}%")]


@contextmanager
def quick_journal(path: Path) -> Iterator[QuickJournal]:
    with closing(read_only(path, patience=2.0)) as conn:
        yield QuickJournal(conn)


def readable_run_ids(path: Path) -> Iterator[bytes]:
    """Of a damaged file as far as it can be read, and as the bytes that stand there."""
    with suppress(sqlite3.Error, ValueError), closing(read_only(path)) as conn:
        conn.text_factory = bytes
        yield from (row[0] for row in conn.execute("SELECT run_id FROM runs") if isinstance(row[0], bytes))
