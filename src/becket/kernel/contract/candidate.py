"""The port that makes commits. Only the runtime commits; agents and tests never do (L7, L21)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.base import Record
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.guard import Change, Refusal


class CommitMade(Record):
    """A commit that the runtime made. `parent` is what it stands on."""

    sha: str
    tree: str
    parent: str


class Conflict(Record):
    """A change that does not fit where it was to go; nothing was made."""

    paths: tuple[str, ...]
    message: str


class Barred(Record):
    """Work that may not enter the repository, and why. Nothing of it did."""

    refusals: tuple[Refusal, ...]


def nothing_against(change: Change) -> Sequence[Refusal]:
    """For whoever takes everything."""
    return ()


@dataclass(frozen=True, slots=True)
class Bar:
    """What of a change may not enter the repository."""

    by_size: Callable[[Change], Sequence[Refusal]] = nothing_against  # no content is known: no file was opened yet
    by_content: Callable[[Change], Sequence[Refusal]] = nothing_against  # no object has entered the repository yet


OPEN = Bar()


class LeftOut(Record):
    """What was not saved, and why. Of a folder, `size` is the sum."""

    path: str
    size: int
    why: str


class Rescued(Record):
    """Work in progress that was saved when something ended."""

    name: str  # below refs/becket/rescue/
    sha: str
    parent: str
    subject: str
    at: float
    left_out: tuple[LeftOut, ...] = ()


class BrokenRef(Record):
    """A ref of Becket's own that names something the repository has lost."""

    ref: str
    sha: str
    missing: str


def no_secret(path: str, old: bytes, new: bytes) -> str | None:
    """For whoever does not look for secrets."""
    return None


def as_it_is(name: str) -> str:
    return name


@dataclass(frozen=True, slots=True)
class RescueRules:
    """What may be saved. Sizes are judged before a file is read; of a sparse file, all of it counts."""

    largest: int = 10_000_000  # bytes of one file
    together: int = 50_000_000  # bytes of one rescue
    # Path, content (of a link: where it leads) before and now: why it may not.
    secret: Callable[[str, bytes, bytes], str | None] = no_secret
    shown: Callable[[str], str] = as_it_is  # the name of what is left out, without a secret


CUT = "# cut here: "
"""How the last line begins of a patch that was too long."""


class Candidates(Protocol):
    """Commits beside every branch. What is kept lies below `refs/becket/`, where nothing prunes it.

    Every method may raise GitFailed. `keep` is a name below `refs/becket/`, such as `candidate/run_1`; a second call
    with the same name moves that ref, and making the same thing twice makes the same commit.
    """

    async def commit_work(
        self, workspace: Workspace, message: str, keep: str, bar: Bar = OPEN
    ) -> CommitMade | Barred | None:
        """Everything the workspace holds beyond its commit, untracked files too (L5); None if there is nothing.

        Ignored files are left out. Commits that a contained program made in the tree's own `.git` do not count:
        only the files do. A nested repository or a submodule is left as the files it is made of, or refused.
        """
        ...

    async def carry_over(self, commit: str, onto: str, folder: Path, message: str, keep: str) -> CommitMade | Conflict:
        """The change of a commit against its first parent, on top of another commit (a rebase of one commit).

        `folder` is a workspace folder of its own, made and removed here.
        """
        ...

    async def undo(self, commit: str, onto: str, folder: Path, message: str, keep: str) -> CommitMade | Conflict:
        """The reverse of a commit's change against its first parent, on top of `onto`."""
        ...

    async def with_side_of(
        self, commit: str, other: str, belongs: Callable[[str], bool], message: str, keep: str
    ) -> CommitMade:
        """`commit` with every path for which `belongs` says yes exactly as in `other`: its additions removed, its
        deletions restored. The parent is `other`; where nothing differs, it is `commit` itself. Used for the crossing
        proof.
        """
        ...

    async def change(self, old: str, new: str) -> Change:
        """For the guard."""
        ...

    async def patch(self, old: str, new: str, limit: int = 2_000_000) -> bytes:
        """A binary-safe patch that `git apply` takes and people can read; cut at a line with a remark beyond the
        limit.
        """
        ...

    async def message(self, sha: str) -> str:
        """The commit's whole message."""
        ...

    async def forget(self, keep: str) -> None:
        """Remove a kept name. It need not exist."""
        ...

    async def missing(self, sha: str) -> str | None:
        """What a commit names and the repository does not have; None if it is whole, and so are those before it."""
        ...

    async def rescued(self) -> tuple[Rescued, ...]:
        """What lies below `refs/becket/rescue/`, newest first."""
        ...
