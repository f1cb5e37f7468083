"""Removes whatever programs left behind, and never anything outside of it; here, so that every room can have it.

Every step goes by folder descriptor and follows no symbolic link, so nobody can redirect it by swapping a folder. Paths
longer than the system takes, folders without permissions and odd names are no obstacle; what stays is told.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

log = logging.getLogger("becket.files")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEP = 100  # folders nested deeper than this are moved up first, or recursion and descriptors would run out
_TRIES = 20  # at a folder that somebody still writes to
_REFUGE = b".becket-removing-"
_SHOWN = 3


class NotRemoved(OSError):
    """Something stays, and why."""


class EntryKind(Enum):
    """What a name in a folder stands for."""

    folder = 1
    file = 2
    link = 3
    other = 4  # a pipe, a socket, a device: whoever opens it may wait for ever


def remove(path: Path) -> None:
    """Remove a file or a whole folder; it need not exist. NotRemoved says what stays, when all else is gone."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_entry(os.fsencode(path.name), parent)
    except NotRemoved as error:
        raise NotRemoved(error.errno, f"{path} cannot be removed: {error.strerror}") from error
    finally:
        os.close(parent)


def removed(path: Path) -> bool:
    """The same where there is nobody to tell but the log."""
    try:
        remove(path)
    except OSError as error:
        log.warning("%s; remove it by hand", error)
        return False
    return True


def remove_entry(name: bytes, parent: int) -> None:
    """The same for a name in an open folder."""
    try:
        if _unlinked(name, parent):
            return
        with opened(name, parent) as top:
            _remove_folder(name, parent, top)
    except FileNotFoundError:
        pass  # somebody was quicker
    except NotRemoved:
        raise
    except OSError as error:
        raise NotRemoved(error.errno, error.strerror) from error


def _remove_folder(name: bytes, parent: int, top: int) -> None:
    tries = 0
    while True:
        done = _Pass(top)
        done.empty(top, 1)
        try:
            os.rmdir(name, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            done.left.append((name, error))
        else:
            return
        tries += not done.moved
        if done.hopeless or tries == _TRIES:
            raise done.told()
        time.sleep(0.005 * tries)


@dataclass(slots=True)
class _Pass:
    """One walk through a folder that shall go. What lies too deep is moved to its top, for the next one."""

    top: int
    moved: bool = False
    left: list[tuple[bytes, OSError]] = field(default_factory=list)

    @property
    def hopeless(self) -> bool:
        """Another try would find the same."""
        return not self.moved and any(error.errno != errno.ENOTEMPTY for _, error in self.left)

    def empty(self, folder: int, depth: int) -> None:
        for name, kind in entries(folder):
            try:
                self._entry(name, kind, folder, depth)
            except FileNotFoundError:
                pass
            except OSError as error:
                self.left.append((name, error))

    def _entry(self, name: bytes, kind: EntryKind, parent: int, depth: int) -> None:
        if kind is not EntryKind.folder:
            os.unlink(name, dir_fd=parent)
        elif depth == _DEEP:
            refuge = _REFUGE + os.urandom(8).hex().encode()
            os.rename(name, refuge, src_dir_fd=parent, dst_dir_fd=self.top)
            self.moved = True
        else:
            with opened(name, parent) as folder:
                self.empty(folder, depth + 1)
            os.rmdir(name, dir_fd=parent)

    def told(self) -> NotRemoved:
        causes = [(name, error) for name, error in self.left if error.errno != errno.ENOTEMPTY] or self.left
        shown = ", ".join(f"{_text(name)} ({error.strerror})" for name, error in causes[:_SHOWN])
        more = f" and {len(causes) - _SHOWN} more" if len(causes) > _SHOWN else ""
        return NotRemoved(causes[0][1].errno, f"{shown}{more}")


def _unlinked(name: bytes, parent: int) -> bool:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        return False  # a folder: unlink says either
    return True


@contextmanager
def opened(name: str | bytes, parent: int | None = None) -> Iterator[int]:
    """A folder that can be listed and changed; its owner's permissions are given back where they were taken."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        folder = _unlocked(name, parent)
    try:
        mode = os.fstat(folder).st_mode
        if mode & 0o700 != 0o700:
            os.fchmod(folder, mode & 0o777 | 0o700)
        yield folder
    finally:
        os.close(folder)


def _unlocked(name: str | bytes, parent: int | None) -> int:
    """Open a folder that forbids it. By its descriptor: chmod by name would follow a symbolic link."""
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{folder}").chmod(0o700)
        return os.open(f"/proc/self/fd/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(folder)


def entries(folder: int) -> list[tuple[bytes, EntryKind]]:
    with os.scandir(folder) as found:
        return [(os.fsencode(entry.name), _kind(entry)) for entry in found]


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.folder
    if entry.is_symlink():
        return EntryKind.link
    return EntryKind.file if entry.is_file(follow_symlinks=False) else EntryKind.other


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace").encode("unicode_escape").decode()
