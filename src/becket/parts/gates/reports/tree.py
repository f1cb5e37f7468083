"""The tree a report speaks about, seen through its `read_file`: turns a tool's paths into paths of the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

ReadFile = Callable[[str], bytes | None]
FindFiles = Callable[[str], tuple[str, ...]]

MOST_LOOKS = 2_000
"""How many different paths one report may make us look up."""

MOST_PARTS = 24


class Tree:
    """Paths as the repository has them. Answers are remembered; a report cannot cause unbounded reading."""

    def __init__(self, read_file: ReadFile) -> None:
        self._read_file = read_file
        self._known: dict[str, bool] = {}

    def read(self, path: str) -> bytes | None:
        return self._read_file(path) if _is_inside(path) else None

    def has(self, path: str) -> bool:
        if path not in self._known:
            if len(self._known) >= MOST_LOOKS or not _is_inside(path):
                return False
            self._known[path] = self._read_file(path) is not None
        return self._known[path]

    def relative(self, path: str) -> str:
        """The longest end of the path that is a file of the tree; else the path as it was written.

        Tools print absolute paths, and the same commit is proven at different places: ids and places must not differ.
        """
        path = path.removeprefix("file://").replace("\\", "/")
        plain = path.removeprefix("./")
        parts = PurePosixPath(plain).parts
        parts = parts[1:] if plain.startswith("/") else parts
        for start in range(max(0, len(parts) - MOST_PARTS), len(parts)):
            end = "/".join(parts[start:])
            if self.has(end):
                return end
        return plain

    def owns(self, path: str) -> bool:
        return self.has(self.relative(path))


def _is_inside(path: str) -> bool:
    return bool(path) and "\0" not in path and not path.startswith("/") and ".." not in path.split("/")
