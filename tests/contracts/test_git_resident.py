"""The Git port, a workspace whose tree lies where people look: made, reset, found and closed, and never taken."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, write

from becket.kernel.contract import crash
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import TreeHealth, Workspace
from becket.kernel.git.repository import discover
from becket.kernel.git.workspace import health, set_aside


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


def places(home: Path) -> tuple[Path, Path]:
    return home / ".git" / "becket" / "worktrees" / "test", home / ".worktrees" / "base"


def opened(home: Path, revision: str = "main") -> Workspace:
    folder, tree = places(home)
    return asyncio.run(discover(home).open_workspace(folder, revision, tree))


def found(home: Path) -> Workspace | None:
    return asyncio.run(discover(home).find_workspace(places(home)[0]))


def closed(home: Path) -> None:
    asyncio.run(discover(home).close_workspace(places(home)[0]))


def test_the_tree_lies_elsewhere_and_is_known_from_the_marker(home: Path) -> None:
    folder, tree = places(home)
    workspace = opened(home)
    assert (workspace.tree, workspace.git_dir) == (tree, folder / "git")
    assert (tree / "app.py").read_text() == "x = 1\n"
    assert not (folder / "tree").exists()
    assert found(home) == workspace
    assert asyncio.run(discover(home).status(workspace)).clean
    closed(home)
    assert not tree.exists()
    assert not folder.exists()
    assert found(home) is None


def test_a_reset_is_as_clean_as_anywhere(home: Path) -> None:
    """L5: and it goes to another commit."""
    tree = opened(home).tree
    write(tree, {"src/lib.pyc": "stale", "app.py": "changed\n", "new/file": ""})
    second = commit(home, {"app.py": "x = 2\n"})
    workspace = opened(home)
    assert workspace.sha == second == git(tree, "rev-parse", "HEAD")
    assert git(tree, "status", "--porcelain", "--ignored") == ""
    assert (tree / "app.py").read_text() == "x = 2\n"


def test_it_is_excluded_once_from_the_persons_sight(home: Path) -> None:
    """L9: by the repository's own exclude file, whatever its last line looks like."""
    exclude = home / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("*.swp")
    opened(home)
    opened(home)
    assert exclude.read_text() == "*.swp\n/.worktrees/\n"
    assert git(home, "status", "--porcelain") == ""
    exclude.write_text(".worktrees\n")
    opened(home)
    assert exclude.read_text() == ".worktrees\n"
    shutil.rmtree(exclude.parent)
    opened(home)
    assert exclude.read_text() == "/.worktrees/\n"


def test_a_persons_files_in_that_place_are_never_touched(home: Path) -> None:
    folder, tree = places(home)
    write(tree, {"precious": "mine\n"})
    with pytest.raises(GitFailed, match="did not make"):
        opened(home)
    assert (tree / "precious").read_text() == "mine\n"
    shutil.rmtree(tree)
    tree.mkdir()
    opened(home)
    shutil.rmtree(tree)
    write(tree, {"precious": "mine\n"})
    assert found(home) is None
    with pytest.raises(GitFailed, match="did not make"):
        closed(home)
    assert (tree / "precious").read_text() == "mine\n"
    assert folder.exists()


def test_a_new_folder_in_place_of_ours_is_moved_aside_and_told(home: Path) -> None:
    """L7, L9: a gate writes on after its tree was removed; that must not ask a person before every later gate."""
    folder, tree = places(home)
    opened(home)
    for _ in range(2):
        shutil.rmtree(tree)
        write(tree, {"report.xml": "of a gate\n"})
        assert health(folder, tree) is TreeHealth.damaged
        assert asyncio.run(discover(home).status(opened(home))).clean
    aside = set_aside(tree)
    assert [(path / "report.xml").read_text() for path in aside] == ["of a gate\n"] * 2
    shutil.rmtree(tree)
    tree.mkdir()
    opened(home)
    assert set_aside(tree) == aside, "an empty folder is nobody's"


def test_a_clone_of_the_persons_own_is_not_ours(home: Path, tmp_path: Path) -> None:
    tree = opened(home).tree
    shutil.rmtree(tree)
    git(tmp_path, "clone", "--quiet", str(home), str(tree))
    with pytest.raises(GitFailed, match="did not make"):
        opened(home)
    assert git(tree, "remote") == "origin"


def test_a_linked_worktree_in_that_place_is_refused(home: Path) -> None:
    """L9: registered, with its folder or without: abort, never proceed."""
    tree = places(home)[1]
    git(home, "worktree", "add", "--quiet", "-b", "side", str(tree))
    write(tree, {"precious": "mine\n"})
    with pytest.raises(GitFailed, match="linked worktree"):
        opened(home)
    assert (tree / "precious").exists()
    shutil.rmtree(tree)
    with pytest.raises(GitFailed, match="git worktree prune"):
        opened(home)
    git(home, "worktree", "prune")
    assert opened(home).tree == tree


def test_a_linked_worktree_put_in_place_of_ours_is_refused(home: Path) -> None:
    tree = opened(home).tree
    shutil.rmtree(tree)
    git(home, "worktree", "add", "--quiet", "-b", "side", str(tree))
    with pytest.raises(GitFailed, match="linked worktree"):
        opened(home)
    with pytest.raises(GitFailed, match="did not make"):
        closed(home)
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("part", [".worktrees", ".worktrees/base"])
def test_a_symbolic_link_leads_nobody_out(home: Path, tmp_path: Path, part: str) -> None:
    outside = tmp_path / "outside"
    write(outside, {"test/precious": "mine\n", "precious": "mine\n"})
    (home / part).parent.mkdir(exist_ok=True)
    (home / part).symlink_to(outside)
    with pytest.raises(GitFailed, match="not a folder"):
        opened(home)
    assert sorted(path.name for path in outside.rglob("*")) == ["precious", "precious", "test"]


def test_a_tree_that_is_gone_is_made_anew(home: Path) -> None:
    shutil.rmtree(opened(home).tree)
    assert found(home) is None
    assert asyncio.run(discover(home).status(opened(home))).clean
    shutil.rmtree(home / ".worktrees")
    closed(home)
    assert not places(home)[0].exists()


def test_a_moved_repository_keeps_its_tree_and_a_copy_leaves_the_originals_alone(home: Path, tmp_path: Path) -> None:
    tree = opened(home).tree
    copy = tmp_path / "copy"
    shutil.copytree(home, copy, symlinks=True)
    write(tree, {"mark": "original\n"})
    assert opened(copy).tree == copy / ".worktrees/base"
    closed(copy)
    assert (tree / "mark").exists()
    moved = tmp_path / "moved"
    home.rename(moved)
    assert opened(moved).tree == moved / ".worktrees/base"


def test_a_tree_by_the_name_of_an_earlier_version_is_moved_with_what_it_holds(home: Path) -> None:
    """A folder called `test` makes tests of every file in it, for node and others."""
    folder, tree = places(home)
    old = tree.with_name("test")
    asyncio.run(discover(home).open_workspace(folder, "main", old))
    (old / "mine").write_text("left here\n")
    before = old.stat().st_ino
    workspace = found(home)
    assert workspace is not None
    assert asyncio.run(discover(home).status(workspace)).untracked == ("mine",)
    write(home, {".worktrees/base/precious": "mine\n"})
    with pytest.raises(GitFailed, match="did not make"):
        opened(home)
    assert (old / "mine").exists()
    (tree / "precious").unlink()
    assert opened(home).tree == tree
    assert (tree.stat().st_ino, old.exists(), health(folder, tree)) == (before, False, TreeHealth.good)
    tree.rename(old)  # as a crash right after the move would leave it, the other way round
    assert opened(home).tree == tree


def test_one_folder_has_one_tree(home: Path, tmp_path: Path) -> None:
    folder, tree = places(home)
    opened(home)
    for other in (None, tmp_path / "elsewhere"):
        with pytest.raises(GitFailed, match="has its tree at"):
            asyncio.run(discover(home).open_workspace(folder, "main", other))
    assert (tree / "app.py").exists()
    assert not (tmp_path / "elsewhere").exists()


_OPEN = """
import asyncio, sys
from pathlib import Path
from becket.kernel.git.repository import discover
from becket.kernel.git.workspace import health, set_aside
asyncio.run(discover(Path(sys.argv[1])).open_workspace(Path(sys.argv[2]), "main", Path(sys.argv[3])))
"""


@pytest.mark.parametrize("again", [False, True], ids=["first time", "reset"])
@pytest.mark.parametrize("point", ["workspace.before_clone", "workspace.after_checkout", "workspace.before_marker"])
def test_a_kill_at_any_moment_leaves_a_tree_that_is_known_as_ours(home: Path, point: str, again: bool) -> None:
    """L4, L9: half made or half swept, it is nobody's but ours, and the next time it is whole."""
    if again:
        write(opened(home).tree, {"leftover": ""})
        if point == "workspace.before_clone":
            (places(home)[0] / "git/HEAD").write_text("broken\n")  # so that it cannot be reset
    folder, tree = places(home)
    ended = subprocess.run(
        [sys.executable, "-c", _OPEN, str(home), str(folder), str(tree)],
        env={**os.environ, crash.ENV: point}, check=False, capture_output=True,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert found(home) is None
    workspace = opened(home)
    assert found(home) == workspace
    assert sorted(path.name for path in tree.iterdir()) == [".git", ".gitignore", "app.py", "src"]
