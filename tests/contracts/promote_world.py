"""A person's repository with a proven candidate beside it, and eyes for everything a promotion could disturb."""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from git_repos import commit, git, new_repository

from becket.kernel.contract.effect import Permit, door_mint
from becket.kernel.contract.promote import NotPromoted, Promoted, PromoteRequest, WhyNot, promote_call
from becket.kernel.git.repository import discover
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.adapters.promote import promoter_of

FILES = {
    "app.py": "x = 1\n",
    "keep.txt": "kept\n",
    "data/one.txt": "one\n",
    "data/two.txt": "two\n",
    "run.sh": "echo\n",
    ".gitignore": "*.env\nignored/\n",
}


@dataclass(frozen=True)
class Seen:
    """Everything a person has: files with their modes, the index with its marks, refs, and locks."""

    files: dict[str, tuple[int, bytes]]
    index: str
    refs: str
    head: str
    locks: tuple[str, ...]
    folder: Path

    def difference(self, other: Seen) -> dict[str, object]:
        return {
            name: (getattr(self, name), getattr(other, name))
            for name in ("files", "index", "refs", "head", "locks")
            if getattr(self, name) != getattr(other, name)
        }


def request_for(old: str, new: str, branch: str = "main", key: str = "run_1") -> PromoteRequest:
    return PromoteRequest(branch=branch, old=old, new=new, proof="verdict", key=key)


def permit_for(request: PromoteRequest) -> Permit:
    return door_mint()(request.key, promote_call(request))


@functools.cache
def _template(*options: str) -> Path:
    """The repository that every world begins with, made once per process."""
    folder = Path(tempfile.mkdtemp(prefix="promote-world-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    home = new_repository(folder / "home", *options)
    commit(home, FILES, "base")
    return home


class World:
    """`home` is the person's checkout of main, at `old`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        shutil.copytree(_template(*options), self.home)
        self.old = git(self.home, "rev-parse", "HEAD")
        self.log = IntentFile(folder / "state")

    @property
    def common(self) -> Path:
        return Path(git(self.home, "rev-parse", "--path-format=absolute", "--git-common-dir"))

    def change(self, files: dict[str, str | None], home: Path | None = None) -> None:
        for name, text in files.items():
            path = (home or self.home) / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())

    def commit(self, message: str) -> str:
        git(self.home, "add", "--all", "--force")
        git(self.home, "commit", "--quiet", "--allow-empty", "-m", message)
        return git(self.home, "rev-parse", "HEAD")

    def candidate(self, files: dict[str, str | None] | None = None) -> str:
        """A commit on top of main, made beside it; `home` is back on main afterwards, index and all."""
        with self.making() as made:
            self.change({"app.py": "x = 2\n"} if files is None else files)
        return made.sha

    def making(self) -> _Making:
        return _Making(self)

    def promote(self, new: str, old: str | None = None, at: Path | None = None) -> Promoted | NotPromoted:
        request = request_for(old or self.old, new)
        promoter = promoter_of(discover(at or self.home))
        return asyncio.run(promoter.promote(request, permit_for(request), self.log))

    def recover(self) -> Promoted | NotPromoted | None:
        return asyncio.run(promoter_of(discover(self.home)).recover(self.log))

    def status(self) -> set[str]:
        return set(git(self.home, "status", "--short", "--branch").splitlines()[1:])

    def main(self) -> str:
        return git(self.home, "rev-parse", "--verify", "--quiet", "refs/heads/main", ok=(0, 1))

    def seen(self, tree: Path | None = None) -> Seen:
        tree = tree or self.home
        return Seen(
            files=dict(files_of(tree)),
            index=git(tree, "ls-files", "-v", "--stage", "-z"),
            refs=git(tree, "for-each-ref"),
            head=git(tree, "rev-parse", "--symbolic-full-name", "HEAD"),
            locks=tuple(sorted(str(path.relative_to(self.common)) for path in self.locks())),
            folder=tree,
        )

    def refused(self, reason: WhyNot, answer: Promoted | NotPromoted | None, before: Seen) -> NotPromoted:
        """It was this reason, and nothing at all has changed."""
        assert isinstance(answer, NotPromoted), answer
        assert answer.reason is reason, answer
        assert before.difference(self.seen(before.folder)) == {}
        self.no_traces()
        return answer

    def landed(self, answer: Promoted | NotPromoted | None, new: str, tree: Path | None = None) -> Promoted:
        """Ref, index and files are the new commit's, and nothing of ours is left."""
        assert isinstance(answer, Promoted), answer
        assert self.main() == new
        if tree is not None:
            assert git(tree, "rev-parse", "HEAD") == new
            assert answer.worktree == tree
            assert git(tree, "status", "--porcelain") == ""
            assert git(tree, "write-tree") == git(tree, "rev-parse", f"{new}^{{tree}}")
        self.no_traces()
        return answer

    def locks(self) -> list[Path]:
        return list(self.common.rglob("*.lock"))

    def no_traces(self) -> None:
        assert self.log.read() is None
        assert list(self.common.rglob("becket-promote")) == []
        assert [path for path in self.locks() if b"Becket" in path.read_bytes()] == []


class _Making:
    def __init__(self, world: World) -> None:
        self._world = world
        self.sha = ""

    def __enter__(self) -> Self:
        git(self._world.home, "switch", "--quiet", "--create", "candidate")
        return self

    def __exit__(self, *_: object) -> None:
        self.sha = self._world.commit("candidate")
        git(self._world.home, "switch", "--quiet", "main")
        git(self._world.home, "branch", "--quiet", "--move", "--force", "candidate", f"proven-{self.sha[:8]}")


def files_of(tree: Path) -> list[tuple[str, tuple[int, bytes]]]:
    found = []
    for place, folders, names in os.walk(tree):
        if ".git" in folders and place == str(tree):
            folders.remove(".git")
        for name in (*names, *folders):
            path = Path(place) / name
            if path.is_symlink():
                found.append((str(path.relative_to(tree)), (-1, os.fsencode(path.readlink()))))
            elif path.is_file() and name != ".git":
                found.append((str(path.relative_to(tree)), (path.stat().st_mode, path.read_bytes())))
    return found


CHANGE: dict[str, str | None] = {
    "app.py": "x = 2\n" * 1000,
    "data/one.txt": None,
    "data/two.txt": "2\n",
    "added/deep/file": "a\n",
    "new.env": "A=1\n",
}


def prepared(world: World) -> str:
    """A candidate of every kind of change, and a person's work all around it."""
    with world.making() as made:
        world.change(CHANGE)
        (world.home / "run.sh").chmod(0o755)
        (world.home / "link").symlink_to("app.py")
    world.change({"keep.txt": "mine\n", "local.env": "mine\n", "added/mine": "mine\n"})
    git(world.home, "add", "--force", "added/mine")
    return made.sha


def persons_work(world: World) -> None:
    for name in ("keep.txt", "local.env", "added/mine"):
        assert (world.home / name).read_text() == "mine\n"
    assert "A  added/mine" in world.status()


def consistent(world: World) -> None:
    """The files and the index are those of whatever main is, but for the person's own work."""
    assert world.status() == {" M keep.txt", "A  added/mine"}
    world.no_traces()
    assert world.locks() == []


def filtered(world: World, script: str) -> str:
    """A candidate whose checkout runs a program of ours for every `.late` file."""
    (world.folder / "smudge").write_text(f"#!/bin/sh\n{script}\n")
    (world.folder / "smudge").chmod(0o755)
    world.change({".gitattributes": "*.late filter=late\n"})
    world.old = world.commit("attributes")
    new = world.candidate({"app.py": "x = 2\n", "data/a.late": "a\n", "data/b.late": "b\n", "data/one.txt": None})
    git(world.home, "config", "filter.late.smudge", str(world.folder / "smudge"))
    git(world.home, "config", "filter.late.clean", "cat")
    git(world.home, "config", "filter.late.required", "true")
    return new
