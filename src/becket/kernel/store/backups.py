"""Copies of the journal: each one file, whole at one moment, checked before it gets its name. Standard library only."""

from __future__ import annotations

import calendar
import hashlib
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import StoreDamaged, StoreUnavailable
from becket.kernel.store.damage import companions, faults, is_damage, read_only

_NAME = re.compile(r"(\d{8}T\d{6})\.(\d{3})Z-([a-z]+)-([0-9a-f]{16})\.db")
_STAMP = "%Y%m%dT%H%M%S"
BACKUPS = "backups"
"""The folder beside the journal."""
MIGRATION = "migration"
"""Why a copy is made before tables are changed."""
KEEP = 7
MOST_BYTES = 2_000_000_000
"""All backups together; the newest one is kept whatever its size."""

copied = CrashPoint("backup.copied", "the copy is checked and synced, and has no name yet")
set_aside = CrashPoint("restore.set_aside", "the old journal is out of the way, and nothing is in its place")
put_back = CrashPoint("restore.put_back", "the backup is in its place, and the mark tells of the old journal")


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    at: float
    why: str
    size: int
    digest: str  # the first 16 characters of the sha256 of the file

    @property
    def name(self) -> str:
        return self.path.name


def backups(folder: Path) -> tuple[Backup, ...]:
    """Newest first. Whether they are whole is asked of `problem`."""
    found = [one for path in _files(folder) if (one := _named(path)) is not None]
    return tuple(sorted(found, key=lambda one: (one.at, one.name), reverse=True))


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except OSError:
        return []


def _named(path: Path) -> Backup | None:
    if (match := _NAME.fullmatch(path.name)) is None:
        return None
    stamp, milliseconds, why, digest = match.groups()
    try:
        at = calendar.timegm(time.strptime(stamp, _STAMP)) + int(milliseconds) / 1000
    except ValueError:
        return None
    return Backup(path, at, why, path.stat().st_size, digest)


def _stamp() -> str:
    now = time.time()
    return f"{time.strftime(_STAMP, time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"


def problem(backup: Backup) -> str:
    """Why a backup is no good, or "": its digest, and SQLite's own full check."""
    try:
        if _digest(backup.path) != backup.digest:
            return "its contents are not those that its name promises"
        return next(iter(faults(backup.path, whole=True)), "")
    except (OSError, sqlite3.Error) as error:
        return str(error)


def make_backup(journal: Path, folder: Path, why: str, keep: int) -> Backup:
    """Copy a journal that may be in use. Raises StoreDamaged if it is not whole, StoreUnavailable without room."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if shutil.disk_usage(folder).free < 2 * journal.stat().st_size:
        raise StoreUnavailable(f"there is no room for a backup of {journal} in {folder}; free some space")
    _forget_torn(folder)
    fresh = folder / f".incoming-{os.getpid()}"
    try:
        _copy(journal, fresh)
        if wrong := faults(fresh, whole=True):
            raise StoreDamaged(f"{journal} is damaged, and no backup was made of it: {wrong[0]}")
        digest = _digest(fresh)
        if (there := _same(folder, why, digest)) is not None:
            return there
        name = f"{_stamp()}-{why}-{digest}.db"
        copied()
        fresh.replace(folder / name)
    finally:
        fresh.unlink(missing_ok=True)
    _sync(folder)
    _prune(folder, keep)
    made = _named(folder / name)
    assert made is not None, "the name was made here"
    return made


def _same(folder: Path, why: str, digest: str) -> Backup | None:
    """Before a change of tables that fails again and again, one copy is enough: more would push out older days."""
    newest = next(iter(backups(folder)), None) if why == MIGRATION else None
    return newest if newest is not None and (newest.why, newest.digest) == (why, digest) else None


def _forget_torn(folder: Path) -> None:
    """Copies that a killed process left half made. Younger ones may be another process's own."""
    for torn in folder.glob(".incoming-*"):
        with suppress(FileNotFoundError):
            if torn.stat().st_mtime < time.time() - 3600:
                torn.unlink()


def _copy(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(read_only(source)) as old, closing(sqlite3.connect(target, isolation_level=None)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # one file, without anything beside it
    except sqlite3.Error as error:
        kind = StoreDamaged if is_damage(error) else StoreUnavailable
        raise kind(f"{source} cannot be copied: {error}; see `becket store check`") from error
    _sync(target)


def _prune(folder: Path, keep: int) -> None:
    size = 0
    for number, one in enumerate(backups(folder)):
        size += one.size
        if number and (number >= keep or size > MOST_BYTES):
            one.path.unlink(missing_ok=True)


def put_in_place(backup: Path, journal: Path, aside: Path) -> None:
    """Exchange the journal for a backup; nobody may have it open. Killed at any line, it can be done again."""
    fresh = journal.with_name(f"{journal.name}.restoring")
    fresh.unlink(missing_ok=True)
    shutil.copyfile(backup, fresh)
    fresh.chmod(0o600)
    _sync(fresh)
    put_aside(journal, aside)
    set_aside()
    fresh.replace(journal)
    _sync(journal.parent)
    put_back()


def put_aside(journal: Path, aside: Path) -> None:
    """Commits that lie beside it go with it: beside another journal they would be taken for that one's."""
    for path in (journal, *companions(journal)):
        if path.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            path.replace(aside / path.name)
    _sync(journal.parent)


def free_name(folder: Path, stem: str) -> Path:
    """A name in the folder that nobody has."""
    return next(path for path in _numbered(folder, f"{stem}-{_stamp()}") if not path.exists())


def _numbered(folder: Path, stem: str) -> Iterator[Path]:
    yield folder / stem
    for number in range(2, 1000):
        yield folder / f"{stem}-{number}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
