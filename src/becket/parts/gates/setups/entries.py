"""Entries on disk: a folder each, with a record that is replaced whole, the command's log, and the tree it made."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from becket.kernel.contract.base import Record
from becket.kernel.contract.removal import remove

UNPROVEN_FOR = 3600.0
_RECORD = "setup.json"
_NAME = re.compile(r"(?P<start>[0-9a-f]{16})-(?P<number>[0-9]+)")


class SetupState(StrEnum):
    building = "building"  # or left by a crash, if nobody holds the key's lock
    quarantined = "quarantined"  # no tree was proven with it yet
    trusted = "trusted"
    failed = "failed"  # only its log is left


class SetupContent(Record):
    """What a finished set-up holds."""

    paths: tuple[str, ...]  # topmost ones that are not the commit's
    opened: tuple[str, ...] = ()  # folders with links that must lead into the tree being proven
    seconds: float


class EntryRecord(Record):
    key: str
    state: SetupState
    made_by: str
    made_at: float
    made: SetupContent | None = None
    untouched: bool = False  # every sandbox that it was shown in kept it read-only


class SetupEntry:
    """One folder `<first 16 of the key>-<number>`. Whoever writes it holds the key's lock."""

    def __init__(self, folder: Path, record: EntryRecord) -> None:
        self.folder = folder
        self.record = record

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def log(self) -> Path:
        return self.folder / "setup.log"

    @property
    def _users(self) -> Path:
        return self.folder / "users"

    @property
    def used_at(self) -> float:
        try:
            return (self.folder / _RECORD).stat().st_mtime
        except FileNotFoundError:
            return 0.0  # a crash's

    @property
    def whole(self) -> bool:
        """Is everything there that it made? Somebody may have tidied up."""
        made = self.record.made
        return made is not None and all(os.path.lexists(self.tree / path) for path in made.paths)

    def is_new(self, now: float) -> bool:
        """Long enough for one who tries again and again; a set-up that came out broken does not last."""
        return self.record.state is SetupState.quarantined and now - self.record.made_at < UNPROVEN_FOR

    def serves(self, run_id: str, now: float, *, read_only: bool) -> bool:
        """A quarantined entry serves its own run; others while it is new, if no step could ever write to it."""
        state = self.record.state
        mine = state is SetupState.quarantined and self.record.made_by == run_id
        shared = self.record.untouched and read_only and self.is_new(now)
        return (mine or shared or state is SetupState.trusted) and self.whole

    def used_by(self, run_id: str) -> bool:
        return self.record.made_by == run_id or (self._users / run_id).exists()

    def write(self, state: SetupState, made: SetupContent | None = None, *, untouched: bool | None = None) -> None:
        kept = self.record.untouched if untouched is None else untouched
        update = {"state": state, "made": made or self.record.made, "untouched": kept}
        self.record = self.record.model_copy(update=update)
        new = self.folder / f"{_RECORD}.new"
        new.write_text(self.record.model_dump_json(indent=2), encoding="utf-8")
        new.replace(self.folder / _RECORD)

    def use(self, run_id: str) -> None:
        """Remember who uses it, and when: both decide how long it is kept."""
        self._users.mkdir(exist_ok=True)
        (self._users / run_id).touch()
        os.utime(self.folder / _RECORD)

    def forget_users(self, open_runs: Collection[str]) -> bool:
        """Drop those that have ended. True if nobody is left."""
        users = list(self._users.iterdir()) if self._users.is_dir() else []
        for user in users:
            if user.name not in open_runs:
                user.unlink(missing_ok=True)
        return not any(user.name in open_runs for user in users)

    def fail(self) -> None:
        """Keep the log and nothing else."""
        self.write(SetupState.failed)
        remove(self.tree)

    def remove(self) -> None:
        self.write(SetupState.building)  # half removed is as little worth as half built
        remove(self.folder)


def new_entry(home: Path, key: str, run_id: str, at: float) -> SetupEntry:
    """A number that no leftover has: a program of a crashed build may still hold the old path."""
    number = 1 + max((int(found["number"]) for found in _names(home) if found["start"] == key[:16]), default=0)
    entry = SetupEntry(
        home / f"{key[:16]}-{number}", EntryRecord(key=key, state=SetupState.building, made_by=run_id, made_at=at)
    )
    entry.folder.mkdir(mode=0o700)
    entry.write(SetupState.building)
    entry.tree.mkdir()
    return entry


def entries(home: Path, start: str = "") -> list[SetupEntry]:
    """All entries, or those of one key. An unreadable record is a crash's: its entry counts as half built."""
    found = []
    for name in _names(home):
        if name["start"].startswith(start):
            folder = home / name.string
            found.append(SetupEntry(folder, _read(folder, name["start"])))
    return found


def _names(home: Path) -> Iterator[re.Match[str]]:
    for folder in home.iterdir():
        if name := _NAME.fullmatch(folder.name):
            yield name


def _read(folder: Path, start: str) -> EntryRecord:
    try:
        return EntryRecord.model_validate_json((folder / _RECORD).read_bytes())
    except (OSError, ValidationError):
        return EntryRecord(key=start, state=SetupState.building, made_by="", made_at=0.0)
