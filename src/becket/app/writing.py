"""Why the journal cannot be written: another process holds it, or its disk is full. Standard library only."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from becket.app.liveness import command_of, drivers
from becket.app.locks import Writer
from becket.app.state import StateFolder, holder
from becket.kernel.contract.errors import StoreUnavailable

LEAST_FREE = 1_000_000
"""Bytes; with less than that SQLite cannot be relied on to commit."""
SURE_AFTER = 0.3
"""Seconds: everybody holds the journal for a moment now and then."""

_STANDS = "Nothing is recorded and no run goes on until then; nothing is lost."


@dataclass(frozen=True, slots=True)
class WriteBlocker:
    text: str
    writer: int | None = None  # else it is the disk


def write_blocker(state: StateFolder, writer: Writer) -> WriteBlocker | None:
    """As it is at this moment. The engine itself is no hindrance."""
    if not state.database.exists():
        return None
    return disk_trouble(state.folder) or _held(state, writer.pid())


def undecided(state: StateFolder, error: Exception) -> StoreUnavailable:
    """SQLite could not look at the journal, which says nothing about the journal."""
    stands = unwritable(state) or "See that this user may read and write there, and what the system's log says."
    return StoreUnavailable(
        f"the journal {state.database} cannot be looked at now ({error}), and nothing is known to be wrong with it. "
        f"{stands[:1].upper()}{stands[1:]} Then run the command again."
    )


def unwritable(state: StateFolder, sure_after: float = SURE_AFTER) -> str:
    """What is in the way and stays there while somebody looks, as a sentence; empty if nothing does."""
    writer, until = _writer(state.database), time.monotonic() + sure_after
    first = found = write_blocker(state, writer)
    while found is not None and found.writer is not None and time.monotonic() < until:
        time.sleep(sure_after / 10)
        found = write_blocker(state, writer)
        if found != first:
            return ""
    return "" if found is None else found.text


_writer = cache(Writer)  # it never closes its file, so there is one


def _held(state: StateFolder, pid: int | None) -> WriteBlocker | None:
    ours = (holder(state.engine_lock), holder(state.daemon_lock), *(one.pid for one in drivers(state)))
    if pid is None or pid in ours:
        return None
    text = (
        f"pid {pid} (`{command_of(pid)}`) holds the journal, which cannot be written until it lets go. {_STANDS} If it "
        f"hangs, end it with `kill -KILL {pid}`."
    )
    return WriteBlocker(text, pid)


def disk_trouble(folder: Path) -> WriteBlocker | None:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    if disk.f_flag & os.ST_RDONLY:
        return WriteBlocker(
            f"the disk of {folder} is read-only, so the journal cannot be written until that is mended. {_STANDS} See "
            f"what the system's log says about it, then make it writable: `findmnt -T {shlex.quote(str(folder))}`."
        )
    blocks, files = (disk.f_bfree, disk.f_ffree) if os.geteuid() == 0 else (disk.f_bavail, disk.f_favail)
    no_files = disk.f_files > 0 and files == 0
    if disk.f_blocks == 0 or (blocks * disk.f_frsize >= LEAST_FREE and not no_files):
        return None
    lacks = "files" if no_files else "bytes"
    text = (
        f"the disk of {folder} has no {lacks} left, so the journal cannot be written until there is room. {_STANDS} "
        f"Make room on it: `df -h {shlex.quote(str(folder))}`."
    )
    return WriteBlocker(text)
