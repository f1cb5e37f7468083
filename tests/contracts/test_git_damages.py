"""Whatever a contained program does to its tree: git outside still answers, and the next checkout is as good as new."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository
from tree_damages import DEEDS, VOIDING, chosen, damage

from becket.kernel.contract.git import Workspace
from becket.kernel.git.repository import GitRepository, discover
from becket.kernel.git.resident import Resident

ALONE = [name for name in DEEDS if name != "writer_left_running"]  # nothing ends it here
SOON = 50.0
"""Seconds: a git that waits at a pipe is ended after a minute."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: each damage comes after the ones before."""
    return new_repository(tmp_path_factory.mktemp("damages") / "home")


async def survived(home: Path, folder: Path, tree: Path | None, names: list[str]) -> Workspace:
    """The life of a tree: opened, damaged, looked at, saved, opened at another commit, damaged again, closed."""
    port = discover(home)
    begun = time.monotonic()
    workspace = await port.open_workspace(folder, "main", tree)
    damage(workspace.tree, names)
    state = await port.status(workspace, untracked=False)
    if any(DEEDS[name] in VOIDING for name in names):
        assert state.changed
    await port.status(workspace)
    assert await port.find_workspace(folder) == workspace
    await port.rescue(workspace, "left", "what was left")
    await is_new(port, await port.open_workspace(folder, commit(home, {"app.py": f"{time.time_ns()}\n"}), tree))
    damage(workspace.tree, names)
    await port.close_workspace(folder)
    assert not workspace.tree.exists()
    assert time.monotonic() - begun < SOON
    return workspace


async def is_new(port: GitRepository, workspace: Workspace) -> None:
    assert (await port.status(workspace)).clean
    assert git(workspace.tree, "rev-parse", "HEAD") == workspace.sha
    assert git(workspace.tree, "status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("name", ALONE)
def test_a_tree_where_people_look_is_ours_whatever_was_done_in_it(home: Path, name: str) -> None:
    """L9: by its folder, which nobody inside can change."""
    folder, tree = home / ".git/becket/worktrees/test", home / ".worktrees/base"
    asyncio.run(survived(home, folder, tree, [name]))
    assert list(tree.parent.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 64))
def test_damages_together_are_no_more_than_each(home: Path, tmp_path: Path, seed: int) -> None:
    names = [name for name in chosen(seed) if name in ALONE]
    asyncio.run(survived(home, tmp_path / "runs/run_1", None, names))
    asyncio.run(survived(home, home / ".git/becket/worktrees/test", home / ".worktrees/base", names))


def test_a_link_to_the_git_of_a_persons_worktree_makes_our_tree_not_theirs(home: Path, tmp_path: Path) -> None:
    folder, tree = home / ".git/becket/worktrees/test", home / ".worktrees/base"
    git(home, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    port = discover(home)
    asyncio.run(port.open_workspace(folder, "main", tree))
    damage(tree, ["git_removed"])
    (tree / ".git").symlink_to(tmp_path / "side/.git")
    asyncio.run(is_new(port, asyncio.run(port.open_workspace(folder, "main", tree))))
    assert git(tmp_path / "side", "status", "--porcelain") == ""


def test_a_folder_made_anew_in_the_same_place_is_another_one(tmp_path: Path) -> None:
    """Even where it gets the inode of the one before."""
    (tmp_path / "tree").mkdir()
    known = Resident(tmp_path / "tree", "token").made()
    assert known.ours
    for _ in range(50):
        (tmp_path / "tree").rmdir()
        (tmp_path / "tree").mkdir()
        assert not known.ours
