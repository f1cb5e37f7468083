"""The Git port and git-lfs: a workspace has the real files, from what the repository has; nothing is fetched."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, write

from becket.kernel.contract.candidate import CommitMade
from becket.kernel.contract.git import TreeState, Workspace
from becket.kernel.git.lfs import absent
from becket.kernel.git.repository import discover

pytestmark = pytest.mark.slow

REAL = "the real file\n" * 100
POINTER = "version https://git-lfs"


def with_large_file(tmp_path: Path) -> Path:
    home = new_repository(tmp_path / "home")
    git(home, "lfs", "install", "--local")
    commit(home, {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "big/a.bin": REAL})
    assert git(home, "show", "HEAD:big/a.bin").startswith(POINTER)
    return home


def opened(home: Path) -> tuple[Workspace, TreeState]:
    async def go() -> tuple[Workspace, TreeState]:
        repository = discover(home)
        workspace = await repository.open_workspace(home / ".git/becket/w", "HEAD")
        return workspace, await repository.status(workspace)

    return asyncio.run(go())


def test_a_workspace_has_the_real_file_and_is_clean_outside_and_inside(tmp_path: Path) -> None:
    home = with_large_file(tmp_path)
    for _ in range(2):
        workspace, state = opened(home)
        assert (workspace.tree / "big/a.bin").read_text() == REAL
        assert state.clean, state
        assert git(workspace.tree, "status", "--porcelain") == ""
        (workspace.tree / "big/a.bin").write_text("spoilt")  # L5
        assert [*asyncio.run(discover(home).status(workspace)).changed] == ["big/a.bin"]


def test_a_file_that_is_not_here_stays_a_pointer_and_comes_later(tmp_path: Path) -> None:
    """As after a clone without `git lfs pull`; the same workspace has it once the clone does."""
    home = with_large_file(tmp_path)
    store = home / ".git/lfs/objects"
    (oid,) = (path for path in store.glob("*/*/*") if path.is_file())
    kept = shutil.move(oid, tmp_path / "kept")
    workspace, state = opened(home)
    assert (workspace.tree / "big/a.bin").read_text().startswith(POINTER)
    assert state.clean, state
    repository = discover(home)
    assert asyncio.run(absent(repository.place, repository.common_dir, "HEAD")) == ["big/a.bin"]
    shutil.move(kept, oid)
    assert (opened(home)[0].tree / "big/a.bin").read_text() == REAL
    assert asyncio.run(absent(repository.place, repository.common_dir, "HEAD")) == []


def test_a_changed_large_file_is_a_pointer_in_the_commit_and_the_repository_has_what_it_names(tmp_path: Path) -> None:
    home = with_large_file(tmp_path)
    workspace, _ = opened(home)
    write(workspace.tree, {"big/a.bin": "another\n", "app.py": "x = 2\n"})
    made = asyncio.run(discover(home).candidates().commit_work(workspace, "Mend it", "candidate/run_1"))
    assert isinstance(made, CommitMade)
    assert git(home, "show", f"{made.sha}:big/a.bin").startswith(POINTER)
    asyncio.run(discover(home).close_workspace(home / ".git/becket/w"))
    again = asyncio.run(discover(home).open_workspace(home / ".git/becket/v", made.sha))
    assert (again.tree / "big/a.bin").read_text() == "another\n"


def test_a_repository_without_large_files_knows_nothing_of_git_lfs(tmp_path: Path) -> None:
    home = new_repository(tmp_path / "home")
    commit(home, {".gitattributes": "*.txt text\n"})
    workspace, state = opened(home)
    assert state.clean
    assert "lfs" not in (workspace.git_dir / "config").read_text()
