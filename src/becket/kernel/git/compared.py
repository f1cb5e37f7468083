"""Two sides to compare, as a person names them: a commit and its parent, a range, what is staged. Changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from becket.kernel.contract.errors import GitFailed, UsageError
from becket.kernel.contract.guard import Change
from becket.kernel.git.change import read_change
from becket.kernel.git.program import GitPlace, run
from becket.kernel.git.repository import GitRepository

NOTHING = "nothing"
STAGED = "the index"


@dataclass(frozen=True, slots=True)
class Sides:
    """`old` and `new` are commits or trees; `base` is the commit whose becket.yaml counts, empty if there is none."""

    place: GitPlace
    old: str
    new: str
    base: str
    old_name: str
    new_name: str

    async def change(self) -> Change:
        return await read_change(self.place, self.old, self.new)


async def of_range(git: GitRepository, named: str) -> Sides:
    """`COMMIT` against its first parent, or `A..B`; a side that is left out is HEAD. Raises UsageError."""
    place = GitPlace(git.common_dir, private=True)
    if "..." in named:
        raise UsageError(f"{named!r} has three dots; write A..B to compare exactly these two")
    first, dots, second = named.partition("..")
    if dots:
        old, new = await _commit(git, first or "HEAD"), await _commit(git, second or "HEAD")
        return Sides(place, old, new, old, old[:12], new[:12])
    new = await _commit(git, named)
    parent = await _parent(git, place, new)
    if not parent:
        return Sides(place, await _no_files(place), new, "", NOTHING, new[:12])
    return Sides(place, parent, new, parent, parent[:12], new[:12])


@asynccontextmanager
async def of_index(git: GitRepository) -> AsyncIterator[Sides]:
    """What is staged, against HEAD: by a copy of the index, and with objects that are gone again afterwards."""
    if git.bare:
        raise UsageError(f"{git.root} is a bare repository and has no index; name a commit or a range")
    head = await git.resolve("HEAD")
    with tempfile.TemporaryDirectory(prefix="becket-staged-") as folder:
        place = await _beside(git, Path(folder))
        try:
            tree = (await run(place, "write-tree")).text
        except GitFailed as error:
            raise UsageError(f"the index cannot be read as a tree; are there conflicts in it? {error}") from error
        old = head or await _no_files(place)
        yield Sides(place, old, tree, head or "", head[:12] if head else NOTHING, STAGED)


async def _beside(git: GitRepository, folder: Path) -> GitPlace:
    """The repository with an index and an object store of our own; what it has is read through."""
    objects = folder / "objects"
    objects.mkdir()
    index = folder / "index"
    with contextlib.suppress(FileNotFoundError):  # nothing was ever staged
        await asyncio.to_thread(shutil.copy2, git.place.git_dir / "index", index)
    through = ("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(git.common_dir / "objects"))
    return replace(git.place, index=index, objects=objects, variables=(through,))


async def _commit(git: GitRepository, name: str) -> str:
    try:
        sha = None if name.startswith("-") else await git.resolve(name)
    except GitFailed:  # git's own words are about its options, not about what was typed
        sha = None
    if sha is None:
        raise UsageError(f"{name!r} names no commit in {git.root}; see `git log --oneline`")
    return sha


async def _parent(git: GitRepository, place: GitPlace, sha: str) -> str:
    header = (await run(place, "cat-file", "commit", sha)).stdout.partition(b"\n\n")[0].decode("ascii", "replace")
    parents = [line.removeprefix("parent ") for line in header.splitlines() if line.startswith("parent ")]
    if parents and await git.resolve(parents[0]) is None:
        raise UsageError(f"the parent of {sha[:12]} is not here: this clone is shallow; `git fetch --unshallow` first")
    return parents[0] if parents else ""


async def _no_files(place: GitPlace) -> str:
    """The tree without a file."""
    return (await run(place, "hash-object", "-t", "tree", "--stdin")).text
