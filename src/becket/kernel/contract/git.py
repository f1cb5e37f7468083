"""The port to the user's repository. Only the git program touches it, with hooks off and no `GIT_*` inherited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.base import Record
from becket.kernel.contract.effect import Permit

OBJECTS = "objects"
"""In a workspace's folder: the objects that its commit reaches. Contained programs read it, and no other store."""


class RefMoved(Record):
    """A branch has another value than before. `old` is None for a new branch, `new` for a deleted one."""

    branch: str
    old: str | None
    new: str | None


class TreeState(Record):
    """HEAD and cleanliness of one work tree, read in one go."""

    head: str | None
    branch: str | None
    changed: tuple[str, ...]  # tracked paths that differ
    untracked: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return not self.changed and not self.untracked


class TreeHealth(StrEnum):
    """What is in the place of the resident tree."""

    none = "none"  # nothing, or a tree that is being made
    good = "good"
    damaged = "damaged"  # ours, but its `.git` is not what was made: whatever ran there did that
    pruned = "pruned"  # ours, but the repository has lost its commit
    foreign = "foreign"  # somebody else's files
    blocked = "blocked"  # no folder can be there: it, or the one above, is a file or a link


class Workspace(Record):
    """A run's own checkout: a shared clone without a remote.

    `tree` is what contained programs see and may write, its `.git` included. `git_dir` is the runtime's own and lies
    outside: the runtime never runs git with a git directory that a contained program could write.
    """

    tree: Path
    git_dir: Path
    sha: str

    @classmethod
    def below(cls, folder: Path, sha: str) -> Workspace:
        """Where everything of it lies in its own folder."""
        return cls(tree=folder / "tree", git_dir=folder / "git", sha=sha)

    @property
    def objects(self) -> Path:
        """What a program in the tree must be able to read beside it, or git does not work there."""
        return self.git_dir.with_name(OBJECTS)


class Git(Protocol):
    """One repository. Every method may raise GitFailed; none waits for a terminal or a network."""

    @property
    def root(self) -> Path:
        """The work tree the person started Becket in."""
        ...

    @property
    def common_dir(self) -> Path:
        """Where refs and objects live, shared by all work trees."""
        ...

    async def resolve(self, revision: str) -> str | None:
        """The commit behind a revision, or None."""
        ...

    async def leads_to(self, branch: str) -> str | None:
        """The branch that this one is only another name of, by a symbolic ref: promote moves no such name."""
        ...

    async def tree_of(self, commit: str) -> str: ...

    async def refs(self) -> Mapping[str, str]:
        """Every ref and HEAD, for comparing before and after (L1). Becket's own `refs/becket/` are left out."""
        ...

    async def read_bytes(self, revision: str, path: str) -> bytes | None:
        """A file as committed; None if it is not there."""
        ...

    async def read_files(self, commit: str, paths: Collection[str], largest: int) -> Mapping[str, bytes]:
        """Many files of a commit at once; what is not there, is no file or is larger is left out."""
        ...

    async def listing(self, commit: str) -> Mapping[str, str]:
        """Every path of a commit with its mode and object, such as `100644 ce013625...`."""
        ...

    async def absent_submodules(self, commit: str) -> Sequence[str]:
        """Those that every checkout of the commit has as empty folders: the repository never got what they hold."""
        ...

    async def contains(self, commit: str, ancestor: str) -> bool:
        """Is `ancestor` the commit itself or before it?"""
        ...

    async def commits(self, old: str | None, new: str, limit: int = 100) -> Sequence[str]:
        """Commits in new and not in old, newest first."""
        ...

    async def status(self, workspace: Workspace | None = None, *, untracked: bool = True) -> TreeState:
        """Of a workspace (by the runtime's own git directory), or of the person's work tree. Without `untracked` only
        tracked files are looked at.
        """
        ...

    async def open_workspace(self, folder: Path, revision: str, tree: Path | None = None) -> Workspace:
        """Make a clean checkout below `folder`, or reset and `clean -ffdx` the one that is there (L5).

        HEAD and cleanliness are checked afterwards (L4). A leftover that cannot be reset is removed and made anew.
        With `tree` the files lie there instead; a folder in that place that Becket did not make is refused, and
        below the person's work tree the place is excluded from git's sight.
        """
        ...

    async def find_workspace(self, folder: Path) -> Workspace | None:
        """The workspace made there earlier, untouched; None if there is none or it was left half made."""
        ...

    async def rescue(self, workspace: Workspace, name: str, message: str) -> str | None:
        """Save what the workspace holds beyond its commit as `refs/becket/rescue/<name>` (L7); None if there is
        nothing. Ignored files are not saved. Called before a workspace is removed; a second call is harmless.
        """
        ...

    async def close_workspace(self, folder: Path) -> None:
        """Remove it. Called when the run has ended and everything worth saving is saved."""
        ...

    async def spare_workspace(self, folder: Path) -> None:
        """Keep its files for whoever opens a workspace in a folder of that name next, if none is kept; else it stays.
        Called when nothing in it is needed any more; what is not committed is swept.
        """
        ...

    async def update_ref(self, ref: str, new: str, old: str | None, permit: Permit) -> None:
        """Compare-and-swap one ref (old None: it must not exist yet). An effect: demands the door's permit.

        A branch that is checked out somewhere is refused: moving it under a person's work tree is `promote`'s job.
        """
        ...

    def watch(self, branches: Sequence[str], poll: float = 30.0) -> AsyncIterator[RefMoved]:
        """Tell of every move of these branches from now on: by file events, with a slow poll as safety net.

        The first values are told too, with `old` None, so that a caller can compare them with what it remembers. One
        that does not exist yet is told of when it does; one that cannot be read, or cannot exist, hides no other.
        """
        ...
