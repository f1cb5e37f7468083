"""The files of a tree that its run needs no more, kept for the next one: most of them are right already.

One tree for each name of a folder. It goes there and back as a whole, so a kill leaves it in one place or the other. It
is believed no more than any workspace of an earlier life: swept, reset and looked at before it is used. Only files are
kept that nothing changed since the run began with them: not even their rights or dates.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.removal import opened
from becket.kernel.git.sweep import sweep

if TYPE_CHECKING:
    from becket.kernel.git.workspace import Source

BEGUN = "becket-begun"
"""In the runtime's own git directory: a file as old as the first program that may have run in the tree."""


async def keep(source: Source, workspace: Workspace) -> None:
    """Not if one is kept already, or git or the disk says no: whoever asks removes what is left."""
    folder = workspace.git_dir.parent
    place = _spares(source) / folder.name
    with contextlib.suppress(OSError, GitFailed):
        inventory = await source.inventory(workspace.sha)
        await asyncio.to_thread(sweep, workspace.tree, inventory)
        await asyncio.to_thread(_remove_touched, workspace, inventory.files)
        if _as_made(workspace, inventory.folders):
            place.parent.mkdir(mode=0o700, exist_ok=True)
            folder.rename(place)


def take(source: Source, folder: Path) -> None:
    """Two that ask at once do not both get it."""
    with contextlib.suppress(OSError):
        if (spare := _spares(source) / folder.name).exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            spare.rename(folder)
            begin(Workspace.below(folder, ""))


def begin(workspace: Workspace) -> None:
    """From now on programs may change its files."""
    (workspace.git_dir / BEGUN).touch()


def _remove_touched(workspace: Workspace, files: Iterable[bytes]) -> None:
    """By the time of a file's last change, which nobody inside can set."""
    begun = (workspace.git_dir / BEGUN).stat().st_mtime_ns
    with opened(os.fspath(workspace.tree)) as tree:
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                if os.lstat(file, dir_fd=tree).st_ctime_ns >= begun:
                    os.unlink(file, dir_fd=tree)


def _as_made(workspace: Workspace, folders: Iterable[bytes]) -> bool:
    """Git knows nothing of the rights on a folder, and would leave them as a program set them."""
    usual = _rights(workspace.git_dir)
    return all(_rights(workspace.tree / os.fsdecode(folder)) == usual for folder in (b"", *folders))


def _rights(folder: Path) -> tuple[int, list[str]]:
    return folder.lstat().st_mode, os.listxattr(folder, follow_symlinks=False)


def _spares(source: Source) -> Path:
    return source.history.folder.with_name("spares")
