"""A workspace's tree in a place where people look: ours by a token in its `.git`, and never taken from anybody else."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from becket.adapters.git.refs import read_text
from becket.contract.errors import GitFailed

TOKEN = "becket-workspace"  # noqa: S105  # a file's name


@dataclass(frozen=True, slots=True)
class Resident:
    """A tree that does not lie below its workspace's folder, as the marker remembers it.

    While the tree is being made or swept its `.git` holds no token; then the folder's own identity counts.
    """

    path: Path
    token: str = ""
    identity: str = ""

    def made(self) -> Resident:
        """The same, remembered before its contents are touched."""
        return Resident(self.path, self.token or secrets.token_hex(16), _identity(self.path))

    def sign(self) -> None:
        (self.path / ".git" / TOKEN).write_text(f"{self.token}\n", encoding="ascii")

    @property
    def ours(self) -> bool:
        if not self.token or self.path.is_symlink() or (self.path / ".git").is_symlink():
            return False
        return _token(self.path) == self.token or (bool(self.identity) and self.identity == _identity(self.path))


def check_place(tree: Path, common_dir: Path) -> None:
    """A place that somebody else has a claim on is refused (L9): the advice is better than a guess."""
    for folder in (tree.parent, tree):
        if folder.is_symlink() or (os.path.lexists(folder) and not folder.is_dir()):
            raise GitFailed(f"{folder} is not a folder; move it away, Becket's own tree belongs there")
    if registered(tree, common_dir):
        raise GitFailed(
            f"{tree} is a linked worktree of this repository; Becket needs that place for a tree of its own: "
            f"`git worktree move` it, or `git worktree remove {tree}`; `git worktree prune` if its folder is gone"
        )


def check_free(tree: Path) -> None:
    """Nobody's files are there."""
    if os.path.lexists(tree) and any(tree.iterdir()):
        raise GitFailed(
            f"{tree} holds files that Becket did not make, or its .git/{TOKEN} is gone; "
            "nothing was touched: look through it, then move or remove it"
        )


def registered(tree: Path, common_dir: Path) -> bool:
    """Does the repository know a linked worktree at this place, whether it still exists or not?"""
    wanted = os.path.realpath(tree / ".git")
    for admin in (common_dir / "worktrees").glob("*"):
        recorded = read_text(admin / "gitdir")
        if recorded and os.path.realpath(admin / recorded) == wanted:
            return True
    return False


def exclude(root: Path, tree: Path, common_dir: Path) -> None:
    """Keep the tree out of the person's `git status` and `git add`, by one line, once."""
    parts = tree.relative_to(root).parts
    name = "/".join(parts[:-1] or parts)
    path = common_dir / "info" / "exclude"
    known = read_text(path) or ""
    if {name, f"/{name}", f"{name}/", f"/{name}/"} & {line.strip() for line in known.splitlines()}:
        return
    path.parent.mkdir(exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        text = file.read()
        file.write(f"{'' if not text or text.endswith(chr(10)) else chr(10)}/{name}/\n")


def _token(tree: Path) -> str | None:
    try:
        file = os.open(tree / ".git" / TOKEN, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, 200).decode("ascii", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(file)


def _identity(tree: Path) -> str:
    try:
        found = tree.lstat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"
