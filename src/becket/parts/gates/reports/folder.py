"""The files of a proof tree for report readers: confined to the tree, bounded, and only regular files."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE = 64_000_000
MOST_FILES = 10_000


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
        for path in self.root.glob(pattern):
            relative = path.relative_to(self.root)
            if self._inside(relative) is not None and path.is_file():
                found.append(relative.as_posix())
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
