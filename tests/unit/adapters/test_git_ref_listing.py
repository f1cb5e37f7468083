"""Refs listed from their files are what `git for-each-ref` lists, whatever lies there."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from becket.kernel.git.program import GitPlace
from becket.kernel.git.refs import Refs
from becket.kernel.git.repository import discover
from becket.testing.world import commit_all, make_repository, run_git


def _nothing(root: Path) -> None:
    pass


def _packed(root: Path) -> None:
    run_git(root, ["pack-refs", "--all"])


def _packed_and_moved_on(root: Path) -> None:
    _packed(root)
    commit_all(root, "later")
    run_git(root, ["branch", "-D", "topic/one"])


def _symbolic(root: Path) -> None:
    run_git(root, ["update-ref", "refs/remotes/origin/main", "HEAD"])
    run_git(root, ["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"])


def _dangling(root: Path) -> None:
    _packed(root)
    run_git(root, ["symbolic-ref", "refs/heads/topic/one", "refs/heads/nowhere"])


def _locked(root: Path) -> None:
    (root / ".git/refs/heads/main.lock").write_text("")
    (root / ".git/refs/heads/.hidden").write_text("x")


def _broken(root: Path) -> None:
    (root / ".git/refs/heads/empty").write_text("")
    (root / ".git/refs/heads/null").write_text("0" * 40 + "\n")


def _badly_named(root: Path) -> None:
    (root / ".git/refs/heads/a~b").write_text(run_git(root, ["rev-parse", "HEAD"]) + "\n")


def _not_ascii(root: Path) -> None:
    for name in ("zoë", "line\u2028break", "a-b", "a/b", "a.b"):
        run_git(root, ["update-ref", f"refs/heads/{name}", "HEAD"])


def _not_utf8(root: Path) -> None:
    sha = run_git(root, ["rev-parse", "HEAD"])
    Path(str(root / ".git/refs/heads/raw") + "\udcff").write_text(sha + "\n")


def _linked(root: Path) -> None:
    (root / ".git/refs/heads/link").symlink_to("main")


def _many(root: Path) -> None:
    sha = run_git(root, ["rev-parse", "HEAD"])
    for number in range(600):
        (root / f".git/refs/tags/t{number}").write_text(f"{sha}\n")


STATES = (
    _nothing, _packed, _packed_and_moved_on, _symbolic, _dangling, _locked, _broken, _badly_named, _not_ascii,
    _not_utf8, _linked, _many,
)  # fmt: skip


def _made(root: Path) -> Refs:
    make_repository(root)
    run_git(root, ["tag", "-a", "-m", "v1", "v1"])
    run_git(root, ["branch", "topic/one"])
    run_git(root, ["update-ref", "refs/heads/topical", "HEAD"])
    return Refs(GitPlace(root / ".git", root), root / ".git")


def _by_git(root: Path, *patterns: str) -> list[tuple[str, str]]:
    command = ["git", "for-each-ref", "--format=%(objectname) %(refname)", *patterns]
    said = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout.decode(errors="backslashreplace")
    pairs = (line.split(" ", 1) for line in said.split("\n") if line)
    return [(ref, sha) for sha, ref in pairs]


@pytest.mark.parametrize("state", STATES)
def test_files_tell_what_git_tells_in_its_order(state: Callable[[Path], None], tmp_path: Path) -> None:
    refs = _made(tmp_path / "r")
    state(tmp_path / "r")
    asked: tuple[tuple[str, ...], ...] = ((), ("refs/heads", "refs/tags"), ("refs/heads/topic",), ("refs/nothing",))
    for patterns in asked:
        listed = asyncio.run(refs.listed(*patterns))
        assert list(listed.items()) == _by_git(tmp_path / "r", *patterns)


def test_another_work_tree_lists_the_refs_that_only_it_has(tmp_path: Path) -> None:
    root, other = tmp_path / "r", tmp_path / "other"
    _made(root)
    run_git(root, ["worktree", "add", "--quiet", "--detach", str(other)])
    run_git(other, ["update-ref", "refs/worktree/own", "HEAD"])
    seen = {name: set(asyncio.run(discover(name).refs())) for name in (root, other)}
    assert seen[other] - seen[root] == {"refs/worktree/own"}
    assert seen[root] <= seen[other]


def test_a_commit_named_in_full_is_found_and_anything_else_is_not(tmp_path: Path) -> None:
    root = tmp_path / "r"
    _made(root)
    sha, tag, blob = (run_git(root, ["rev-parse", name]) for name in ("HEAD", "v1", "HEAD:README.md"))
    repository = discover(root)

    async def story() -> None:
        assert await repository.resolve(tag) == sha
        assert await repository.resolve(sha) == sha
        assert await repository.tree_of(sha) == run_git(root, ["rev-parse", "HEAD^{tree}"])
        assert await repository.contains(sha, sha)
        assert await repository.resolve(blob) is None
        assert await repository.resolve("1" * 40) is None

    asyncio.run(story())
