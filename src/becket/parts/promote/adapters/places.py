"""Where a branch is checked out, and whether somebody is in the middle of something there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.promote import NotPromoted, WhyNot
from becket.kernel.git.move import under_way
from becket.kernel.git.program import GitPlace, run
from becket.kernel.git.refs import Refs, read_text

_UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick or revert of several commits",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
    "BISECT_LOG": "a bisect",
}


class PromotionRefused(Exception):
    """Leaves the recipe from any depth with the answer it will give."""

    def __init__(self, reason: WhyNot, message: str, paths: tuple[str, ...] = (), main: str | None = None) -> None:
        super().__init__(message)
        self.answer = NotPromoted(reason=reason, message=message, paths=paths, main=main)


@dataclass(frozen=True, slots=True)
class WorkTree:
    """One work tree of a repository, and the git directory that is its own."""

    git_dir: Path
    folder: Path | None  # None: git does not say where it is

    @property
    def head(self) -> str:
        """What HEAD holds: a hash, or `ref: refs/heads/...`."""
        file = self.git_dir / "HEAD"
        if file.is_symlink():  # what core.preferSymlinkRefs makes
            return f"ref: {file.readlink()}"
        return read_text(file) or ""

    @property
    def reachable(self) -> bool:
        return self.folder is not None and self.folder.is_dir()


async def work_trees(refs: Refs) -> list[WorkTree]:
    """All but those that are gone for good (L9). One that is merely out of reach, and locked for that, counts."""
    linked = [tree for admin in sorted(refs.common_dir.glob("worktrees/*")) for tree in _linked(admin)]
    return [*await _first(refs), *linked]


async def _first(refs: Refs) -> list[WorkTree]:
    """The work tree that `git init` made; a bare repository has none."""
    if refs.place.git_dir == refs.common_dir:
        return [] if refs.place.work_tree is None else [WorkTree(refs.common_dir, refs.place.work_tree)]
    command = ("config", "--null", "--get-regexp", r"^core\.(bare|worktree)$")
    output = await run(GitPlace(refs.common_dir), *command, ok=(0, 1))
    lines = os.fsdecode(output.stdout).split("\0")[:-1]
    settings = {name: value for name, _, value in (line.partition("\n") for line in lines)}
    if settings.get("core.bare") == "true":
        return []
    if "core.worktree" in settings:
        return [WorkTree(refs.common_dir, refs.common_dir / settings["core.worktree"])]
    return [WorkTree(refs.common_dir, refs.common_dir.parent if refs.common_dir.name == ".git" else None)]


def _linked(admin: Path) -> Iterator[WorkTree]:
    try:
        pointer = os.fsdecode((admin / "gitdir").read_bytes()).rstrip("\n")
    except OSError:
        return
    dot_git = admin / pointer
    if dot_git.exists() or (admin / "locked").exists():
        yield WorkTree(admin, dot_git.parent)


def standing_on(trees: list[WorkTree], ref: str) -> WorkTree | None:
    """The one work tree that has the branch checked out, or None; refuses where somebody's work is unfinished."""
    for tree in trees:
        if ref in under_way(tree.git_dir):
            raise _busy(f"a rebase or bisect that will come back to {ref} is unfinished", tree, "finish or abort it")
    found = [tree for tree in trees if tree.head == f"ref: {ref}"]
    if len(found) > 1:
        places = " and ".join(str(tree.folder) for tree in found)
        raise PromotionRefused(
            WhyNot.main_busy, f"{ref} is checked out more than once, at {places}; switch all but one to another branch"
        )
    if not found:
        return None
    tree = found[0]
    if not tree.reachable:
        raise _busy(f"{ref} is checked out where it cannot be reached", tree, "mount it, or run `git worktree prune`")
    for name, what in _UNFINISHED.items():
        if (tree.git_dir / name).exists():
            raise _busy(f"{what} is unfinished", tree, "finish or abort it")
    return tree


def _busy(what: str, tree: WorkTree, advice: str) -> PromotionRefused:
    return PromotionRefused(WhyNot.main_busy, f"{what} at {tree.folder or tree.git_dir}; {advice}")
