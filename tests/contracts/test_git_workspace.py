"""The Git port, workspaces: clean means clean, and nothing a contained program leaves behind reaches us or main."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, planted_script, write

from becket.kernel.contract import crash
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.git.repository import discover


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "run_1"


def opened(home: Path, folder: Path, revision: str = "main") -> Workspace:
    return asyncio.run(discover(home).open_workspace(folder, revision))


def files_of(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if ".git" not in path.relative_to(tree).parts}


FIRST = {".gitignore", "app.py", "src", "src/lib.py"}


def test_a_new_workspace_is_the_commit_and_nothing_else(home: Path, folder: Path) -> None:
    """L4: HEAD and cleanliness are checked; the person's uncommitted work stays where it is."""
    write(home, {"app.py": "work in progress\n", "note.txt": "mine\n"})
    workspace = opened(home, folder)
    assert workspace.sha == git(home, "rev-parse", "main")
    assert files_of(workspace.tree) == FIRST
    assert (workspace.tree / "app.py").read_text() == "x = 1\n"
    state = asyncio.run(discover(home).status(workspace))
    assert (state.head, state.branch, state.clean) == (workspace.sha, None, True)
    assert (home / "app.py").read_text() == "work in progress\n"


def test_git_inside_the_tree_knows_history_branches_and_tags_but_no_remote(home: Path, folder: Path) -> None:
    git(home, "tag", "-a", "v1.0", "-m", "one")
    second = commit(home, {"app.py": "x = 2\n"})
    tree = opened(home, folder).tree
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "describe", "HEAD~1") == "v1.0"
    assert git(tree, "rev-parse", "main") == second
    assert git(tree, "log", "--format=%s", "main") == "change\nfirst"
    assert git(tree, "remote") == ""
    assert git(tree, "fsck", "--connectivity-only") == ""
    assert commit(tree, {"app.py": "x = 7\n"})


def test_a_reset_removes_every_kind_of_leftover(home: Path, folder: Path) -> None:
    """L5: ignored files, empty folders, repositories inside tracked folders; `clean -ffdx` would keep the last."""
    tree = opened(home, folder).tree
    write(tree, {"src/lib.pyc": "stale", "build/out.o": "", "new/deep/file": "", "app.py": "changed\n"})
    (tree / "empty/folder").mkdir(parents=True)
    (tree / "src/lib.py").unlink()
    (tree / "link").symlink_to("/etc/hostname")
    os.mkfifo(tree / "src/.gitattributes")
    for nested in ("nested", "src"):
        (tree / nested).mkdir(exist_ok=True)
        git(tree / nested, "init", "--quiet")
    (tree / "closed").mkdir()
    write(tree / "closed", {"inner/file": ""})
    (tree / "closed/inner").chmod(0)
    (tree / "closed").chmod(0)

    workspace = opened(home, folder)
    assert files_of(tree) == FIRST
    assert not (tree / "src/.git").exists()
    assert (tree / "app.py").read_text() == "x = 1\n"
    assert asyncio.run(discover(home).status(workspace)).clean


def test_kinds_swapped_by_a_program_are_swapped_back(home: Path, folder: Path, tmp_path: Path) -> None:
    """A folder replaced by a symbolic link must not lead the reset out of the tree."""
    tree = opened(home, folder).tree
    outside = tmp_path / "outside"
    write(outside, {"lib.py": "precious\n", "other.txt": "precious\n"})
    (tree / "src/lib.py").unlink()
    (tree / "src").rmdir()
    (tree / "src").symlink_to(outside)
    (tree / "app.py").unlink()
    write(tree, {"app.py/inside": ""})
    opened(home, folder)
    assert files_of(tree) == FIRST
    assert not (tree / "src").is_symlink()
    assert sorted(path.name for path in outside.iterdir()) == ["lib.py", "other.txt"]
    assert (outside / "lib.py").read_text() == "precious\n"


def test_a_reset_goes_to_another_commit_and_back(home: Path, folder: Path) -> None:
    first = git(home, "rev-parse", "HEAD")
    git(home, "rm", "--quiet", "-r", "src")
    second = commit(home, {"src": "now a file\n", "more/a.py": ""})
    inode = opened(home, folder, first).tree.stat().st_ino
    assert opened(home, folder, second).sha == second
    tree = opened(home, folder, second).tree
    assert files_of(tree) == {".gitignore", "app.py", "src", "more", "more/a.py"}
    tree = opened(home, folder, first).tree
    assert files_of(tree) == FIRST
    assert tree.stat().st_ino == inode, "a workspace that can be reset is not made anew"


def test_what_a_program_plants_in_its_git_directory_never_runs_for_us(home: Path, folder: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    script = planted_script(tmp_path, marker)
    workspace = opened(home, folder)
    tree = workspace.tree
    git(tree, "config", "core.fsmonitor", str(script))
    git(tree, "config", "core.hooksPath", str(tmp_path))
    git(tree, "config", "filter.evil.clean", str(script))
    git(tree, "config", "filter.evil.smudge", str(script))
    git(tree, "config", "core.worktree", str(home))
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        (tree / ".git/hooks").mkdir(exist_ok=True)
        (tree / ".git/hooks" / hook).symlink_to(script)
    write(tree, {".gitattributes": "* filter=evil\n", "app.py": "x = 9\n"})
    git(tree, "init", "--quiet", "src")
    git(tree / "src", "config", "core.fsmonitor", str(script))

    repository = discover(home)
    state = asyncio.run(repository.status(workspace))
    assert (state.changed, state.untracked) == (("app.py",), (".gitattributes",))
    asyncio.run(repository.open_workspace(folder, "main"))
    assert not marker.exists()
    assert "evil" not in (tree / ".git/config").read_text()
    assert not (tree / ".git/hooks").exists()


def test_a_configured_filter_of_the_person_does_not_run_for_a_workspace(
    home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same commit gives the same files for everybody, and no attribute chooses a program."""
    marker = tmp_path / "ran"
    script = planted_script(tmp_path, marker)
    commit(home, {".gitattributes": "*.py filter=mine\n"})
    write(
        tmp_path / "person",
        {
            ".gitconfig": f'[filter "mine"]\n\tsmudge = {script}\n\tclean = {script}\n[core]\n\tautocrlf = true\n',
            ".config/git/attributes": "*.py text eol=crlf\n",
        },
    )
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    tree = opened(home, folder).tree
    assert (tree / "app.py").read_bytes() == b"x = 1\n"
    assert not marker.exists()


def test_refs_moved_inside_the_tree_do_not_move_in_main(home: Path, folder: Path) -> None:
    """L1: neither a commit, nor a deleted branch, nor a configuration reaches the person's repository."""
    repository = discover(home)
    workspace = opened(home, folder)
    before, config = asyncio.run(repository.refs()), (home / ".git/config").read_text()
    git(workspace.tree, "checkout", "--quiet", "main")
    commit(workspace.tree, {"app.py": "x = 666\n"})
    git(workspace.tree, "tag", "planted")
    git(workspace.tree, "config", "user.name", "Mallory")
    assert asyncio.run(repository.refs()) == before
    assert (home / ".git/config").read_text() == config
    state = asyncio.run(repository.status(workspace))
    assert (state.head, state.changed) == (workspace.sha, ("app.py",)), "its HEAD is not ours"
    tree = opened(home, folder).tree
    assert git(tree, "tag") == ""
    assert git(tree, "rev-parse", "main") == workspace.sha


@pytest.mark.parametrize("planted", ["a file", "a link", "nothing"])
def test_a_destroyed_git_directory_in_the_tree_is_put_back(
    home: Path, folder: Path, tmp_path: Path, planted: str
) -> None:
    workspace = opened(home, folder)
    own = workspace.tree / ".git"
    elsewhere = new_repository(tmp_path / "elsewhere")
    own.rename(tmp_path / "moved")
    if planted == "a file":
        own.write_text(f"gitdir: {elsewhere}/.git\n")
    elif planted == "a link":
        own.symlink_to(elsewhere / ".git")
    opened(home, folder)
    assert git(workspace.tree, "rev-parse", "HEAD") == workspace.sha
    assert own.is_dir()
    assert not own.is_symlink()
    assert git(elsewhere, "status", "--porcelain") == ""


def test_a_tree_swapped_for_a_link_is_made_anew_and_the_target_left_alone(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    workspace = opened(home, folder)
    outside = tmp_path / "outside"
    workspace.tree.rename(tmp_path / "moved")
    write(outside, {"precious": ""})
    workspace.tree.symlink_to(outside)
    repository = discover(home)
    assert asyncio.run(repository.find_workspace(folder)) is None
    opened(home, folder)
    assert files_of(workspace.tree) == FIRST
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_a_leftover_that_cannot_be_reset_is_made_anew(home: Path, folder: Path) -> None:
    """L9: created or aborted, never "proceed anyway"."""
    workspace = opened(home, folder)
    (workspace.git_dir / "index.lock").touch()
    opened(home, folder)
    assert asyncio.run(discover(home).status(workspace)).clean
    (workspace.git_dir / "index").write_text("garbage")
    opened(home, folder)
    assert asyncio.run(discover(home).status(workspace)).clean


def test_a_revision_that_does_not_exist_changes_nothing(home: Path, folder: Path) -> None:
    workspace = opened(home, folder)
    write(workspace.tree, {"new.py": ""})
    for revision in ("nowhere", "f" * 40):
        with pytest.raises(GitFailed, match="names no commit"):
            opened(home, folder, revision)
    assert (workspace.tree / "new.py").exists()
    assert asyncio.run(discover(home).find_workspace(folder)) == workspace


def test_a_commit_that_is_not_clean_by_its_own_attributes_is_refused(home: Path, folder: Path) -> None:
    """L4: better no workspace than one whose status lies; and the answer must not depend on the age of files."""
    first = commit(home, {"crlf.txt": "one\r\n"})
    (home / ".gitattributes").write_text("*.txt text eol=lf\n")
    git(home, "add", ".gitattributes")
    git(home, "commit", "--quiet", "-m", "attributes only")
    workspace = opened(home, folder, first)
    os.utime(workspace.tree / "crlf.txt", (1_000_000_000, 1_000_000_000))
    git(workspace.tree, f"--git-dir={workspace.git_dir}", f"--work-tree={workspace.tree}", "update-index", "--refresh")
    with pytest.raises(GitFailed, match=r"crlf\.txt.*renormalize"):
        opened(home, folder)
    assert asyncio.run(discover(home).find_workspace(folder)) is None


def test_find_tells_a_whole_workspace_from_none(home: Path, folder: Path) -> None:
    repository = discover(home)
    assert asyncio.run(repository.find_workspace(folder)) is None
    workspace = opened(home, folder)
    write(workspace.tree, {"new.py": "agent's work"})
    assert asyncio.run(repository.find_workspace(folder)) == workspace
    assert (workspace.tree / "new.py").exists(), "finding must not clean"
    (folder / "workspace.json").write_text('{"state": "rea')
    assert asyncio.run(repository.find_workspace(folder)) is None


def test_close_removes_the_workspace_and_only_that(home: Path, folder: Path) -> None:
    repository = discover(home)
    workspace = opened(home, folder)
    write(folder, {"gate.log": "kept"})
    git(workspace.tree, "init", "--quiet", "nested")
    asyncio.run(repository.close_workspace(folder))
    assert [path.name for path in folder.iterdir()] == ["gate.log"]
    asyncio.run(repository.close_workspace(folder))
    (folder / "gate.log").unlink()
    opened(home, folder)
    asyncio.run(repository.close_workspace(folder))
    assert not folder.exists()
    asyncio.run(repository.close_workspace(folder))


def test_a_folder_that_becket_did_not_make_is_never_removed(home: Path, folder: Path) -> None:
    write(folder, {"tree/precious": ""})
    repository = discover(home)
    with pytest.raises(GitFailed, match="did not make"):
        opened(home, folder)
    with pytest.raises(GitFailed, match="did not make"):
        asyncio.run(repository.close_workspace(folder))
    assert (folder / "tree/precious").exists()


def test_the_resident_tree_below_the_root_does_not_touch_the_person(home: Path) -> None:
    (home / ".git/info/exclude").write_text("/.worktrees/\n")
    opened(home, home / ".worktrees/base")
    assert asyncio.run(discover(home).status()).clean


def test_workspaces_of_one_repository_do_not_meet(home: Path, tmp_path: Path) -> None:
    repository = discover(home)

    async def both() -> tuple[Workspace, Workspace]:
        first, second = await asyncio.gather(
            repository.open_workspace(tmp_path / "a", "main"), repository.open_workspace(tmp_path / "b", "main")
        )
        return first, second

    first, second = asyncio.run(both())
    write(first.tree, {"app.py": "x = 3\n"})
    assert not asyncio.run(repository.status(first)).clean
    assert asyncio.run(repository.status(second)).clean


_OPEN = """
import asyncio, sys
from pathlib import Path
from becket.kernel.git.repository import discover
repository = discover(Path(sys.argv[1]))
for revision in sys.argv[3:]:
    asyncio.run(repository.open_workspace(Path(sys.argv[2]), revision))
"""


@pytest.mark.parametrize(
    "point",
    [
        "workspace.before_clone",
        "workspace.after_checkout",
        "workspace.after_checkout@2",
        "workspace.before_marker",
        "workspace.before_marker@2",
    ],
)
def test_a_workspace_left_half_made_by_a_kill_is_made_anew(home: Path, folder: Path, point: str) -> None:
    first = git(home, "rev-parse", "HEAD")
    second = commit(home, {"app.py": "x = 2\n"})
    killed = subprocess.run(
        [sys.executable, "-c", _OPEN, str(home), str(folder), first, second],
        env={**os.environ, crash.ENV: point},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    repository = discover(home)
    assert asyncio.run(repository.find_workspace(folder)) is None
    workspace = asyncio.run(repository.open_workspace(folder, first))
    assert asyncio.run(repository.find_workspace(folder)) == workspace
    assert files_of(workspace.tree) == FIRST
    assert git(home, "for-each-ref", "--format=%(objectname)") == second


@pytest.mark.parametrize("point", ["workspace.before_clone", "workspace.after_checkout"])
def test_a_cancelled_opening_leaves_nothing_that_counts(home: Path, folder: Path, point: str) -> None:
    repository = discover(home)

    async def cancelled_at_the_point() -> None:
        opening = asyncio.create_task(repository.open_workspace(folder, "main"))

        def cancel(name: str) -> None:
            if name == point:
                opening.cancel()

        crash.install(cancel)
        with pytest.raises(asyncio.CancelledError):
            await opening

    try:
        asyncio.run(cancelled_at_the_point())
    finally:
        crash.install(None)
    assert asyncio.run(repository.find_workspace(folder)) is None
    assert files_of(opened(home, folder).tree) == FIRST
