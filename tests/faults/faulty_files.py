"""The n-th file operation below a folder fails: by an audit hook, which is asked before Python does it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {
    "os.mkdir": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1,
    "os.utime": 1, "os.chmod": 1,
}  # fmt: skip
"""The event, and how many of its first arguments are paths."""


class Errno(IntEnum):
    """How it fails."""

    ENOSPC = errno.ENOSPC
    EIO = errno.EIO
    EACCES = errno.EACCES
    EROFS = errno.EROFS


@dataclass(slots=True)
class Disk:
    """What goes wrong at which operation; with `lasts` so does everything after it, for so many seconds."""

    folder: Path
    faults: dict[int, Errno]
    clock: Callable[[], float]
    lasts: float = 0.0
    count: int = 0
    seen: list[str] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    _bad: Errno | None = None
    _until: float = 0.0

    def asked(self, event: str, arguments: tuple[Any, ...]) -> None:
        what = self._ours(event, arguments)
        if what is None:
            return
        self.count += 1
        self.seen.append(what)
        way = self.faults.get(self.count)
        if way is not None and self.lasts:
            self._bad, self._until = way, self.clock() + self.lasts
        if way is None and self._bad is not None and self.clock() < self._until:
            way = self._bad
        if way is not None:
            self.struck.append(f"{way.name} at operation {self.count}: {what}")
            raise OSError(int(way), os.strerror(way), arguments[0])

    def _ours(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITES or isinstance(path, int):
                return None
            return self._below(event, (path,))
        paths = _EVENTS.get(event)
        return None if paths is None else self._below(event, arguments[:paths])

    def _below(self, event: str, paths: tuple[Any, ...]) -> str | None:
        """A relative path is opened in a folder that is open already: so do only we, and only below."""
        names = [os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike)]
        within = [name for name in names if not name.startswith("/") or name.startswith(str(self.folder))]
        return f"{event} {within[0].removeprefix(str(self.folder))}" if within else None


_disk: Disk | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _disk is not None and (event == "open" or event in _EVENTS):
        disk = _disk
        insert(None)  # what the bookkeeping does is not counted
        try:
            disk.asked(event, arguments)
        finally:
            insert(disk)


_installed: list[bool] = []


def insert(disk: Disk | None) -> None:
    """From now on this disk decides; None: all is well. A hook cannot be removed, so it is installed once."""
    global _disk  # noqa: PLW0603 - one hook per process
    if not _installed and disk is not None:
        _installed.append(True)
        sys.addaudithook(_hook)
    _disk = disk
