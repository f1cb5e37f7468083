"""The private home and temporary folder of one child."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path

from becket.kernel.contract.removal import removed

_PREFIX = "becket-child-"
_SURELY_LOCKED = 60.0
"""Seconds after which a new folder has its lock, however slow the machine."""


class Scratch:
    """Two empty folders, made for one child and removed after it.

    A lock on the folder lives as long as this process: a folder without one was left by a crash.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)).resolve()
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self.home = self.folder / "home"
        self.temporary = self.folder / "tmp"
        self.home.mkdir(mode=0o700)
        self.temporary.mkdir(mode=0o700)

    def remove_if_empty(self) -> bool:
        """The cheap way; False if the child left files."""
        try:
            for folder in (self.home, self.temporary, self.folder):
                folder.rmdir()
        except OSError:
            return False
        os.close(self._lock)
        return True

    def remove(self) -> None:
        """Remove it with all the child left there, folders without permissions included."""
        removed(self.folder)
        os.close(self._lock)


def remove_abandoned(parent: Path | None = None) -> None:
    """Remove what a crash of ours left: our own folders that nobody holds locked."""
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # gone, another user's, or no folder
        try:
            seen = os.fstat(lock)
            if seen.st_uid == os.geteuid() and time.time() - seen.st_mtime > _SURELY_LOCKED:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                removed(folder)
        except BlockingIOError:
            continue  # its child may be alive
        finally:
            os.close(lock)
