"""Removes what programs left behind in a work tree, whatever it is, and never anything outside of it.

`git clean -ffdx` is not enough: it keeps a `.git` made inside a tracked folder, and everything in a submodule's.
Every step goes by folder descriptor and follows no symbolic link, so nobody can redirect it by swapping a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEP = 100  # folders nested deeper than this are moved up first, or recursion and descriptors would run out


@dataclass(slots=True)
class Inventory:
    """What a commit holds: its files, and the folders they need. A submodule is a folder that stays empty."""

    files: set[bytes] = field(default_factory=set)
    folders: set[bytes] = field(default_factory=set)
    converts: bool = False  # attributes may make a file differ from its blob

    @classmethod
    def of(cls, listing: bytes) -> Inventory:
        """From `git ls-tree -r -z`."""
        inventory = cls()
        for line in listing.split(b"\0")[:-1]:
            kind, _, path = line.partition(b"\t")
            if kind.startswith(b"160000 "):
                inventory.folders.add(path)
            else:
                inventory.files.add(path)
                inventory.converts |= path.endswith(b".gitattributes")
            parent = path.rpartition(b"/")[0]
            while parent and parent not in inventory.folders:
                inventory.folders.add(parent)
                parent = parent.rpartition(b"/")[0]
        return inventory


def sweep(tree: Path, inventory: Inventory) -> None:
    """Remove everything that is not in the inventory: `.git` folders too, whoever made them."""
    with _opened(os.fspath(tree)) as top:
        for name, is_folder in _entries(top):
            _sweep_entry(top, name, name, is_folder, inventory)


def _sweep_entry(parent: int, name: bytes, path: bytes, is_folder: bool, inventory: Inventory) -> None:
    if not is_folder and path in inventory.files:
        return
    if not is_folder or path not in inventory.folders:
        _remove(name, parent)
        return
    with _opened(name, parent) as folder:
        for child, child_is_folder in _entries(folder):
            _sweep_entry(folder, child, path + b"/" + child, child_is_folder, inventory)


def remove(path: Path) -> None:
    """Remove a file or a whole folder; it need not exist. Folders without permissions are no obstacle."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _remove(os.fsencode(path.name), parent)
    finally:
        os.close(parent)


def _remove(name: bytes, top: int) -> None:
    waiting = [name]
    while waiting:
        _remove_down(waiting.pop(), top, top, 0, waiting)


def _remove_down(name: bytes, parent: int, top: int, depth: int, waiting: list[bytes]) -> None:
    try:
        os.unlink(name, dir_fd=parent)
        return
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        pass  # a folder: unlink says either
    with _opened(name, parent) as folder:
        if depth < _DEEP:
            for child, _ in _entries(folder):
                _remove_down(child, folder, top, depth + 1, waiting)
            os.rmdir(name, dir_fd=parent)
        else:
            refuge = b".becket-removing-" + os.urandom(8).hex().encode()
            os.rename(name, refuge, src_dir_fd=parent, dst_dir_fd=top)
            waiting.append(refuge)


@contextmanager
def _opened(name: str | bytes, parent: int | None = None) -> Iterator[int]:
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


def _entries(folder: int) -> list[tuple[bytes, bool]]:
    with os.scandir(folder) as entries:
        return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
