"""What a service shares with its other releases: `.env` and data live in the person's work tree.

A trial gets copies, so that an unproven program never writes a person's data; the release itself gets links.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.removal import remove

COPY_CAP = 50_000_000
"""Beyond this a folder is not copied for a trial: it gets an empty one."""


def copy_shared(root: Path, tree: Path, paths: Sequence[str]) -> None:
    for path in paths:
        source, target = _both(root, tree, path)
        remove(target)
        if source.is_dir():
            if _size(source) <= COPY_CAP:
                shutil.copytree(source, target, symlinks=True, ignore=_specials)
            else:
                target.mkdir()
        else:
            shutil.copyfile(source, target)


def link_shared(root: Path, tree: Path, paths: Sequence[str]) -> None:
    for path in paths:
        source, target = _both(root, tree, path)
        if not (target.is_symlink() and target.readlink() == source):
            remove(target)
            target.symlink_to(source)


def _both(root: Path, tree: Path, path: str) -> tuple[Path, Path]:
    parts = PurePosixPath(path)
    if not parts.parts or parts.is_absolute() or ".." in parts.parts or parts.parts[0] == ".git":
        raise UsageError(f"`shared: {path}` does not name a place inside the work tree; mend becket.yaml")
    source = root / parts
    if not source.exists():
        raise UsageError(f"`shared: {path}` is not there: make {source}, or take it out of `shared` in becket.yaml")
    target = tree / parts
    inside = target.parent.resolve()
    if not inside.is_relative_to(tree.resolve()):
        raise UsageError(f"`shared: {path}` leads out of the release by a symbolic link; mend the repository")
    inside.mkdir(parents=True, exist_ok=True)
    return source, target


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118  # walk gives texts
            if total > COPY_CAP:
                return total
    return total


def _specials(folder: str, names: list[str]) -> list[str]:
    """Sockets and pipes cannot be copied; a service makes its own."""
    places = {name: Path(folder, name) for name in names}
    return [name for name, place in places.items() if not (place.is_symlink() or place.is_file() or place.is_dir())]
