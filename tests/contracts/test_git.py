"""The Git port, reading: every answer comes from a real repository."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, planted_script, write

from becket.kernel.contract.errors import GitFailed, UsageError
from becket.kernel.contract.git import Git
from becket.kernel.git.repository import MIN_VERSION, GitRepository, discover, version


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


def test_the_adapter_is_a_git(home: Path) -> None:
    port: Git = discover(home)
    assert port.root == home
    assert port.common_dir == home / ".git"


def test_a_subfolder_belongs_to_its_repository(home: Path) -> None:
    assert discover(home / "src").root == home


def test_a_folder_outside_of_any_repository_is_told_to_init(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git init"):
        discover(tmp_path)
    with pytest.raises(UsageError, match="not a folder"):
        discover(tmp_path / "missing")


def test_a_git_directory_is_not_a_place_to_work_in(home: Path) -> None:
    with pytest.raises(UsageError, match="work tree"):
        discover(home / ".git")


def test_a_linked_worktree_shares_the_common_directory(home: Path, tmp_path: Path) -> None:
    git(home, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "linked"))
    linked = discover(tmp_path / "linked")
    assert (linked.root, linked.common_dir) == (tmp_path / "linked", home / ".git")
    state = asyncio.run(linked.status())
    assert (state.branch, state.clean) == ("side", True)
    refs = asyncio.run(linked.refs())
    assert refs["HEAD"] == "ref: refs/heads/side"
    assert "refs/heads/main" in refs


def test_a_submodule_is_a_repository_of_its_own(home: Path, tmp_path: Path) -> None:
    other = new_repository(tmp_path / "other")
    git(home, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "lib")
    found = discover(home / "lib")
    assert (found.root, found.common_dir) == (home / "lib", home / ".git" / "modules" / "lib")
    assert asyncio.run(found.status()).clean


def test_a_bare_repository_can_be_read(home: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(home), "bare.git")
    bare = discover(tmp_path / "bare.git")
    assert bare.bare
    assert asyncio.run(bare.resolve("main")) == git(home, "rev-parse", "main")
    workspace = asyncio.run(bare.open_workspace(tmp_path / "ws", "main"))
    assert (workspace.tree / "app.py").exists()
    with pytest.raises(GitFailed, match="bare"):
        asyncio.run(bare.status())


def test_git_variables_of_our_own_environment_do_not_leak(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L1: a hook's GIT_DIR must not redirect a single command."""
    victim = new_repository(tmp_path / "victim")
    before = git(victim, "for-each-ref"), git(victim, "status", "--porcelain")
    for name, value in {"DIR": ".git", "WORK_TREE": "", "INDEX_FILE": ".git/index"}.items():
        monkeypatch.setenv(f"GIT_{name}", str(victim / value))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(victim / ".git/objects"))
    sha = commit(home, {"app.py": "x = 2\n"})

    found = discover(home)
    assert found.root == home
    assert asyncio.run(found.resolve("main")) == sha
    assert asyncio.run(found.status()).clean
    workspace = asyncio.run(found.open_workspace(tmp_path / "ws", "main"))
    assert (workspace.tree / "app.py").read_text() == "x = 2\n"
    assert before == (git(victim, "for-each-ref"), git(victim, "status", "--porcelain"))


def test_resolve_knows_every_kind_of_revision_or_says_none(home: Path) -> None:
    first = git(home, "rev-parse", "HEAD")
    git(home, "tag", "-a", "v1", "-m", "one")
    second = commit(home, {"app.py": "x = 2\n"})
    git(home, "branch", "feature/deep/name")
    repository = discover(home)

    async def answers() -> None:
        for revision, wanted in {
            "HEAD": second,
            "main": second,
            "refs/heads/main": second,
            "refs/heads/feature/deep/name": second,
            "v1": first,
            git(home, "rev-parse", "v1"): first,  # the tag object's own hash
            "HEAD~1": first,
            second[:10]: second,
            "nowhere": None,
            "refs/heads/nowhere": None,
            "refs/heads/feature": None,
            "f" * 40: None,
            "--all": None,
            "": None,
            "main\0": None,
            "HEAD:app.py": None,
            "HEAD@{99}": None,
        }.items():
            assert await repository.resolve(revision) == wanted, revision

    asyncio.run(answers())


def test_packed_refs_are_read_like_loose_ones(home: Path) -> None:
    git(home, "tag", "-a", "v1", "-m", "one")
    sha = git(home, "rev-parse", "main")
    git(home, "branch", "main2", commit(home, {"app.py": "2"}))
    git(home, "update-ref", "refs/heads/main", sha)
    git(home, "pack-refs", "--all")
    repository = discover(home)
    assert asyncio.run(repository.value("refs/heads/main")) == sha
    assert asyncio.run(repository.value("refs/heads/ain")) is None
    assert asyncio.run(repository.value("refs/tags/v1")) == git(home, "rev-parse", "v1")
    newer = commit(home, {"app.py": "3"})
    assert asyncio.run(repository.value("refs/heads/main")) == newer


def test_a_symbolic_branch_has_its_targets_value(home: Path) -> None:
    git(home, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    assert asyncio.run(discover(home).value("refs/heads/alias")) == git(home, "rev-parse", "main")


def test_a_broken_ref_is_an_error_and_not_a_missing_branch(home: Path) -> None:
    (home / ".git/refs/heads/main").write_text("")
    with pytest.raises(GitFailed, match="fsck"):
        asyncio.run(discover(home).value("refs/heads/main"))


def test_a_repository_without_ref_files_asks_git(home: Path) -> None:
    """Stands in for reftable: with a table list present, no ref is believed by its file."""
    git(home, "pack-refs", "--all")
    write(home / ".git", {"reftable/tables.list": ""})
    repository = discover(home)
    sha = git(home, "rev-parse", "main")
    assert asyncio.run(repository.value("refs/heads/main")) == sha
    assert asyncio.run(repository.value("refs/heads/nowhere")) is None
    assert asyncio.run(repository.refs()) == {"HEAD": "ref: refs/heads/main", "refs/heads/main": sha}
    git(home, "checkout", "--quiet", "--detach")
    assert asyncio.run(repository.refs())["HEAD"] == sha


def test_the_tree_of_a_commit(home: Path) -> None:
    repository = discover(home)
    assert asyncio.run(repository.tree_of("HEAD")) == git(home, "rev-parse", "HEAD^{tree}")
    with pytest.raises(GitFailed, match="rev-parse"):
        asyncio.run(repository.tree_of("f" * 40))


def test_refs_tell_every_move_apart(home: Path) -> None:
    """L1: commit, tag, stash, switch and detach are all seen; Becket's own refs are not."""
    repository = discover(home)
    seen = [asyncio.run(repository.refs())]
    assert seen[0] == {"HEAD": "ref: refs/heads/main", "refs/heads/main": git(home, "rev-parse", "main")}

    write(home, {"app.py": "x = 5\n"})
    steps = (
        ("stash",),
        ("tag", "v1"),
        ("switch", "--quiet", "-c", "other"),
        ("checkout", "--quiet", "--detach"),
        ("update-ref", "refs/remotes/origin/x", "HEAD"),
    )
    for step in steps:
        git(home, *step)
        seen.append(asyncio.run(repository.refs()))
        assert seen[-1] != seen[-2], step
    git(home, "update-ref", "refs/becket/rescue/run_1", "HEAD")
    assert asyncio.run(repository.refs()) == seen[-1]


def test_a_file_is_read_as_committed_and_not_as_it_lies_there(home: Path) -> None:
    sha = git(home, "rev-parse", "HEAD")
    write(home, {"app.py": "dirty\n", "new.py": "untracked\n"})
    repository = discover(home)

    async def read() -> None:
        assert await repository.read_bytes(sha, "app.py") == b"x = 1\n"
        assert await repository.read_bytes("main", "./src/lib.py") == b"y = 1\n"
        assert await repository.read_bytes("main", "new.py") is None
        assert await repository.read_bytes("main", "src") is None
        assert await repository.read_bytes("main", "src/lib.py/deeper") is None
        with pytest.raises(GitFailed, match="nowhere"):
            await repository.read_bytes("nowhere", "app.py")
        with pytest.raises(GitFailed, match="line break"):
            await repository.read_bytes("main", "app.py\nmain:src/lib.py")

    asyncio.run(read())


def test_a_file_that_is_no_text_is_read_byte_by_byte(home: Path) -> None:
    (home / "blob").write_bytes(b"\x00\xff\r\n")
    commit(home, {})
    assert asyncio.run(discover(home).read_bytes("main", "blob")) == b"\x00\xff\r\n"
    assert asyncio.run(discover(home).read_bytes("main", "gone")) is None


def test_many_files_are_read_at_once(home: Path) -> None:
    (home / "link").symlink_to("app.py")
    sha = commit(home, {"large": "x" * 2_000, "odd name\t\u00e4": "z\n", "twin.py": "x = 1\n"})
    wanted = {"app.py", "twin.py", "large", "odd name\t\u00e4", "link", "src", "gone"}
    found = asyncio.run(discover(home).read_files(sha, wanted, 1_999))
    assert found == {"app.py": b"x = 1\n", "twin.py": b"x = 1\n", "odd name\t\u00e4": b"z\n"}
    assert asyncio.run(discover(home).read_files(sha, {"large"}, 2_000)) == {"large": b"x" * 2_000}
    assert asyncio.run(discover(home).read_files(sha, (), 10)) == {}
    with pytest.raises(GitFailed):
        asyncio.run(discover(home).read_files("nowhere", {"app.py"}, 10))


def test_commits_are_those_in_new_and_not_in_old_newest_first(home: Path) -> None:
    first = git(home, "rev-parse", "HEAD")
    second, third = commit(home, {"a": "1"}), commit(home, {"a": "2"})
    repository = discover(home)
    assert list(asyncio.run(repository.commits(first, third))) == [third, second]
    assert list(asyncio.run(repository.commits(None, third))) == [third, second, first]
    assert list(asyncio.run(repository.commits(None, third, limit=1))) == [third]
    assert list(asyncio.run(repository.commits(third, first))) == []
    with pytest.raises(GitFailed, match="bad object"):
        asyncio.run(repository.commits("f" * 40, third))


def test_status_sees_changes_and_new_files(home: Path) -> None:
    """L5: a change made only of new files is a change."""
    repository = discover(home)
    before = asyncio.run(repository.status())
    assert (before.head, before.branch, before.clean) == (git(home, "rev-parse", "HEAD"), "main", True)

    write(home, {"new dir/with blank.py": "", 'quote"d.py': "", "line\nbreak.py": "", "ünï.py": "", "x.pyc": ""})
    assert asyncio.run(repository.status()).untracked == (
        "line\nbreak.py",
        "new dir/with blank.py",
        'quote"d.py',
        "ünï.py",
    )
    git(home, "mv", "app.py", "moved to.py")
    (home / "src/lib.py").unlink()
    state = asyncio.run(repository.status())
    assert state.changed == ("app.py", "moved to.py", "src/lib.py")
    assert not state.clean


def test_status_of_a_conflict_an_unborn_branch_and_a_detached_head(home: Path, tmp_path: Path) -> None:
    base = git(home, "rev-parse", "HEAD")
    commit(home, {"app.py": "x = 2\n"})
    git(home, "checkout", "--quiet", "--detach", base)
    sha = commit(home, {"app.py": "x = 3\n"})
    repository = discover(home)
    state = asyncio.run(repository.status())
    assert (state.head, state.branch) == (sha, None)
    git(home, "merge", "main", ok=(1,))
    assert asyncio.run(repository.status()).changed == ("app.py",)

    (tmp_path / "unborn").mkdir()
    git(tmp_path / "unborn", "init", "--quiet", "--initial-branch=main")
    unborn = discover(tmp_path / "unborn")
    state = asyncio.run(unborn.status())
    assert (state.head, state.branch, state.clean) == (None, "main", True)
    assert asyncio.run(unborn.resolve("HEAD")) is None
    assert asyncio.run(unborn.refs()) == {"HEAD": "ref: refs/heads/main"}


def test_reading_neither_runs_hooks_nor_writes_the_index(home: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    script = planted_script(tmp_path, marker)
    git(home, "config", "core.fsmonitor", str(script))
    git(home, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(script)
    (home / "app.py").touch()
    before = (home / ".git/index").stat().st_mtime_ns
    assert asyncio.run(discover(home).status()).clean
    assert (home / ".git/index").stat().st_mtime_ns == before
    assert not marker.exists()


def test_a_shallow_clone_is_read_and_checked_out(home: Path, tmp_path: Path) -> None:
    sha = commit(home, {"app.py": "x = 2\n"})
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{home}", "shallow")
    shallow = discover(tmp_path / "shallow")
    assert list(asyncio.run(shallow.commits(None, "main"))) == [sha]
    workspace = asyncio.run(shallow.open_workspace(tmp_path / "ws", "main"))
    assert asyncio.run(shallow.status(workspace)).clean
    assert git(workspace.tree, "log", "--format=%H") == sha


def test_a_sha256_repository_works_alike(tmp_path: Path) -> None:
    home = new_repository(tmp_path / "home", "--object-format=sha256")
    repository = discover(home)
    sha = asyncio.run(repository.resolve("refs/heads/main"))
    assert sha is not None
    assert len(sha) == 64
    workspace = asyncio.run(repository.open_workspace(tmp_path / "ws", sha))
    assert asyncio.run(repository.status(workspace)).head == sha
    assert git(workspace.tree, "status", "--porcelain") == ""


def test_the_git_program_here_is_new_enough() -> None:
    assert version() >= MIN_VERSION


def test_a_repository_that_vanished_is_an_error_that_says_so(tmp_path: Path) -> None:
    gone = GitRepository(tmp_path / "gone", tmp_path / "gone/.git", tmp_path / "gone/.git")
    with pytest.raises(GitFailed, match="gone"):
        asyncio.run(gone.status())
    with pytest.raises(GitFailed, match="is gone"):
        asyncio.run(gone.value("refs/heads/main"))
