"""Locks that show what other processes do: which one starts, which one writes to a database. Standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from becket.app.state import ask_kernel

UNNAMED = 1
"""In whose name a start is locked before its process exists; nobody ends that one."""


class StartLock:
    """Held for a process that is being started, from before it exists until it holds its own lock or is over.

    It is passed on to the child as an open file, so it needs neither the child's help nor the parent's survival.
    """

    VARIABLE = "BECKET_START"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file = -1

    def acquire(self) -> bool:
        self.file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            ask_kernel(self.file, fcntl.F_OFD_SETLK, UNNAMED)
        except (BlockingIOError, PermissionError):
            self.close()
            return False
        return True

    def name(self, pid: int) -> None:
        """In whose name it is held from now on."""
        ask_kernel(self.file, fcntl.F_OFD_SETLK, pid)

    def close(self) -> None:
        os.close(self.file)
        self.file = -1


def started_by_becket() -> bool:
    """Did another Becket process start this one, and not a person?"""
    return StartLock.VARIABLE in os.environ


def start_is_over() -> None:
    """Called by a started process as soon as it holds its own lock."""
    with contextlib.suppress(OSError, ValueError):  # a variable that somebody else left there
        os.close(int(os.environ.pop(StartLock.VARIABLE, "")))


class Writer:
    """Who holds the write lock of an SQLite database. Never closes what it opened: that would drop this process's own
    locks on the file, as POSIX has it.
    """

    _BYTE = 120  # of the -shm file: where SQLite locks the one writer of a database in WAL mode

    def __init__(self, database: Path) -> None:
        self._path = Path(f"{database}-shm")
        self._file, self._inode = -1, -1

    def pid(self) -> int | None:
        """None also where it cannot be known: no such file, or this process itself."""
        try:
            if (inode := self._path.stat().st_ino) != self._inode:
                self._file, self._inode = os.open(self._path, os.O_RDWR | os.O_CLOEXEC), inode
            kind, _, pid = ask_kernel(self._file, fcntl.F_GETLK, 1, self._BYTE)
        except OSError:
            return None
        return None if kind == fcntl.F_UNLCK or pid <= 0 else pid
