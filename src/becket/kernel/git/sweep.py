"""What programs left behind in a work tree: swept by what a commit holds, or only made safe for git to read.

`git clean -ffdx` is not enough: it keeps a `.git` made inside a tracked folder, and everything in a submodule's.
Every step goes by folder descriptor and follows no symbolic link, so nobody can redirect it by swapping a folder.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from becket.kernel.contract.removal import EntryKind, entries, opened, remove_entry

_DEEPEST = 200  # folders in folders; what lies below is nobody's work
_LONGEST = 4000  # bytes of a path; a little more, and git cannot name it
_READ_BY_GIT = (b".gitignore", b".gitattributes", b".gitmodules")
_NO_NAME = re.compile(rb"(?:.*\\)?(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Inventory:
    """What a commit holds: its files, and the folders they need. A submodule is a folder, with the commit it is at."""

    files: set[bytes] = field(default_factory=set)
    folders: set[bytes] = field(default_factory=set)
    submodules: dict[bytes, str] = field(default_factory=dict)
    converts: bool = False  # attributes may make a file differ from its blob

    @classmethod
    def of(cls, listing: bytes) -> Inventory:
        """From `git ls-tree -r -z`."""
        inventory = cls()
        for line in listing.split(b"\0")[:-1]:
            kind, _, path = line.partition(b"\t")
            if kind.startswith(b"160000 "):
                inventory.folders.add(path)
                inventory.submodules[path] = kind.rpartition(b" ")[2].decode()
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
    with opened(os.fspath(tree)) as top:
        _sweep(top, b"", inventory)


def _sweep(folder: int, above: bytes, inventory: Inventory) -> None:
    for name, kind in entries(folder):
        path = above + name
        if kind is EntryKind.folder and path in inventory.folders:
            with opened(name, folder) as inner:
                _sweep(inner, path + b"/", inventory)
        elif kind not in (EntryKind.file, EntryKind.link) or path not in inventory.files:
            remove_entry(name, folder)


def defuse(tree: Path) -> None:
    """Remove what git can neither save nor pass by, and open the folders that are closed.

    A pipe with the name of a file that git reads makes it wait for ever; a name such as `.GIT`, or a path longer than
    the system takes, makes it give up.
    """
    with opened(os.fspath(tree)) as top:
        _defuse(top, len(os.fsencode(tree)), 1)


def _defuse(folder: int, length: int, depth: int) -> None:
    for name, kind in entries(folder):
        longer = length + 1 + len(name)
        if (
            kind is EntryKind.other
            or longer > _LONGEST
            or depth > _DEEPEST
            or (_NO_NAME.fullmatch(name) and name != b".git")
        ):
            remove_entry(name, folder)
        elif kind is EntryKind.folder and not (name == b".git" and depth == 1):
            with opened(name, folder) as inner:
                _defuse(inner, longer, depth + 1)


def stuck_on(tree: Path, folders: Iterable[bytes] | None) -> tuple[str, ...]:
    """Files that git would open and wait at for ever. Of these folders: only what it reads to compare tracked files;
    else wherever it looks for untracked ones.
    """
    top = os.fsencode(tree)
    if folders is None:
        found = _pipes_read_by_git(top)
    else:
        names = [b".gitmodules", b".gitattributes", *(folder + b"/.gitattributes" for folder in folders)]
        found = [name for name in names if _is_odd(top + b"/" + name)]
    return tuple(name.decode("utf-8", "backslashreplace") for name in found)


def _pipes_read_by_git(top: bytes) -> list[bytes]:
    """Where there is a `.git` below the top one, any pipe: its files may be links to it, and it a link to them."""
    pipes: list[bytes] = []
    nested, waiting = False, [b""]
    while waiting:
        above = waiting.pop()
        for entry in _listed(top + b"/" + above):
            path = above + entry.name
            nested = nested or (entry.name == b".git" and above != b"")
            if entry.is_dir(follow_symlinks=False):
                waiting += [path + b"/"] if path != b".git" else []
            elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                pipes.append(path)
    return [path for path in pipes if nested or path.rpartition(b"/")[2] in _READ_BY_GIT]


def _listed(folder: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []  # git cannot list it either


def _is_odd(path: bytes) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
