"""How what a set-up made gets into a tree: by symbolic links, never in place of anything that the commit has."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from becket.kernel.contract.git import Workspace
from becket.parts.gates.ports.setup import SetupClash, SetupLink, SetupReady
from becket.parts.gates.reports.folder import listed
from becket.parts.gates.setups import words

_PACKAGES = "node_modules"
_CACHES = (_PACKAGES, f"{_PACKAGES}/.cache")
"""Tools keep what they work out in here, beside the packages: each tree has a real folder of its own for that."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DEEPEST = 200  # folders in folders; what lies below is nobody's work
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathOccupied(Exception):
    """The commit has the path that the set-up made."""


def sayable(path: str) -> bool:
    """No record can hold a name that is not UTF-8, and no line of a file one with a line break."""
    return path.encode(errors="replace").decode() == path and not _CONTROL.search(path)


def folders_of(paths: Collection[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        parent = posixpath.dirname(path)
        while parent and parent not in found:
            found.add(parent)
            parent = posixpath.dirname(parent)
    return found


def made_paths(tree: Path, key_files: Collection[str]) -> tuple[str, ...]:
    """What is new beside the key files, by the topmost names. A `.git` is never part of it."""
    kept = folders_of(key_files)

    def new_in(folder: str) -> Iterator[str]:
        for path in _children(tree, folder):
            if path in kept and _is_folder(tree / path):
                yield from new_in(path)
            elif path not in key_files and path not in kept and posixpath.basename(path) != ".git":
                yield path

    return tuple(new_in(""))


def opened_folders(tree: Path, made: Collection[str]) -> tuple[str, ...]:
    """Folders with a link to something of the tree that the set-up did not make.

    `node_modules/member -> ../packages/member` must lead to the member of the tree being proven. So these folders
    become real ones there, with a link for each of their parts.
    """
    links = [name for name in _links_in(tree, made) if sayable(name) and _leads_into_tree(tree, name, made)]
    return tuple(sorted(folders_of(links) - folders_of(made)))


def _links_in(tree: Path, made: Collection[str]) -> Iterator[str]:
    """All symbolic links below, without a call in a call for every folder in a folder."""
    waiting = [(path, 1) for path in made if _is_folder(tree / path)]
    while waiting:
        folder, depth = waiting.pop()
        for entry in listed(tree / folder):
            name = posixpath.join(folder, entry.name)
            if entry.is_symlink():
                yield name
            elif depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                waiting.append((name, depth + 1))


def _leads_into_tree(tree: Path, path: str, made: Collection[str]) -> bool:
    if not (tree / path).is_symlink():
        return False
    target = (tree / path).readlink()
    if target.is_absolute():
        return False
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    inside_made = any(meant == other or meant.startswith(f"{other}/") for other in made)
    return not inside_made and meant != ".." and not meant.startswith("../")


@dataclass
class LinkPlan:
    """The links that one commit needs for what a set-up made."""

    tree: Path
    made: Collection[str]
    opened: Collection[str]
    files: Collection[str]  # of the commit
    links: list[SetupLink] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        folders = folders_of(self.files)
        for path in self.made:
            self._add(path, folders, named=False)

    def _add(self, path: str, folders: set[str], *, named: bool) -> None:
        shared = path in folders  # with the commit
        is_folder = _is_folder(self.tree / path)
        if path in self.files or (shared and not is_folder):
            raise PathOccupied(path)
        if not shared and not named:
            self.paths.append(path)
        if is_folder and (shared or path in self.opened or _holds_caches(path)) and path.count("/") < _DEEPEST:
            for child in _children(self.tree, path):
                self._add(child, folders, named=named or not shared)
        elif _leads_into_tree(self.tree, path, self.made):
            self.links.append(SetupLink(path=path, target=(self.tree / path).readlink()))
        else:
            self.links.append(SetupLink(path=path, target=self.tree / path))


def _holds_caches(path: str) -> bool:
    return any(path == place or path.endswith(f"/{place}") for place in _CACHES)


def provide(workspace: Workspace, ready: SetupReady) -> None:
    """By folder descriptors that follow no link: a program that ran in the tree may have planted some."""
    patterns = "".join(f"{_pattern(path)}\n" for path in ready.paths).encode(errors="surrogateescape")
    with _opened(os.fspath(workspace.tree)) as tree:
        for link in ready.links:
            _make(tree, link)
        try:
            with _opened(".git", tree) as own, _opened("info", own) as info:
                _replace(info, "exclude", patterns)
        except OSError as error:
            raise SetupClash(words.CLASH.format(path=workspace.tree / ".git/info")) from error
    with _opened(os.fspath(workspace.git_dir / "info")) as info:
        _replace(info, "exclude", patterns)


def _make(tree: int, link: SetupLink) -> None:
    *parents, name = link.path.split("/")
    here = os.dup(tree)
    try:
        for parent in parents:
            inner = _folder_in(here, parent)
            os.close(here)
            here = inner
        _link(here, name, os.fspath(link.target))
    except OSError as error:
        raise SetupClash(words.CLASH.format(path=link.path)) from error
    finally:
        os.close(here)


def _folder_in(here: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=here)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=here)
        return os.open(name, _FOLDER, dir_fd=here)


def _link(here: int, name: str, target: str) -> None:
    try:
        os.symlink(target, name, dir_fd=here)
    except FileExistsError:
        if os.readlink(name, dir_fd=here) != target:  # an OSError if it is no link at all
            raise


def _replace(folder: int, name: str, content: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)


def _pattern(path: str) -> str:
    """One exact path for `info/exclude`."""
    return "/" + re.sub(r"([\\*?\[\s])", r"\\\1", path)


def _children(tree: Path, folder: str) -> list[str]:
    names = (path.name for path in (tree / folder).iterdir())
    return sorted(posixpath.join(folder, name) for name in names if sayable(name))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


@contextmanager
def _opened(name: str, parent: int | None = None) -> Iterator[int]:
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        yield folder
    finally:
        os.close(folder)
