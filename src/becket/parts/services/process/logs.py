"""A service's log, bounded. It is copied and cut under the writer's hands.

The writer appends to the file itself: a pipe in between would need a process of its own, and its death would be the
service's. What is written between the copy and the cut is lost: a line or two per rotation. Of what came in one burst
that is larger than the cap, the beginning and the end are kept.
"""

from __future__ import annotations

import os
from pathlib import Path

CAP = 10_000_000
OLD_ONES = 3


def opened(log: Path) -> int:
    """For appending: only so does the file really become short when it is cut."""
    log.parent.mkdir(parents=True, exist_ok=True)
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def trim(log: Path, cap: int = CAP, keep: int = OLD_ONES) -> bool:
    """Rotate the log if it is larger than the cap; says whether it did."""
    try:
        if log.stat().st_size <= cap:
            return False
    except FileNotFoundError:
        return False
    for number in range(keep - 1, 0, -1):
        older = _old(log, number)
        if older.exists():
            older.replace(_old(log, number + 1))
    _copy(log, _old(log, 1), cap)
    os.truncate(log, 0)
    return True


def _copy(log: Path, target: Path, cap: int) -> None:
    new = target.with_name(target.name + ".new")
    try:
        with log.open("rb") as old, new.open("wb") as copy:
            size = os.fstat(old.fileno()).st_size
            copy.write(old.read(cap))
            if size > 2 * cap:
                copy.write(f"\n[becket: {size - 2 * cap} bytes that stood here are not kept]\n".encode())
                old.seek(size - cap)
            copy.write(old.read(cap))
        new.replace(target)
    except OSError:  # a full disk: then the cut matters more than the copy
        new.unlink(missing_ok=True)


def _old(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")
