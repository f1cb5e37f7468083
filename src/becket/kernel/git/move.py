"""Moves one ref by compare-and-swap (L3), with the door's permit, and never under somebody's work tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from becket.kernel.contract.effect import EffectCall, Permit, demand
from becket.kernel.contract.errors import EffectRefused, GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.git.program import GitCommandFailed, run
from becket.kernel.git.refs import Refs, read_text

UPDATE_REF = "git.update_ref"
PROPOSE = "git.propose"
PROPOSALS = "refs/heads/becket/"
"""Branches that Becket offers to people; nobody's own work is kept there."""


class RefLost(GitFailed):
    """A compare-and-swap found another value than the expected one; nothing was changed."""


class RefBusy(GitFailed):
    """Another git holds the ref's lock; the same call may succeed in a moment."""


class BranchInUse(GitFailed):
    """The branch is checked out: moving it would make that work tree look changed by its owner."""


def update_ref_call(ref: str, new: str, old: str | None) -> EffectCall:
    """The one form of this effect; a permit for it is good for exactly this move."""
    return EffectCall(name=UPDATE_REF, target=ref, payload={"new": new, "old": old})


async def move_ref(refs: Refs, ref: str, new: str, old: str | None, permit: Permit) -> None:
    if not isinstance(permit, Permit) or not permit.covers(update_ref_call(ref, new, old)):
        raise EffectRefused(f"moving {ref} to {new} was not let out by the door; nothing was changed")
    await _move(refs, ref, new, old)


def propose_call(ref: str, new: str) -> EffectCall:
    """The one form of this effect; a permit for it is good for exactly this new branch."""
    return EffectCall(name=PROPOSE, target=ref, payload={"new": new})


async def propose_ref(refs: Refs, ref: str, new: str, permit: Permit) -> None:
    """Make a branch of Becket's own. One that is there at the same commit already is as good as made."""
    demand(permit, propose_call(ref, new))
    if not ref.startswith(PROPOSALS):
        raise GitFailed(f"{ref} is not below {PROPOSALS}; only branches there are proposals")
    try:
        await _move(refs, ref, new, None)
    except (RefLost, BranchInUse):
        if await refs.value(ref) != new:
            raise


async def withdraw_ref(refs: Refs, ref: str, at: str) -> bool:
    """Remove a branch of Becket's own that is still `at` this commit; one that a work tree stands on stays."""
    ours = ref.startswith(PROPOSALS) and ref_problem(ref) is None
    if not ours or await refs.value(ref) != at or ref in await branches_in_use(refs):
        return False
    try:
        await run(refs.place, "update-ref", "--no-deref", "--stdin", "-z", stdin=f"delete {ref}\0{at}\0".encode())
    except GitCommandFailed as failed:
        raise explained(ref, failed) from failed
    return True


async def _move(refs: Refs, ref: str, new: str, old: str | None) -> None:
    if problem := ref_problem(ref):
        raise GitFailed(problem)
    if where := (await branches_in_use(refs)).get(ref):
        raise BranchInUse(f"{ref} is checked out at {where}; switch that work tree to another branch first")
    change = f"create {ref}\0{new}\0" if old is None else f"update {ref}\0{new}\0{old}\0"
    try:
        await run(refs.place, "update-ref", "--no-deref", "-m", "becket", "--stdin", "-z", stdin=change.encode())
    except GitCommandFailed as failed:
        raise explained(ref, failed) from failed


def explained(ref: str, failed: GitCommandFailed) -> GitFailed:
    """A ref that git would not move: RefBusy, RefLost, or the failure itself."""
    if "File exists" in failed.stderr:
        return RefBusy(f"another git is moving {ref}; nothing was changed: {failed.stderr.splitlines()[0]}")
    signs_of_loss = ("but expected", "reference already exists", "unable to resolve reference")
    if any(sign in failed.stderr for sign in signs_of_loss):
        return RefLost(f"{ref} is not where it was expected; nothing was changed: {failed.stderr}")
    return failed


async def branches_in_use(refs: Refs) -> Mapping[str, str]:
    """Branches that some work tree stands on, or is busy with, and where. Work trees that are gone do not count."""
    in_use: dict[str, str] = {}
    listing = await run(refs.place, "worktree", "list", "--porcelain")
    for entry in listing.text.split("\n\n"):
        fields = dict(line.partition(" ")[::2] for line in entry.splitlines())
        if "branch" in fields and "prunable" not in fields:
            in_use[fields["branch"]] = fields["worktree"]
    for admin in (refs.common_dir, *sorted(refs.common_dir.glob("worktrees/*"))):
        for ref in under_way(admin):
            in_use.setdefault(ref, f"a rebase or bisect recorded in {admin}")
    return in_use


def under_way(admin: Path) -> Iterator[str]:
    """Branches a rebase or bisect will come back to: HEAD is detached meanwhile."""
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"):
        yield from (line for line in (read_text(admin / name) or "").splitlines() if line.startswith("refs/heads/"))
    if start := read_text(admin / "BISECT_START"):
        yield f"refs/heads/{start.removeprefix('refs/heads/')}"
