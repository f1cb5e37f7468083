"""Promote: move a branch by fast-forward to the exact commit that was proven, and its work tree with it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from becket.kernel.contract.base import Record
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import BecketError

PROMOTE = "git.promote"
NOT_WATCHED = "branch_not_watched"
"""Raised of a proven branch that the loop does not watch: it is neither pushed nor released by itself."""
SHA_PATTERN = r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$"


class WhyNot(StrEnum):
    """Why a branch stayed where it was. Every one of them leaves branch, index and files as they were found."""

    main_moved = "main_moved"  # it does not have the value the proof began with
    not_fast_forward = "not_fast_forward"  # the proven commit does not contain that value
    main_dirty = "main_dirty"  # somebody's work lies on a path that would change
    main_busy = "main_busy"  # another git is at work there, or a merge, rebase or the like is unfinished
    ref_locked = "ref_locked"  # another git holds the branch's own lock
    unsupported = "unsupported"  # not safely possible in this repository, and waiting will not help
    failed = "failed"  # git or the disk gave up on the way, or a process was killed


class PromoteRequest(Record):
    """What is asked for. Hashes, never names (L3)."""

    branch: str = Field(min_length=1)  # without refs/heads/
    old: str = Field(pattern=SHA_PATTERN)
    new: str = Field(pattern=SHA_PATTERN)
    proof: str = Field(min_length=1)  # the digest of the verdict that allows it
    key: str = Field(min_length=1, pattern=r"^\S+$")  # the effect's; it is named in the branch's reflog

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if self.old == self.new:
            raise ValueError(f"{self.branch} would stay at {self.new}; there is nothing to promote")
        return self

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"


def promote_call(request: PromoteRequest) -> EffectCall:
    """The one form of this effect; a permit for it is good for exactly this move with exactly this proof."""
    payload = {"new": request.new, "old": request.old, "proof": request.proof}
    return EffectCall(name=PROMOTE, target=request.ref, payload=payload)


class Promoted(Record):
    """The branch has the proven value, and so has the work tree that stands on it, if there is one."""

    branch: str
    old: str
    new: str
    worktree: Path | None


class NotPromoted(Record):
    """The branch was not moved by us. `message` says what to do next."""

    reason: WhyNot
    message: str
    paths: tuple[str, ...] = ()  # for main_dirty: where somebody's work lies
    main: str | None = None  # for main_moved: the value found


class ProcessMark(Record):
    """One process for good: a process id is given away again, together with its start it is not."""

    pid: int
    started: str


class LockMark(Record):
    """One lock file for good: an inode number alone is given to the next file."""

    path: Path
    device: int
    inode: int
    modified_ns: int


class PromoteIntent(Record):
    """Written before anything is touched, so that a later process can tell our traces from anybody else's."""

    request: PromoteRequest
    worktree: Path | None  # None: the branch is checked out nowhere
    git_dir: Path  # of that work tree, or the repository's
    owner: ProcessMark
    transaction: ProcessMark  # the git that holds the ref's lock
    index_locks: tuple[LockMark, ...]
    ref_locks: tuple[LockMark, ...] = ()  # known only once git has taken them
    writing: bool = False  # files may be new


class IntentHeld(BecketError):
    """Another promotion is under way, or a git that an ended one had started still lives."""
