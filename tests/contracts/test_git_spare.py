"""The Git port: the files of a tree that its run needs no more serve the next one, and nothing but the files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, write

from becket.kernel.contract.git import Workspace
from becket.kernel.git.repository import discover


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


def opened(home: Path, folder: Path, revision: str = "main") -> Workspace:
    return asyncio.run(discover(home).open_workspace(folder, revision))


def spared(home: Path, folder: Path) -> None:
    asyncio.run(discover(home).spare_workspace(folder))


def runs(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "run_1" / "proof", tmp_path / "run_2" / "proof"


def test_the_next_run_has_the_files_that_the_last_one_made(home: Path, tmp_path: Path) -> None:
    first, second = runs(tmp_path)
    made = (opened(home, first).tree / "src/lib.py").stat().st_ino
    changed = commit(home, {"app.py": "x = 2\n"})
    spared(home, first)
    assert not first.exists()
    workspace = opened(home, second, changed)
    assert (workspace.tree / "src/lib.py").stat().st_ino == made
    assert (workspace.tree / "app.py").read_text() == "x = 2\n"
    assert asyncio.run(discover(home).status(workspace)).clean
    assert git(workspace.tree, "status", "--porcelain") == ""
    assert git(workspace.tree, "fsck", "--connectivity-only") == ""


def test_what_is_not_committed_is_gone_before_it_is_kept(home: Path, tmp_path: Path) -> None:
    first, _ = runs(tmp_path)
    tree = opened(home, first).tree
    write(tree, {"secret.env": "TOKEN=1\n", "src/.git/config": "", "src/lib.pyc": "stale"})
    spared(home, first)
    kept = home / ".git" / "becket" / "spares" / "proof" / "tree"
    assert sorted(path.name for path in kept.rglob("*")) == [".gitignore", "app.py", "lib.py", "src"]


def rewritten(file: Path) -> None:
    seen = file.stat()
    file.write_text("y = 9\n" if "y" in file.read_text() else "x = 9\n")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def linked(file: Path) -> None:
    os.link(file, file.parents[2] / "elsewhere")


TOUCHED: dict[str, Callable[[Path], None]] = {
    "of the same size and date": rewritten,
    "with another date": lambda file: os.utime(file, (1, 1)),
    "with other rights": lambda file: file.chmod(0o666),
    "that has a second name": linked,
}


@pytest.mark.parametrize("touch", TOUCHED.values(), ids=TOUCHED)
def test_a_file_that_a_program_touched_is_made_anew(home: Path, tmp_path: Path, touch: Callable[[Path], None]) -> None:
    """At the same commit too: nothing that the last run did to it is left for the next."""
    first, second = runs(tmp_path)
    file = opened(home, first).tree / "app.py"
    before = file.stat()
    touch(file)
    held = file.open("rb")  # so that its number is not given to another
    spared(home, first)
    after = (opened(home, second).tree / "app.py").stat()
    held.close()
    assert (second / "tree" / "app.py").read_text() == "x = 1\n"
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_nlink) == (before.st_mode, 1)


def test_folders_with_other_rights_are_not_kept(home: Path, tmp_path: Path) -> None:
    first, second = runs(tmp_path)
    folder = opened(home, first).tree / "src"
    usual = folder.stat().st_mode
    folder.chmod(0o777)
    spared(home, first)
    assert first.exists()
    assert (opened(home, second).tree / "src").stat().st_mode == usual


def test_one_is_kept_and_a_second_one_stays_where_it_is(home: Path, tmp_path: Path) -> None:
    first, second = runs(tmp_path)
    opened(home, first)
    opened(home, second)
    spared(home, first)
    spared(home, second)
    assert not first.exists()
    assert asyncio.run(discover(home).find_workspace(second)) is not None


def test_a_damaged_one_is_made_anew(home: Path, tmp_path: Path) -> None:
    first, second = runs(tmp_path)
    opened(home, first)
    spared(home, first)
    (home / ".git" / "becket" / "spares" / "proof" / "git" / "index").write_bytes(b"no index")
    workspace = opened(home, second)
    assert asyncio.run(discover(home).status(workspace)).clean
