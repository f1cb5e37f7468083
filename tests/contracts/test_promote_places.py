"""Promote and where the branch is checked out: here, in a linked tree, nowhere, twice, or in the middle of it all."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repos import commit, git
from promote_world import World

from becket.kernel.contract.promote import NotPromoted, Promoted, WhyNot
from becket.kernel.git.repository import discover


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def linked(world: World, branch: str, name: str = "linked") -> Path:
    git(world.home, "worktree", "add", "--quiet", str(world.folder / name), branch)
    return world.folder / name


def test_a_linked_tree_that_stands_on_the_branch_moves_with_it(world: World) -> None:
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--create", "side")
    tree = linked(world, "main")
    (tree / "keep.txt").write_text("mine\n")
    before = world.seen()
    answer = world.promote(new)
    assert isinstance(answer, Promoted)
    assert answer.worktree == tree
    assert (tree / "app.py").read_text() == "x = 2\n"
    assert git(tree, "status", "--porcelain") == "M keep.txt"
    assert (before.files, before.index, before.head) == (world.seen().files, world.seen().index, world.seen().head)
    world.no_traces()


@pytest.mark.parametrize("where", ["linked", "home"])
def test_it_does_not_matter_in_which_tree_becket_was_started(world: World, where: str) -> None:
    new = world.candidate()
    git(world.home, "branch", "side")
    tree = linked(world, "side")
    if where == "linked":
        git(tree, "checkout", "--quiet", "--detach")
        git(world.home, "switch", "--quiet", "side")
        git(tree, "switch", "--quiet", "main")
        world.landed(world.promote(new, at=world.home), new, tree)
    else:
        world.landed(world.promote(new, at=tree), new, world.home)


def test_nowhere_checked_out_the_ref_alone_moves(world: World) -> None:
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--create", "side")
    (world.home / "app.py").write_text("mine\n")
    before = world.seen()
    answer = world.promote(new)
    assert isinstance(answer, Promoted)
    assert answer.worktree is None
    assert world.main() == new
    assert (before.files, before.index, before.head) == (world.seen().files, world.seen().index, world.seen().head)
    assert git(world.home, "log", "-1", "--walk-reflogs", "--format=%gs", "main") == "becket: promote run_1"
    world.no_traces()


def test_a_detached_head_stays_where_it_is(world: World) -> None:
    new = world.candidate()
    git(world.home, "checkout", "--quiet", "--detach")
    before = world.seen()
    world.landed(world.promote(new), new)
    assert (before.files, before.index) == (world.seen().files, world.seen().index)
    assert git(world.home, "rev-parse", "HEAD") == world.old


def test_a_bare_repository_has_only_the_ref(world: World) -> None:
    new = world.candidate()
    git(world.folder, "clone", "--quiet", "--bare", str(world.home), "bare.git")
    world.home = world.folder / "bare.git"
    answer = world.landed(world.promote(new), new)
    assert answer.worktree is None
    assert not (world.home / "index").exists()


def test_a_bare_repository_with_a_linked_tree_moves_that_tree(world: World) -> None:
    new = world.candidate()
    git(world.folder, "clone", "--quiet", "--bare", str(world.home), "bare.git")
    world.home = world.folder / "bare.git"
    tree = linked(world, "main")
    world.landed(world.promote(new), new, tree)
    with pytest.raises(AssertionError, match="work tree"):
        git(world.home, "status")


def test_started_in_a_linked_tree_of_a_bare_repository(world: World) -> None:
    new = world.candidate()
    git(world.folder, "clone", "--quiet", "--bare", str(world.home), "bare.git")
    world.home = world.folder / "bare.git"
    git(world.home, "branch", "side", "main")
    tree = linked(world, "side")
    answer = world.landed(world.promote(new, at=tree), new)
    assert answer.worktree is None


def test_a_git_directory_that_lies_elsewhere(world: World) -> None:
    new = world.candidate()
    git(world.home, "init", "--quiet", "--separate-git-dir", str(world.folder / "elsewhere"))
    world.landed(world.promote(new), new, world.home)


def test_a_main_tree_whose_place_git_does_not_tell(world: World) -> None:
    new = world.candidate()
    git(world.home, "init", "--quiet", "--separate-git-dir", str(world.folder / "elsewhere"))
    git(world.home, "branch", "side")
    tree = linked(world, "side")
    answer = world.promote(new, at=tree)
    assert isinstance(answer, NotPromoted)
    assert answer.reason is WhyNot.main_busy
    assert world.main() == world.old


def test_a_head_that_is_a_symbolic_link(world: World) -> None:
    """What core.preferSymlinkRefs makes: read as a file it would look detached."""
    new = world.candidate()
    head = world.common / "HEAD"
    head.unlink()
    head.symlink_to("refs/heads/main")
    world.landed(world.promote(new), new, world.home)


def test_twice_checked_out_is_busy(world: World) -> None:
    new = world.candidate()
    git(world.home, "worktree", "add", "--quiet", "--force", str(world.folder / "twice"), "main")
    answer = world.refused(WhyNot.main_busy, world.promote(new), world.seen())
    assert str(world.folder / "twice") in answer.message


def test_a_tree_that_is_gone_holds_nothing_and_one_out_of_reach_does(world: World) -> None:
    """L9: a registration left behind does not block; a locked one means that the tree will come back."""
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--create", "side")
    tree = linked(world, "main")
    git(world.home, "worktree", "lock", str(tree))
    shutil.move(tree, world.folder / "away")
    world.refused(WhyNot.main_busy, world.promote(new), world.seen())
    (world.common / "worktrees/linked/locked").unlink()
    world.landed(world.promote(new), new)


def conflicting(world: World) -> None:
    git(world.home, "branch", "other")
    git(world.home, "switch", "--quiet", "other")
    commit(world.home, {"keep.txt": "theirs\n"})
    commit(world.home, {"keep.txt": "theirs again\n"})
    git(world.home, "switch", "--quiet", "main")


def merge(world: World) -> None:
    git(world.home, "merge", "--no-commit", "--no-ff", "other")


def rebase(world: World) -> None:
    git(world.home, "rebase", "--quiet", "--force-rebase", "--exec", "false", "HEAD~1", ok=(1,))


def cherry_pick(world: World) -> None:
    git(world.home, "cherry-pick", "other", ok=(1,))


def cherry_pick_between_two(world: World) -> None:
    """The conflict was committed by hand: only the sequencer knows that it goes on."""
    (world.home / "keep.txt").write_text("ours\n")
    world.old = world.commit("ours")
    git(world.home, "cherry-pick", "HEAD..other", ok=(1,))
    git(world.home, "checkout", "--quiet", "--ours", "keep.txt")
    git(world.home, "add", "keep.txt")
    git(world.home, "commit", "--quiet", "--allow-empty", "-m", "by hand")
    world.old = world.main()


def revert(world: World) -> None:
    git(world.home, "revert", "--no-commit", "HEAD")


def bisect(world: World) -> None:
    git(world.home, "bisect", "start")


def bisect_elsewhere(world: World) -> None:
    git(world.home, "bisect", "start")
    git(world.home, "checkout", "--quiet", "--detach")


def rebase_in_linked_tree(world: World) -> None:
    git(world.home, "switch", "--quiet", "--create", "side")
    tree = linked(world, "main")
    git(tree, "rebase", "--quiet", "--force-rebase", "--exec", "false", "HEAD~1", ok=(1,))


def conflict_without_a_merge(world: World) -> None:
    """What `git stash pop` leaves."""
    (world.home / "keep.txt").write_text("stashed\n")
    git(world.home, "stash", "--quiet")
    (world.home / "keep.txt").write_text("staged\n")
    git(world.home, "add", "keep.txt")
    git(world.home, "stash", "pop", ok=(1,))
    blob = git(world.home, "rev-parse", "HEAD:keep.txt")
    lines = f"0 {'0' * 40}\tkeep.txt\n100644 {blob} 2\tkeep.txt\n100644 {blob} 3\tkeep.txt\n"
    subprocess.run(["git", "update-index", "--index-info"], cwd=world.home, input=lines, text=True, check=True)


UNFINISHED: list[Callable[[World], None]] = [
    merge,
    rebase,
    cherry_pick,
    cherry_pick_between_two,
    revert,
    bisect,
    bisect_elsewhere,
    rebase_in_linked_tree,
    conflict_without_a_merge,
]


@pytest.mark.parametrize("begin", UNFINISHED)
def test_in_the_middle_of_something_is_busy(world: World, begin: Callable[[World], None]) -> None:
    conflicting(world)
    with world.making() as made:
        world.change({"app.py": "x = 2\n"})
    begin(world)
    new = made.sha
    if world.main() != git(world.home, "merge-base", "main", new):
        new = git(world.home, "commit-tree", f"{new}^{{tree}}", "-p", world.old, "-m", "on top")
    assert world.main() == world.old
    world.refused(WhyNot.main_busy, world.promote(new), world.seen())


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock", "HEAD.lock"])
def test_somebodys_lock_is_respected_and_stays(world: World, name: str) -> None:
    new = world.candidate()
    lock = world.common / name
    lock.touch()
    before = world.seen()
    reason = WhyNot.main_busy if name == "index.lock" else WhyNot.ref_locked
    answer = world.refused(reason, world.promote(new), before)
    assert lock.exists()
    assert "remove" in answer.message
    lock.unlink()
    world.landed(world.promote(new), new, world.home)


def test_a_lock_in_a_tree_of_another_branch_matters_only_where_it_could_be_a_switch(world: World) -> None:
    """Nowhere checked out, a tree could be on its way to the branch; not for ten seconds, though."""
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--create", "side")
    lock = world.common / "index.lock"
    lock.touch()
    world.refused(WhyNot.main_busy, world.promote(new), world.seen())
    long_ago = time.time() - 60
    os.utime(lock, (long_ago, long_ago))
    answer = world.promote(new)
    assert isinstance(answer, Promoted)
    assert lock.exists()
    world.no_traces()


def test_a_symbolic_branch_is_refused(world: World) -> None:
    new = world.candidate()
    git(world.home, "branch", "trunk")
    git(world.home, "switch", "--quiet", "trunk")
    git(world.home, "symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    world.refused(WhyNot.unsupported, world.promote(new), world.seen())


def test_refs_that_are_no_files_are_refused(world: World) -> None:
    new = world.candidate()
    (world.common / "reftable").mkdir()
    (world.common / "reftable/tables.list").touch()
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert answer.reason is WhyNot.unsupported


def test_packed_refs_move_too(world: World) -> None:
    new = world.candidate()
    git(world.home, "pack-refs", "--all")
    world.landed(world.promote(new), new, world.home)


def test_a_branch_with_a_slash_in_a_submodule(world: World) -> None:
    outer = World(world.folder / "outer")
    git(outer.home, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.home), "lib")
    inner = discover(outer.home / "lib")
    assert inner.common_dir == outer.home / ".git/modules/lib"
    world.home = outer.home / "lib"
    new = world.candidate()
    world.landed(world.promote(new), new, world.home)
