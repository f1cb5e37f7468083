"""The Git port and submodules: a workspace has their files, from what the repository has; nothing is fetched."""

from __future__ import annotations

import asyncio
from pathlib import Path

from git_repos import commit, git, new_repository, write

from becket.kernel.contract.candidate import CommitMade
from becket.kernel.contract.git import TreeState, Workspace
from becket.kernel.git.repository import discover


def with_submodule(tmp_path: Path) -> Path:
    """`home` with `lib/inner`, which itself has the submodule `deep`."""
    deep, inner, home = (new_repository(tmp_path / name) for name in ("deep", "inner", "home"))
    for outer, path, part in ((inner, "deep", deep), (home, "lib/inner", inner)):
        git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part), path)
        git(outer, "commit", "--quiet", "-m", "with a part")
    git(home, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    return home


def opened(home: Path) -> tuple[Workspace, TreeState]:
    async def go() -> tuple[Workspace, TreeState]:
        repository = discover(home)
        workspace = await repository.open_workspace(home / ".git/becket/w", "HEAD")
        return workspace, await repository.status(workspace)

    return asyncio.run(go())


def test_a_workspace_has_the_files_of_its_submodules(tmp_path: Path) -> None:
    home = with_submodule(tmp_path)
    workspace, state = opened(home)
    inner = workspace.tree / "lib/inner"
    assert (inner / "app.py").read_text() == (inner / "deep/app.py").read_text() == "x = 1\n"
    assert state.clean, state
    (inner / "app.py").write_text("x = 2\n")
    (inner / "left").touch()
    assert (opened(home)[0].tree / "lib/inner/app.py").read_text() == "x = 1\n"  # L5
    assert not (inner / "left").exists()


def test_what_a_program_writes_into_a_submodule_is_part_of_no_commit(tmp_path: Path) -> None:
    home = with_submodule(tmp_path)
    workspace, _ = opened(home)
    write(workspace.tree, {"app.py": "x = 2\n", "lib/inner/app.py": "x = 3\n", "lib/inner/made.py": ""})
    made = asyncio.run(discover(home).candidates().commit_work(workspace, "Mend it", "candidate/run_1"))
    assert isinstance(made, CommitMade)
    assert git(home, "diff", "--name-only", "HEAD", made.sha) == "app.py"
    workspace = asyncio.run(discover(home).open_workspace(home / ".git/becket/w", "HEAD~1"))
    write(workspace.tree, {"lib/inner/made.py": ""})  # no submodule of this commit
    made = asyncio.run(discover(home).candidates().commit_work(workspace, "Mend it", "candidate/run_2"))
    assert isinstance(made, CommitMade)
    assert git(home, "diff", "--name-only", "HEAD~1", made.sha) == "lib/inner/made.py"


def test_a_submodule_that_is_not_there_stays_empty(tmp_path: Path) -> None:
    """Its name is the commit's own word: it leads nowhere but below the repository's `modules`."""
    home = with_submodule(tmp_path)
    text = (home / ".gitmodules").read_text()
    commit(home, {".gitmodules": text.replace('"lib/inner"', '"../../../inner/.git"')})
    workspace, state = opened(home)
    assert list((workspace.tree / "lib/inner").iterdir()) == []
    assert state.clean
