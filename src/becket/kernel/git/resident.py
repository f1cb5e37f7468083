"""A workspace's tree in a place where people look: ours, whatever was done in it, and never taken from anybody else.

It is known by its folder: inode and birth, which nobody who may only write inside can change. A repository that was
copied or restored has other folders; there a token in the tree's `.git` tells.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.errors import PlaceTaken
from becket.kernel.git.refs import read_text

TOKEN = "becket-workspace"  # noqa: S105  # a file's name


@dataclass(frozen=True, slots=True)
class Resident:
    """A tree that does not lie below its workspace's folder, as the marker remembers it."""

    path: Path
    token: str = ""
    identity: str = ""

    def made(self) -> Resident:
        """The same, as its folder is now."""
        return Resident(self.path, self.token or secrets.token_hex(16), _identity(self.path))

    def sign(self) -> None:
        (self.path / ".git" / TOKEN).write_text(f"{self.token}\n", encoding="ascii")

    @property
    def ours(self) -> bool:
        if not self.token or self.path.is_symlink():
            return False
        return self.same_folder or _token(self.path) == self.token

    @property
    def replaced(self) -> bool:
        """Somebody removed the tree while it was in use, and what worked in it wrote on into a new folder.

        A folder with a `.git` is a clone or a worktree of somebody: that one is theirs.
        """
        if not self.token or self.ours or self.path.is_symlink() or not self.path.is_dir():
            return False
        return not os.path.lexists(self.path / ".git")

    @property
    def signed(self) -> bool:
        """Its `.git` is the one that was made, as far as a look from outside can tell."""
        git = self.path / ".git"
        return _token(self.path) == self.token and all((git / name).is_file() for name in ("HEAD", "config"))

    @property
    def same_folder(self) -> bool:
        return bool(self.identity) and self.identity == _identity(self.path)


def check_place(tree: Path, common_dir: Path) -> None:
    """A place that somebody else has a claim on is refused (L9): the advice is better than a guess."""
    if (folder := no_folder(tree)) is not None:
        raise PlaceTaken(f"{folder} is not a folder; move it away, Becket's own tree belongs there")
    if registered(tree, common_dir):
        raise PlaceTaken(
            f"{tree} is a linked worktree of this repository; Becket needs that place for a tree of its own: "
            f"`git worktree move` it, or `git worktree remove {tree}`; `git worktree prune` if its folder is gone"
        )


def no_folder(tree: Path) -> Path | None:
    """What is in the way of a folder at that place: a file or a link, there or one above."""
    for path in (tree.parent, tree):
        if path.is_symlink() or (os.path.lexists(path) and not path.is_dir()):
            return path
    return None


def check_free(tree: Path) -> None:
    """Nobody's files are there."""
    if os.path.lexists(tree) and any(tree.iterdir()):
        raise PlaceTaken(
            f"{tree} holds files that Becket did not make; nothing was touched: look through it, then move or remove it"
        )


def made_once(tree: Path) -> bool:
    """It bears the sign of a tree that Becket made, whichever record told of it."""
    return not tree.is_symlink() and _token(tree) is not None


def registered(tree: Path, common_dir: Path) -> bool:
    """Does the repository know a linked worktree at this place, whether it still exists or not?"""
    for admin in (common_dir / "worktrees").glob("*"):
        recorded = read_text(admin / "gitdir")
        if recorded and os.path.realpath((admin / recorded).parent) == os.path.realpath(tree):
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
    if (tree / ".git").is_symlink():
        return None
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


_AT_FDCWD, _AT_SYMLINK_NOFOLLOW = -100, 0x100
_STATX_INO, _STATX_BTIME = 0x100, 0x800
_INO_AT, _BIRTH_AT = 40, 80  # in the kernel's struct statx, the same on every machine


def _identity(tree: Path) -> str:
    """Inode and birth: a folder that is made anew may get the inode of a removed one, but never its birth too."""
    found = ctypes.create_string_buffer(256)
    wanted = _STATX_INO | _STATX_BTIME
    try:
        call = ctypes.CDLL(None).statx
    except AttributeError:
        return ""  # then the token is all there is
    if call(_AT_FDCWD, os.fsencode(tree), _AT_SYMLINK_NOFOLLOW, wanted, found) != 0:
        return ""
    has: int = struct.unpack_from("=I", found, 0)[0]
    if has & wanted != wanted:
        return ""
    inode: int = struct.unpack_from("=Q", found, _INO_AT)[0]
    seconds, nanoseconds = struct.unpack_from("=qI", found, _BIRTH_AT)
    return f"{inode}:{seconds}.{nanoseconds:09}"
