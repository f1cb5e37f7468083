"""What a workspace holds, as a tree object: tracked, changed and new files, and never a commit somebody else made.

A folder with a `.git` in it would become a link to a commit that only that `.git` has, and git would ask that `.git`,
which a contained program wrote. So git is kept out of such folders and is told their files one by one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.guard import SUBMODULE, SYMLINK, Change, ChangedFile, ChangeStatus
from becket.kernel.git.blobs import sizes_of
from becket.kernel.git.program import GitPlace, run, shown
from becket.kernel.git.quarantine import Quarantine
from becket.kernel.git.submodules import filled
from becket.kernel.git.sweep import defuse
from becket.kernel.git.workspace import standing_place

Choose = Callable[[set[bytes], Collection[bytes]], Awaitable[Collection[bytes]]]
"""Which of the paths that differ are taken; and which paths the commit has."""

_NO_FILE, _FILE = "000000", "100644"


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    blob: str

    @property
    def is_link(self) -> bool:
        """To a commit: a submodule."""
        return self.mode == SUBMODULE


Tracked = dict[bytes, _Entry]


async def tree_of_work(workspace: Workspace, new: Quarantine, choose: Choose | None = None) -> str:
    """Write it to the quarantine. The workspace's own index stays as it is: the same work gives the same tree again.

    With `choose`, what it leaves out of all that differs stays as it is in the commit.
    """
    try:
        # Below the runtime's git directory: the index holds dates, and on another disk they might be cut.
        with tempfile.TemporaryDirectory(prefix="work-", dir=workspace.git_dir) as folder:
            index = Path(folder) / "index"
            await asyncio.to_thread(shutil.copy2, workspace.git_dir / "index", index)
            place = new.at(replace(standing_place(workspace), index=index))
            await asyncio.to_thread(defuse, workspace.tree)
            await _stage(place, workspace.tree, choose)
            return (await run(place, "write-tree")).text
    except OSError as error:
        raise GitFailed(f"what is in {workspace.tree} cannot be saved: {error}") from error


async def work_by_size(workspace: Workspace) -> Change:
    """What differs from the commit, by names and sizes alone: no file is opened, so a sparse one costs nothing.

    Some of it may have only another date.
    """
    try:
        place, tree = standing_place(workspace), workspace.tree
        await asyncio.to_thread(defuse, tree)
        tracked = await _tracked(place)
        roots = await _roots(place, tree, tracked)
        plain = {path for path in await _dated(place) if not _below(path, roots)}
        inside = await _inside(place, tree, roots, tracked)
        found = await asyncio.to_thread(lambda: {path: _lstat(tree, path) for path in plain | inside.taken})
    except OSError as error:
        raise GitFailed(f"what is in {workspace.tree} cannot be looked at: {error}") from error
    known = {path: tracked[path] for path in (*found, *inside.gone) if path in tracked and not tracked[path].is_link}
    sizes = await sizes_of(place, dict.fromkeys(entry.blob for entry in known.values()))
    old = {path: sizes[entry.blob] for path, entry in known.items()}
    return Change(tuple(_by_size(dict.fromkeys(inside.gone) | found, old)), len(tracked))


def _by_size(found: Mapping[bytes, os.stat_result | None], old: Mapping[bytes, int]) -> Iterator[ChangedFile]:
    """A new file that is no larger than one that is gone may be that one: it is judged when both can be read."""
    gone = sorted((path for path in old if found[path] is None), key=lambda path: old[path])
    yield from (_sized(path, path, None, old[path]) for path in gone)
    there = [(path, now) for path, now in found.items() if now is not None]
    for path, now in sorted(there, key=lambda item: (-item[1].st_size, item[0])):
        if path in old:
            yield _sized(path, path, now, old[path])
        elif gone and old[gone[-1]] >= now.st_size:
            moved = gone.pop()
            yield _sized(path, moved, now, old[moved])
        else:
            yield _sized(path, path, now, None)


def _sized(path: bytes, before: bytes, now: os.stat_result | None, old: int | None) -> ChangedFile:
    status = ChangeStatus.deleted if now is None else ChangeStatus.added if old is None else ChangeStatus.modified
    mode = _NO_FILE if now is None else SYMLINK if stat.S_ISLNK(now.st_mode) else _FILE
    return ChangedFile(
        path=shown(path), old_path=shown(before), status=ChangeStatus.renamed if path != before else status,
        old_mode=_NO_FILE if old is None else _FILE, new_mode=mode,
        old_size=old or 0, new_size=0 if now is None else now.st_size,
    )  # fmt: skip


def _lstat(tree: Path, path: bytes) -> os.stat_result | None:
    return os.lstat(tree / os.fsdecode(path)) if _is_there(tree, path) else None


async def _stage(place: GitPlace, tree: Path, choose: Choose | None) -> None:
    tracked = await _tracked(place)
    roots = await _roots(place, tree, tracked)
    if choose is not None:
        plain = {path for path in await _differing(place) if not _below(path, roots)}
        there = await asyncio.to_thread(lambda: {path for path in plain if _is_there(tree, path)})
        await _remove(place, plain - there)
        await _put(place, await choose({*there, *await _by_name(place, tree, roots, tracked)}, tracked.keys()))
    elif not roots:
        await run(place, "add", "--all")
    else:
        kept_out = _lines([b":(top)", *(b":(top,literal,exclude)" + root for root in roots)])
        await run(place, "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=kept_out)
        await _put(place, await _by_name(place, tree, roots, tracked))


async def _roots(place: GitPlace, tree: Path, tracked: Tracked) -> set[bytes]:
    """The folders that git is kept out of. It goes into none that is ignored, but complains about their names."""
    ours = filled(place.git_dir)
    links = [path for path, entry in tracked.items() if entry.is_link and path not in ours]
    roots = await asyncio.to_thread(lambda: _outermost({*_nested(tree), *_filled(tree, links)}))
    return await _not_ignored(place, roots)


async def _differing(place: GitPlace) -> set[bytes]:
    """Paths that differ from the index, and new ones. Submodules count by what they are filled with, elsewhere."""
    await run(place, "update-index", "-q", "--refresh", "--ignore-submodules", ok=(0, 1))
    return await _dated(place)


async def _dated(place: GitPlace) -> set[bytes]:
    """The same, with those that only have another date: none is read."""
    changed = await run(place, "diff-files", "-z", "--name-only", "--ignore-submodules=all")
    new = await run(place, "ls-files", "-z", "--others", "--exclude-standard")
    found = (changed.stdout + new.stdout).split(b"\0")[:-1]
    return {path for path in found if not path.endswith(b"/")}


@dataclass(frozen=True, slots=True)
class _Inside:
    """Of folders that git is kept out of: their files, and tracked paths that are not there as such any more."""

    taken: set[bytes]
    gone: list[bytes]


async def _inside(place: GitPlace, tree: Path, roots: set[bytes], tracked: Tracked) -> _Inside:
    if not roots:
        return _Inside(set(), [])
    found = await asyncio.to_thread(lambda: {path for root in roots for path in _files(tree, root)})
    filled = {parent for path in found for parent in _parents(path)}
    inside = [path for path in tracked if _below(path, roots)]
    gone = [path for path in inside if (path in filled if tracked[path].is_link else path not in found)]
    known = found.intersection(inside)
    # None of the others is tracked, and where the index has a submodule git takes no name below it.
    return _Inside(known | await _not_ignored(place, found - known, "--no-index"), gone)


async def _by_name(place: GitPlace, tree: Path, roots: set[bytes], tracked: Tracked) -> set[bytes]:
    """The files of folders that git is kept out of; those that are gone there leave the index."""
    inside = await _inside(place, tree, roots, tracked)
    await _remove(place, inside.gone)
    return inside.taken


async def _remove(place: GitPlace, paths: Collection[bytes]) -> None:
    if paths:
        await run(place, "update-index", "--force-remove", "-z", "--stdin", stdin=_lines(paths))


async def _put(place: GitPlace, paths: Collection[bytes]) -> None:
    if paths:
        await run(place, "update-index", "--add", "--replace", "-z", "--stdin", stdin=_lines(paths))


def _is_there(tree: Path, path: bytes) -> bool:
    """As a file or a link, and not behind a link: that would be another file of that name."""
    name = tree / os.fsdecode(path)
    behind = any((tree / os.fsdecode(parent)).is_symlink() for parent in _parents(path))
    return not behind and os.path.lexists(name) and (name.is_symlink() or not name.is_dir())


async def _not_ignored(place: GitPlace, paths: set[bytes], *options: str) -> set[bytes]:
    if not paths:
        return paths
    ignored = await run(place, "check-ignore", *options, "-z", "--stdin", stdin=_lines(paths), ok=(0, 1))
    return paths.difference(ignored.stdout.split(b"\0"))


async def _tracked(place: GitPlace) -> Tracked:
    """Every path of the index."""
    listing = (await run(place, "ls-files", "--stage", "-z")).stdout
    entries = (entry.partition(b"\t") for entry in listing.split(b"\0")[:-1])
    return {path: _Entry(*meta.decode("ascii").split(" ")[:2]) for meta, _, path in entries}


@dataclass(frozen=True, slots=True)
class _Folder:
    path: bytes  # relative to the tree; empty for the tree itself
    entries: tuple[os.DirEntry[str], ...]

    def name(self, entry: os.DirEntry[str]) -> bytes:
        return b"/".join(part for part in (self.path, os.fsencode(entry.name)) if part)


def _folders(tree: Path, start: bytes = b"") -> Iterator[_Folder]:
    """Every folder but `.git`; no symbolic link is followed."""
    waiting = [start]
    while waiting:
        path = waiting.pop()
        try:
            with os.scandir(tree / os.fsdecode(path)) as listed:
                folder = _Folder(path, tuple(listed))
        except PermissionError:
            continue  # git cannot read it either, and leaves it out
        yield folder
        deeper = (entry for entry in folder.entries if entry.is_dir(follow_symlinks=False) and entry.name != ".git")
        waiting += [folder.name(entry) for entry in deeper]


def _nested(tree: Path) -> Iterator[bytes]:
    for folder in _folders(tree):
        if folder.path and any(entry.name == ".git" for entry in folder.entries):
            yield folder.path


def _filled(tree: Path, links: Iterable[bytes]) -> Iterator[bytes]:
    """Submodules that are not the empty folders they were checked out as."""
    for link in links:
        path = tree / os.fsdecode(link)
        if path.is_dir() and not path.is_symlink() and any(path.iterdir()):
            yield link


def _outermost(roots: set[bytes]) -> set[bytes]:
    return {root for root in roots if not any(parent in roots for parent in _parents(root))}


def _below(path: bytes, roots: set[bytes]) -> bool:
    return path in roots or any(parent in roots for parent in _parents(path))


def _parents(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _files(tree: Path, root: bytes) -> Iterator[bytes]:
    for folder in _folders(tree, root):
        for entry in folder.entries:
            if entry.name != ".git" and (entry.is_symlink() or entry.is_file(follow_symlinks=False)):
                yield folder.name(entry)


def _lines(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
