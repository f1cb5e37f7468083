"""Submodules in a workspace: their files, from what the person's repository already has. Nothing is fetched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from becket.kernel.git.program import GitPlace, run

_LINK = b"160000 commit "
_RECORD = "becket-submodules"


def filled(git_dir: Path) -> frozenset[bytes]:
    """The submodules of the workspace with that git directory whose files Becket put there: they are nobody's work, and
    what a program changes in them is part of no commit.
    """
    try:
        return frozenset((git_dir / _RECORD).read_bytes().split(b"\0"))
    except FileNotFoundError:
        return frozenset()


def remember(git_dir: Path, paths: Iterable[bytes]) -> None:
    (git_dir / _RECORD).write_bytes(b"\0".join(paths))


async def fill(git_dirs: tuple[Path, ...], tree: Path, links: Mapping[bytes, str], modules: bytes) -> list[bytes]:
    """Put the commits that `links` names into their folders; one that is not there stays an empty folder. Returns
    the paths that were filled.

    `git_dirs` are where `git submodule` may have put them; `modules` is the commit's .gitmodules.
    """
    names = await _names(git_dirs[0], modules)
    done: list[bytes] = []
    for path, sha in links.items():
        own = await home_of(git_dirs, names.get(path, ""), sha)
        if own is None:
            continue
        folder = Path(os.fsdecode(os.fsencode(tree) + b"/" + path))
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            place = GitPlace(own, folder, private=True, index=Path(scratch, "index"))
            await run(place, "read-tree", "--reset", "-u", "--no-recurse-submodules", sha)
        if deeper := dict(_links((await run(GitPlace(own), "ls-tree", "-rz", sha)).stdout)):
            text = await run(GitPlace(own), "cat-file", "blob", f"{sha}:.gitmodules", ok=(0, 128))
            await fill((own,), folder, deeper, text.stdout)
        done.append(path)
    return done


async def absent(git_dirs: tuple[Path, ...], links: Mapping[bytes, str], modules: bytes) -> list[str]:
    """The submodules that would stay empty. For doctor."""
    names = await _names(git_dirs[0], modules)
    return [
        os.fsdecode(path) for path, sha in links.items() if await home_of(git_dirs, names.get(path, ""), sha) is None
    ]


async def home_of(git_dirs: tuple[Path, ...], name: str, sha: str) -> Path | None:
    """The git directory of the submodule, if it has the commit."""
    for folder in (git_dir / "modules" for git_dir in git_dirs):
        own = folder / name
        # A name with `..` would lead git to any folder that the commit chooses.
        if not name or ".." in Path(name).parts or not (own / "HEAD").is_file() or not own.is_relative_to(folder):
            continue
        if not (await run(GitPlace(own), "cat-file", "-e", f"{sha}^{{commit}}", ok=(0, 1, 128))).code:
            return own
    return None


async def _names(git_dir: Path, modules: bytes) -> dict[bytes, str]:
    """By path, from the text of a .gitmodules."""
    command = ("config", "--file=-", "--null", "--get-regexp", r"^submodule\..*\.path$")
    said = await run(GitPlace(git_dir), *command, stdin=modules, ok=(0, 1, 128))
    pairs = (entry.partition(b"\n") for entry in said.stdout.split(b"\0")[:-1])
    return {path: os.fsdecode(key)[len("submodule.") : -len(".path")] for key, _, path in pairs}


def _links(listing: bytes) -> Iterator[tuple[bytes, str]]:
    for line in listing.split(b"\0")[:-1]:
        if line.startswith(_LINK):
            kind, _, path = line.partition(b"\t")
            yield path, kind.removeprefix(_LINK).decode()
