"""What a ref of ours names is whole, whatever the person's `git gc` removes, and whenever it does so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from gc_beside import GcBeside
from git_repos import commit, git, new_repository, write

from becket.adapters.git.repository import GitRepository, discover
from becket.contract.candidate import Made
from becket.contract.git import Workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


def is_whole(home: Path) -> None:
    git(home, "fsck", "--full", "--strict", "--no-dangling")
    git(home, "gc", "--quiet", "--prune=now")


async def work(repository: GitRepository, workspace: Workspace, number: int) -> None:
    """A candidate with a new folder, its crossing, the same carried over and undone, and what was left."""
    candidates, folder = repository.candidates(), workspace.tree.parents[1] / "index"
    write(workspace.tree, {"app.py": f"x = {number}\n", f"new/{number}/file.py": f"y = {number}\n"})
    made = await candidates.commit_work(workspace, "Mend it", f"candidate/run_{number}/1")
    assert made is not None
    await candidates.with_side_of(made.sha, made.parent, lambda path: "new" in path, "Cross", f"crossing/run_{number}")
    other = (await repository.resolve("refs/heads/other")) or ""
    assert isinstance(await candidates.carry_over(made.sha, other, folder, "Mend it", f"candidate/{number}/o"), Made)
    assert isinstance(await candidates.undo(made.sha, made.sha, folder, "Undo it", f"candidate/{number}/u"), Made)
    assert await repository.rescue(workspace, f"run_{number}", "becket: what is left") is not None


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_gc_around_every_git_command_breaks_no_ref_and_stops_no_work(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    git(home, "switch", "--quiet", "-c", "other")
    commit(home, {"other.py": "o = 1\n"})
    git(home, "switch", "--quiet", "main")
    repository = discover(home)
    workspace = asyncio.run(repository.open_workspace(tmp_path / "run_1", "main"))
    with monkeypatch.context() as patch:
        beside = GcBeside(home, tmp_path, patch, seed)
        asyncio.run(work(repository, workspace, seed))
    assert beside.rounds > 30
    assert beside.failures == ""
    assert len(git(home, "for-each-ref", "refs/becket").splitlines()) == 5
    is_whole(home)
