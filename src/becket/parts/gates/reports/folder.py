"""The files of a proof tree for report readers: confined to the tree, bounded, and only regular files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

LARGEST_FILE = 64_000_000
MOST_FILES = 10_000
MOST_PLACES = 1_000_000
DEEPEST = 200
"""Folders in folders; what lies below is nobody's work."""
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ReportFolder:
    """`read` and `find` below one folder. A link out of it, a device or a pipe is as if it were not there."""

    root: Path

    def read(self, path: str) -> bytes | None:
        """The content; None if there is no such file. One byte more than LARGEST_FILE tells that it is too large."""
        target = self._inside(Path(path))
        if target is None:
            return None
        try:
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(LARGEST_FILE + 1)
        finally:
            os.close(descriptor)

    def find(self, pattern: str) -> tuple[str, ...]:
        """Files that match a glob such as `build/**/TEST-*.xml`, sorted, relative to the folder."""
        parts = Path(pattern).parts
        if not parts or Path(pattern).is_absolute() or ".." in parts:
            return ()
        found = []
        for path in _matching(self.root, parts):
            target = self._inside(Path(path))
            if target is not None and target.is_file():
                found.append(path)
            if len(found) > MOST_FILES:
                break
        return tuple(sorted(found))

    def _inside(self, path: Path) -> Path | None:
        try:
            root = self.root.resolve(strict=True)
            target = (root / path).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        return target if target.is_relative_to(root) else None


def _matching(root: Path, parts: tuple[str, ...]) -> Iterator[str]:
    """As `Path.glob`, which calls itself for every folder in a folder: whoever made the tree chooses how often."""
    waiting, seen = [("", 0)], {("", 0)}
    while waiting:
        path, number = waiting.pop()
        if number == len(parts):
            yield path
            continue
        for place in _next(root, path, number, parts[number]):
            if place not in seen and len(seen) < MOST_PLACES:
                seen.add(place)
                waiting.append(place)


def _next(root: Path, path: str, number: int, part: str) -> Iterator[tuple[str, int]]:
    if not _MAGIC.search(part):
        yield _below(path, part), number + 1
        return
    if part == "**":
        yield path, number + 1
    for entry in listed(root / path):
        if part != "**":
            if fnmatchcase(entry.name, part):
                yield _below(path, entry.name), number + 1
        elif entry.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST:
            yield _below(path, entry.name), number


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def listed(folder: Path) -> list[os.DirEntry[str]]:
    """Nothing of what is closed, or has a name longer than the system takes."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
