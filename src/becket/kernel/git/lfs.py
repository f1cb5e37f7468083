"""Large files in a workspace, from what the person's repository already has. Nothing is fetched.

git-lfs finds them by itself, since a workspace's git directory shares the repository's objects; what it makes of new
ones stays with the workspace until they are part of a commit.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from becket.kernel.contract.errors import GitFailed
from becket.kernel.git.program import GitPlace, run

CONFIG = '[filter "lfs"]\nclean = git-lfs clean -- %f\n'
"""With it git knows a large file for what its commit has. It smudges nothing: that would fetch what is absent."""


def installed() -> bool:
    return shutil.which("git-lfs") is not None


def in_use(common_dir: Path) -> bool:
    """Whether the files can be put into a tree at all."""
    return _store(common_dir).is_dir() and installed()


async def fill(place: GitPlace) -> None:
    """Put those that are here in the place of their pointers."""
    await run(place, "lfs", "checkout")


async def absent(place: GitPlace, common_dir: Path, commit: str) -> list[str]:
    """The files that would stay pointers."""
    listed = (await run(place, "lfs", "ls-files", "--long", commit)).text.splitlines()
    known = (line.split(" ", 2) for line in listed)
    return [path for oid, _, path in known if not (_store(common_dir) / oid[:2] / oid[2:4] / oid).is_file()]


def bring(git_dir: Path, common_dir: Path) -> None:
    """New ones that a commit names now go to where git-lfs looks for them."""
    for file in _store(git_dir).glob("??/??/*"):
        target = _store(common_dir) / file.relative_to(_store(git_dir))
        if not target.exists():
            _copy(file, target)


def _copy(file: Path, target: Path) -> None:
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, temporary)
        temporary.replace(target)
    except OSError as error:
        raise GitFailed(f"a large file cannot be put into {target.parent}: {error}") from error


def _store(git_dir: Path) -> Path:
    return git_dir / "lfs" / "objects"
