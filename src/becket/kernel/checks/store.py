"""Checks of the database, who works on it, its clock, and the files that running processes leave."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.facts import Diagnosis, Exam, Level, StoreFacts
from becket.kernel.contract.base import show_duration
from becket.kernel.contract.errors import InvalidDocument, StoreDamaged, StoreUnavailable
from becket.kernel.contract.store import WorkerInfo

CLOCK_WARN = 5.0
CLOCK_ERROR = 300.0


def database(exam: Exam) -> Iterator[Diagnosis]:
    found = exam.store
    if isinstance(
        found, InvalidDocument
    ):  # becket.yaml says where the database is; what is wrong with it is told there
        return
    if isinstance(found, StoreDamaged):
        mend = words.DATABASE_RESTORE if exam.facts.last_backup() else words.DATABASE_ACCEPT
        yield Diagnosis(name="database", level=Level.error, what=str(found), mend=mend)
        yield _backup(exam)
    elif isinstance(found, StoreUnavailable):
        stands = exam.facts.unwritable()
        way = None if stands else _way_out(exam, str(found))
        what = words.DATABASE_DOWN.format(why=stands or found)
        yield Diagnosis(name="database", level=Level.error, what=what, mend=way)
    elif isinstance(found, Exception):
        raise found
    else:
        what = words.DATABASE_OK if found else words.DATABASE_NEW
        yield Diagnosis(name="database", level=Level.ok, what=what)
        if exam.facts.last_backup():
            yield _backup(exam)


def _way_out(exam: Exam, said: str) -> str:
    if "newer" in said.lower():
        return words.DATABASE_NEWER_MEND
    if exam.config is not None and exam.config.database:
        return words.DATABASE_MEND
    return words.DATABASE_FILE_MEND.format(path=shlex.quote(str(exam.facts.state)))


def _backup(exam: Exam) -> Diagnosis:
    last = exam.facts.last_backup()
    what = words.BACKUP_LAST.format(name=last) if last else words.BACKUP_NONE
    return Diagnosis(name="backup", level=Level.ok if last else Level.warn, what=what)


def daemons(exam: Exam) -> Iterator[Diagnosis]:
    store = exam.store
    if not isinstance(store, StoreFacts):
        return
    listed = [worker for worker in store.workers if worker.role == "daemon" and not worker.dead]
    live = [worker for worker in listed if store.now - worker.beat_at <= exam.facts.worker_ttl]
    if len(live) > 1:
        who = ", ".join(f"pid {worker.pid} on {worker.host}" for worker in live)
        newest = max(live, key=lambda worker: worker.started_at)
        what, mend = words.TWO_DAEMONS.format(who=who), words.TWO_DAEMONS_MEND.format(pid=newest.pid, host=newest.host)
        yield Diagnosis(name="daemons", level=Level.error, what=what, mend=mend)
    elif stands := exam.facts.unwritable():
        yield Diagnosis(name="daemons", level=Level.warn, what=stands)
    elif live:
        what = words.DAEMON_OK.format(pid=live[0].pid, host=live[0].host)
        yield Diagnosis(name="daemons", level=Level.ok, what=what)
    else:
        yield from map(_silent, [listed[-1]] if listed else [])
        if not listed:
            yield Diagnosis(name="daemons", level=Level.ok, what=words.DAEMON_NONE)


def clock(exam: Exam) -> Iterator[Diagnosis]:
    """Time comes only from the store; a machine that disagrees shows people wrong times and misjudges heartbeats."""
    store = exam.store
    if not isinstance(store, StoreFacts):
        return
    off = exam.opened_at - store.now
    if abs(off) <= CLOCK_WARN:
        yield Diagnosis(name="clock", level=Level.ok, what=words.CLOCK_OK)
        return
    level = Level.error if abs(off) > CLOCK_ERROR else Level.warn
    way = words.AHEAD if off > 0 else words.BEHIND
    what = words.CLOCK_OFF.format(off=show_duration(round(abs(off))), way=way)
    yield Diagnosis(name="clock", level=level, what=what, mend=words.CLOCK_MEND)


def locks(exam: Exam) -> Iterator[Diagnosis]:
    """A file whose process is gone (L30, L31)."""
    for lock in exam.facts.locks:
        if lock.pid is not None and exam.facts.alive(lock):
            what = words.LOCK_HELD.format(pid=lock.pid)
            yield Diagnosis(name="locks", level=Level.ok, what=what, where=str(lock.path))
            continue
        what = words.LOCK_STALE.format(pid=lock.pid) if lock.pid is not None else words.LOCK_EMPTY
        mend = f"rm -- {shlex.quote(str(lock.path))}"
        yield Diagnosis(name="locks", level=Level.warn, what=what, mend=mend, where=str(lock.path))
    if not exam.facts.locks:
        yield Diagnosis(name="locks", level=Level.ok, what=words.LOCK_NONE)


def _silent(worker: WorkerInfo) -> Diagnosis:
    what = words.DAEMON_SILENT.format(pid=worker.pid, host=worker.host)
    return Diagnosis(name="daemons", level=Level.warn, what=what, mend="becket up")
