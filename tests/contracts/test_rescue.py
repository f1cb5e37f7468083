"""What is saved of a workspace: the work, within bounds; never a secret; and what was left out is told."""

from __future__ import annotations

import asyncio
import gzip
import os
import time
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, write

from becket.app.rescue_rules import rules
from becket.kernel.contract.candidate import LeftOut, Rescued, RescueRules
from becket.kernel.contract.config import Retention
from becket.kernel.contract.git import Workspace
from becket.kernel.engine.redact import Redactor
from becket.kernel.git.repository import GitRepository, discover

TOKEN = "ghp_Zk3v9Qw8Lr2Tb7Xy5Nc1Mh6Pd4Fs0Ga9Jue2"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


@pytest.fixture
def repository(home: Path) -> GitRepository:
    found = discover(home)
    found.rescue_rules = lambda: RescueRules(largest=1000, together=2500)
    return found


@pytest.fixture
def workspace(repository: GitRepository, tmp_path: Path) -> Workspace:
    return asyncio.run(repository.open_workspace(tmp_path / "run_1", "main"))


def saved(repository: GitRepository, workspace: Workspace) -> Rescued | None:
    sha = asyncio.run(repository.rescue(workspace, "run_1", "becket: what run_1 left"))
    return next((item for item in asyncio.run(repository.candidates().rescued()) if item.sha == sha), None)


def paths(home: Path, found: Rescued | None) -> list[str]:
    assert found is not None
    return git(home, "diff", "--name-only", found.parent, found.sha).splitlines()


def test_work_is_saved_as_it_is(home: Path, repository: GitRepository, workspace: Workspace) -> None:
    """L7: changed, new, removed, replaced and made executable; ignored files are not."""
    tree = workspace.tree
    write(tree, {"app.py": "x = 2\n", "new/file.py": "n = 1\n", "build/out": "ignored", "odd\nname": "o\n"})
    (tree / "src/lib.py").unlink()
    (tree / "src").rmdir()
    (tree / "src").symlink_to("app.py")
    (tree / "new/file.py").chmod(0o755)
    found = saved(repository, workspace)
    assert paths(home, found) == ["app.py", "new/file.py", '"odd\\nname"', "src", "src/lib.py"]
    assert found is not None
    assert (found.subject, found.left_out) == ("becket: what run_1 left", ())
    assert "100755" in git(home, "ls-tree", found.sha, "new/")
    assert saved(repository, workspace) == found
    write(tree, {"app.py": "x = 3\n"})
    assert saved(repository, workspace) != found
    names = {item.name for item in asyncio.run(repository.candidates().rescued())}
    assert names == {"run_1", "run_1.2"}


def test_a_file_that_became_a_folder_and_the_reverse_are_saved(
    home: Path, repository: GitRepository, workspace: Workspace
) -> None:
    tree = workspace.tree
    (tree / "app.py").unlink()
    (tree / "src/lib.py").unlink()
    (tree / "src").rmdir()
    write(tree, {"app.py/inside.py": "i = 1\n", "src": "now a file\n"})
    found = saved(repository, workspace)
    assert found is not None
    assert set(git(home, "ls-tree", "-r", "--name-only", found.sha).splitlines()) == {
        ".gitignore", "app.py/inside.py", "src"
    }  # fmt: skip


def test_what_is_too_large_is_left_out_and_told_with_its_size(
    home: Path, repository: GitRepository, workspace: Workspace
) -> None:
    """Small ones first, changed ones before new ones; a changed file that is left out stays as it was."""
    write(workspace.tree, {"app.py": "x" * 1001, "src/lib.py": "y" * 900, "a.txt": "a" * 800, "b.txt": "b" * 900})
    write(workspace.tree, {"small.txt": "s"})
    found = saved(repository, workspace)
    assert paths(home, found) == ["a.txt", "small.txt", "src/lib.py"]
    assert found is not None
    assert found.left_out == (
        LeftOut(path="app.py", size=1001, why="larger than 1 KB"),
        LeftOut(path="b.txt", size=900, why="the rescue would be larger than 2.5 KB"),
    )


def test_a_sparse_file_of_gigabytes_is_not_read(home: Path, repository: GitRepository, workspace: Workspace) -> None:
    with (workspace.tree / "huge.bin").open("wb") as file:
        os.truncate(file.fileno(), 4_000_000_000)
    began = time.process_time()
    found = saved(repository, workspace)
    assert paths(home, found) == [], "nothing is saved, and that is told"
    assert found is not None
    assert found.left_out == (LeftOut(path="huge.bin", size=4_000_000_000, why="larger than 1 KB"),)
    assert time.process_time() - began < 5
    assert asyncio.run(repository.candidates().size(found)) < 10_000


def test_folders_that_tools_fill_are_no_work(home: Path, repository: GitRepository, workspace: Workspace) -> None:
    write(workspace.tree, {f"web/node_modules/{n}/index.js": "x" * 100 for n in range(5)})
    write(workspace.tree, {"tests/__pycache__/t.txt": "c" * 7, "web/app.js": "a\n"})
    found = saved(repository, workspace)
    assert paths(home, found) == ["web/app.js"]
    assert found is not None
    assert {(item.path, item.size) for item in found.left_out} == {
        ("tests/__pycache__/", 7), ("web/node_modules/", 500)
    }  # fmt: skip


def test_many_that_are_left_out_are_told_in_one_line(repository: GitRepository, workspace: Workspace) -> None:
    write(workspace.tree, {f"big/{n}.bin": "x" * 1001 for n in range(60)})
    found = saved(repository, workspace)
    assert found is not None
    assert (len(found.left_out), found.left_out[-1].path, found.left_out[-1].size) == (51, "10 more", 10_010)


def test_a_secret_is_never_saved_in_clear_and_is_named(
    home: Path, repository: GitRepository, workspace: Workspace
) -> None:
    """L25: by its shape, by its value, and by the name of its file."""
    redactor = Redactor({"DEPLOY_TOKEN": "plain-but-known-8431"})
    repository.rescue_rules = lambda: rules(Retention(), redactor)
    tree = workspace.tree
    write(tree, {"notes.txt": f"one\ntoken: {TOKEN}\n", "log.txt": "said plain-but-known-8431 aloud\n"})
    write(tree, {".env": "A=1\n", ".env.example": "A=\n", "keys/id_rsa": "k\n", "app.py": "x = 2\n"})
    found = saved(repository, workspace)
    assert paths(home, found) == [".env.example", "app.py"]
    assert found is not None
    assert {item.path: item.why for item in found.left_out} == {
        ".env": "files of this name hold secrets",
        "keys/id_rsa": "files of this name hold secrets",
        "log.txt": "it holds the value of DEPLOY_TOKEN",
        "notes.txt": "line 2 holds a GitHub token",
    }
    message = git(home, "log", "-1", "--format=%B", found.sha)
    assert TOKEN not in message
    assert "plain-but-known" not in message


SHAPES = {
    "slack": "xoxb-" + "2345678901-abcdefGHIJKL",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.c2lnbmF0dXJlLW9mLWl0",
    "dsn": "postgres://ada:s3cr3tpw@db.corp.io/main",
    "yaml": "password: correct-horse-7",
    "code": 'API_KEY = "Zk3v9Qw8Lr2Tb7Xy5Nc1"',
    "header": "Authorization: Bearer Zk3v9Qw8Lr2Tb7Xy5Nc1",
    "given": "the word is open-sesame-4711",
}


def test_whatever_a_log_would_hide_is_not_saved_by_content_name_or_link(
    home: Path, repository: GitRepository, workspace: Workspace
) -> None:
    """L25: and what cannot be read as text is not saved either."""
    redactor = Redactor({"agents.fixer.WORD": "open-sesame-4711"})
    repository.rescue_rules = lambda: rules(Retention(), redactor)
    tree = workspace.tree
    write(tree, {f"{name}.txt": f"first\n{line}\n" for name, line in SHAPES.items()})
    write(tree, {f"out/{TOKEN}": "x\n", "kept.py": "def login(token: str) -> None: ...\n"})
    (tree / "leads").symlink_to(f"/srv/{TOKEN}")
    (tree / "wide.txt").write_bytes(f"key {TOKEN}\n".encode("utf-16"))
    (tree / "wide-kept.txt").write_bytes("nothing\n".encode("utf-16"))
    (tree / "log.gz").write_bytes(gzip.compress(f"key {TOKEN}\n".encode()))
    (tree / "core").write_bytes(b"\0\1" * 500 + TOKEN.encode())
    (tree / "dot").write_bytes(b"\0\1")
    found = saved(repository, workspace)
    assert found is not None
    assert paths(home, found) == ["dot", "kept.py", "wide-kept.txt"]
    why = {item.path: item.why for item in found.left_out}
    assert why["given.txt"] == "it holds the value of agents.fixer.WORD"
    assert why["out/[redacted:github]"] == "its name holds a secret"
    assert {why[f"{name}.txt"][:12] for name in SHAPES if name != "given"} == {"line 2 holds"}
    assert why["core"] == why["log.gz"] == "it is no text, so nobody can see whether it holds a secret"
    assert TOKEN not in git(home, "log", "-1", "--format=%B", found.sha)


def test_a_file_that_had_the_secret_before_is_saved(home: Path, tmp_path: Path) -> None:
    """It is in the history already: to leave the work out would only lose it."""
    commit(home, {"fixture.py": f"TOKEN = '{TOKEN}'\n"})
    repository = discover(home)
    repository.rescue_rules = lambda: rules(Retention(), Redactor({}))
    workspace = asyncio.run(repository.open_workspace(tmp_path / "ws", "main"))
    write(workspace.tree, {"fixture.py": f"TOKEN = '{TOKEN}'\nmore = 1\n"})
    assert paths(home, saved(repository, workspace)) == ["fixture.py"]


def test_a_nested_repository_is_bounded_too(home: Path, repository: GitRepository, workspace: Workspace) -> None:
    write(workspace.tree, {"inner/big.bin": "x" * 1001, "inner/kept.py": "k = 1\n"})
    git(workspace.tree / "inner", "init", "--quiet")
    found = saved(repository, workspace)
    assert paths(home, found) == ["inner/kept.py"]
    assert found is not None
    assert [item.path for item in found.left_out] == ["inner/big.bin"]


def test_the_same_work_of_an_attempt_and_of_its_run_is_saved_once(
    repository: GitRepository, workspace: Workspace
) -> None:
    write(workspace.tree, {"app.py": "x = 2\n"})
    first = asyncio.run(repository.rescue(workspace, "run_7-1-1", "what the attempt left"))
    assert asyncio.run(repository.rescue(workspace, "run_7-1", "what the run left")) == first
    assert asyncio.run(repository.rescue(workspace, "run_70", "what another left")) != first
    names = [item.name for item in asyncio.run(repository.candidates().rescued())]
    assert sorted(names) == ["run_7-1-1", "run_70"]
    write(workspace.tree, {"app.py": "x = 3\n"})
    assert asyncio.run(repository.rescue(workspace, "run_7-1", "what the run left")) != first
