"""The mark of a journal: a small file outside the state folder, which outlives the journal that it tells of.

An empty or missing journal can so be told from none, and an older copy or another's journal from our own. A journal
knows its name and how often it was marked (two numbers of SQLite's header). It counts first and the file is written
after the commit: the file is never ahead of a journal that is whole. Standard library only: quick verbs read it.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from becket.kernel.contract.crash import CrashPoint

log = logging.getLogger("becket.store")

before_mark = CrashPoint("mark.before", "the journal has counted; the mark beside it has not heard of it")


@dataclass(frozen=True, slots=True)
class JournalMark:
    journal: int  # its name, drawn when it was made
    count: int


UNREADABLE = JournalMark(-1, -1)
"""There is a mark, and it says nothing."""


def read_mark(path: Path) -> JournalMark | None:
    """None: there never was a journal here."""
    try:
        told = json.loads(path.read_bytes())
        return JournalMark(int(told["journal"]), int(told["count"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return UNREADABLE


def write_mark(path: Path, mark: JournalMark) -> None:
    """What it tells of is committed: where it cannot be written (a full disk) it stays behind, which harms nobody."""
    before_mark()
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(asdict(mark), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error)


def objection(mark: JournalMark | None, journal: JournalMark | None) -> str:
    """Why this is not the journal that the mark tells of; empty where it is. A `journal` of None has nothing in it."""
    if mark is None:
        return ""
    if journal is None:
        return "it is gone or empty, and there was a journal here"
    if mark is UNREADABLE:
        return ""
    if journal.journal != mark.journal:
        return "it is another journal than the one that was here"
    if journal.count < mark.count:
        return f"it is an older copy: {mark.count - journal.count} of its starts, effects and decisions are missing"
    return ""
