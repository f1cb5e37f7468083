"""What is wrong with a journal's file, and when it is not the file any more that was opened. Standard library only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from becket.kernel.contract.errors import StoreDamaged
from becket.kernel.store.mark import JournalMark, objection, read_mark

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_CUT_OFF = sqlite3.SQLITE_IOERR_SHORT_READ
"""A file ends before what SQLite knows to be in it; every other trouble with reading is the disk's."""
OWN_TABLES = frozenset({"alembic_version", "runs", "events"})
"""A file with tables but without these is no journal."""

ADVICE = (
    "Nothing was written over it. `becket store check` says what is wrong, `becket store restore` brings back the last "
    "good backup, and `becket store accept` goes on with what is there"
)


def damaged(path: Path | None, what: str) -> StoreDamaged:
    return StoreDamaged(f"the journal {path or 'in memory'} cannot be trusted: {what}. {ADVICE}")


def is_damage(error: BaseException) -> bool:
    """Does SQLite say that the file itself is bad, rather than busy, full or out of reach?"""
    if isinstance(error, ValueError):  # what it says is no text: a name, or SQLite's own message about a schema
        return True
    said = getattr(error, "orig", None) or error
    code = getattr(said, "sqlite_errorcode", None)
    if code is None:  # raised by the driver itself
        return "Could not decode to UTF-8" in str(said)
    return (
        code & 0xFF in _DAMAGE
        or code == _CUT_OFF
        or str(said).startswith(("no such table", "no such column", "malformed"))
    )


def companions(path: Path) -> tuple[Path, Path]:
    """The files that SQLite keeps beside an open journal; the first one may hold its newest commits."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def look_before_opening(path: Path, mark: Path | None) -> None:
    """SQLite takes an empty file for a new database and throws its WAL away: this has to be asked before."""
    if path.is_dir():
        raise damaged(path, "it is a folder")
    if _size(path):
        return
    if said := objection(read_mark(mark), None) if mark is not None else "":
        raise damaged(path, said)
    if _size(companions(path)[0]):
        raise damaged(path, "it is gone or empty, and the commits beside it belong to a journal that was here")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def look_at_tables(raw: sqlite3.Connection, path: Path | None) -> bool:
    """True if the journal has its tables, False if it is new. Reads only; raises StoreDamaged for a foreign file."""
    names = {str(row[0]) for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and not names >= OWN_TABLES:
        raise damaged(path, f"it is no journal: it holds the tables {', '.join(sorted(names)[:5])}")
    return bool(names)


def own_mark(raw: sqlite3.Connection) -> JournalMark:
    """What a journal says of itself."""
    name, count = (int(raw.execute(f"PRAGMA {what}").fetchone()[0]) for what in ("application_id", "user_version"))
    return JournalMark(name, count)


def read_only(path: Path, patience: float = 5.0) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.fspath(path))}?mode=ro", uri=True, timeout=patience)


def faults(path: Path, *, whole: bool, most: int = 10) -> tuple[str, ...]:
    """What SQLite finds wrong with a file, by a connection of its own: what another one remembers may hide it.

    `whole` also compares every index with its table.
    """
    check = "integrity_check" if whole else "quick_check"
    try:
        with closing(read_only(path)) as raw:
            if not look_at_tables(raw, path):
                return ("it holds nothing",)
            return tuple(_told(raw, check, most))
    except StoreDamaged as error:
        return (str(error),)
    except (sqlite3.DatabaseError, ValueError) as error:
        if is_damage(error):
            return (str(error),)
        raise


def _told(raw: sqlite3.Connection, check: str, most: int) -> Iterator[str]:
    for (said,) in raw.execute(f"PRAGMA {check}({most})"):
        if said != "ok":
            yield " ".join(str(said).split())


class OpenedFiles:
    """The files of an open journal as they were. A stat of each before every transaction is a few microseconds.

    SQLite does not look at its WAL again as long as it believes to be the only writer: what becomes of it is seen here.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = tuple(os.fspath(one) for one in (path, *companions(path)))
        self._known: dict[str, tuple[int, int]] = {}
        self._size, self._changed = 0, 0
        self._commits = (0, 0, 0)  # what the WAL's size, blocks and time were

    def trouble(self, count: int) -> str:
        """What became of them, or "". `count` is what the journal last counted here: it never goes back."""
        for name in self._names:
            known = self._known.get(name)
            try:
                seen = os.stat(name)  # noqa: PTH116  # called all the time
            except OSError:
                if known is not None or name == self._names[0]:
                    return f"{Path(name).name} was removed while it was open, or the folder it lies in"
                continue
            if known is None:
                self._known[name] = seen.st_dev, seen.st_ino
            elif known != (seen.st_dev, seen.st_ino):
                return f"{Path(name).name} was replaced while it was open"
            if name == self._names[0] and (said := self._written_to(seen, known is None, count)):
                return said
            if name == self._names[1] and (said := self._commits_lost(seen, known is None, count)):
                return said
        return ""

    def _written_to(self, seen: os.stat_result, new: bool, count: int) -> str:
        """By a checkpoint of ours or of another process, most likely. One that only grew is asked for its count."""
        if (seen.st_size, seen.st_mtime_ns) == (self._size, self._changed):
            return ""
        said = "" if new else self._asked("cut off", count, pages=seen.st_size < self._size)
        self._size, self._changed = seen.st_size, seen.st_mtime_ns
        return said

    def _commits_lost(self, seen: os.stat_result, new: bool, count: int) -> str:
        """A WAL gets shorter, or loses blocks behind a hole, by a whole checkpoint of somebody or by a fault."""
        if not new and seen.st_size >= self._commits[0] and seen.st_blocks >= self._commits[1]:
            return ""
        said = "" if new else self._asked("cut off", count, pages=True)
        self._commits = _shape(seen)
        return said

    def committed(self) -> None:
        """By us, just now. What got smaller meanwhile is for the next look to find."""
        seen = self._wal()
        if seen is not None and seen.st_size >= self._commits[0] and seen.st_blocks >= self._commits[1]:
            self._commits = _shape(seen)

    def overwritten(self, count: int, *, by_commit: bool) -> str:
        """Asked while nobody else can be writing. `by_commit`: SQLite says that another process has committed."""
        seen = self._wal()
        if seen is None or _shape(seen) == self._commits:
            return ""
        said = "" if by_commit else self._asked("written over", count, pages=True)
        self._commits = _shape(seen)
        return said

    def _wal(self) -> os.stat_result | None:
        try:
            return os.stat(self._names[1]) if self._names[1] in self._known else None  # noqa: PTH116  # as above
        except OSError:
            return None

    def _asked(self, how: str, count: int, *, pages: bool) -> str:
        """By a connection that has nothing in memory."""
        if pages and (said := faults(self._path, whole=False, most=1)):
            return f"it was {how} while it was open: {said[0]}"
        with closing(read_only(self._path)) as raw:
            now = own_mark(raw).count
        return f"an older copy was put over it while it was open ({now} instead of {count})" if now < count else ""


def _shape(wal: os.stat_result) -> tuple[int, int, int]:
    return wal.st_size, wal.st_blocks, wal.st_mtime_ns
