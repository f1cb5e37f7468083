"""What a fast-forward would change, and what really lies at those paths: asked of the files, not of the index."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from becket.kernel.contract.guard import EXECUTABLE, SUBMODULE, SYMLINK
from becket.kernel.git.program import GitPlace, run

_CHUNK = 1 << 20
_MANY = 500  # more paths than this are not worth naming one by one


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as a tree or the index has it."""

    mode: str
    sha: str


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """One path that differs between two commits; None where there is no such file."""

    path: bytes
    old: FileEntry | None
    new: FileEntry | None

    @property
    def moves_submodule(self) -> bool:
        return any(entry is not None and entry.mode == SUBMODULE for entry in (self.old, self.new))


@dataclass(frozen=True, slots=True)
class IndexMarks:
    """One path of the index, with the two marks by which a person tells git not to look at the file."""

    entry: FileEntry | None  # None: in conflict
    skip_worktree: bool
    assume_unchanged: bool


@dataclass(frozen=True, slots=True)
class CheckoutSettings:
    """What decides how a tree's file looks in the work tree."""

    filemode: bool = True
    ignorecase: bool = False
    sparse: bool = False


class PathSide(StrEnum):
    """Which commit's a path's present state is."""

    old = "old"
    new = "new"
    vacant = "vacant"  # no file is there
    other = "other"  # neither: somebody's work


@dataclass(frozen=True, slots=True)
class PathState:
    """What is at a path now; `stat` is of the file or link that was looked at."""

    side: PathSide
    stat: os.stat_result | None = None


async def touched_between(place: GitPlace, old: str, new: str) -> tuple[ChangedPath, ...]:
    """Every path that differs, renames as a deletion and an addition."""
    output = await run(place, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", old, new)
    fields = output.stdout.split(b"\0")[:-1]
    return tuple(_touched(meta, path) for meta, path in zip(fields[::2], fields[1::2], strict=True))


def _touched(meta: bytes, path: bytes) -> ChangedPath:
    old_mode, new_mode, old_sha, new_sha, _ = meta.decode().lstrip(":").split(" ")
    return ChangedPath(path, _entry(old_mode, old_sha), _entry(new_mode, new_sha))


def _entry(mode: str, sha: str) -> FileEntry | None:
    return None if mode == "000000" else FileEntry(mode, sha)


async def listed(place: GitPlace, paths: Sequence[bytes]) -> dict[bytes, IndexMarks]:
    """The index at these paths (and perhaps others)."""
    wanted = [os.fsdecode(path) for path in paths] if len(paths) <= _MANY else []
    output = await run(place, "--literal-pathspecs", "ls-files", "-v", "--stage", "-z", "--full-name", "--", *wanted)
    return dict(_listed(line) for line in output.stdout.split(b"\0")[:-1])


def _listed(line: bytes) -> tuple[bytes, IndexMarks]:
    meta, _, path = line.partition(b"\t")
    tag, mode, sha, stage = meta.decode().split(" ")
    entry = FileEntry(mode, sha) if stage == "0" else None
    return path, IndexMarks(entry, skip_worktree=tag in "Ss", assume_unchanged=tag.islower())


async def read_settings(place: GitPlace) -> CheckoutSettings:
    pattern = r"^core\.(filemode|ignorecase|sparsecheckout)$"
    output = await run(place, "config", "--null", "--type=bool", "--get-regexp", pattern, ok=(0, 1))
    found = dict(line.split("\n", 1) for line in output.text.split("\0") if line)
    return CheckoutSettings(
        filemode=found.get("core.filemode") != "false",
        ignorecase=found.get("core.ignorecase") == "true",
        sparse=found.get("core.sparsecheckout") == "true",
    )


class Files:
    """The files of one work tree. No symbolic link is followed on the way to a path."""

    def __init__(self, place: GitPlace, settings: CheckoutSettings) -> None:
        assert place.work_tree is not None
        self.place = place
        self.settings = settings
        self.root = place.work_tree

    def full(self, path: bytes) -> Path:
        return self.root / os.fsdecode(path)

    def seen(self, path: bytes) -> os.stat_result | None:
        try:
            return self.full(path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None

    async def look(self, touched: Iterable[ChangedPath]) -> dict[bytes, PathState]:
        """What is there now; old counts where it could be either."""
        paths = {item.path: item for item in touched}
        present = {path: self._present(item, paths) for path, item in paths.items()}
        unclear = {
            path: found.stat
            for path, found in present.items()
            if found.side is PathSide.other and found.stat is not None and stat.S_ISREG(found.stat.st_mode)
        }
        for path, sha in (await self._cleaned(list(unclear))).items():
            present[path] = PathState(self._side_of(paths[path], unclear[path], sha), unclear[path])
        return present

    def _present(self, item: ChangedPath, paths: dict[bytes, ChangedPath]) -> PathState:
        """A folder, or a file further up, may be there because one of the two commits has it there."""
        if (barrier := self.barrier(item.path)) is not None:
            return PathState(PathSide.vacant if barrier in paths else PathSide.other)
        found = self.seen(item.path)
        if found is None:
            return PathState(PathSide.vacant)
        if stat.S_ISDIR(found.st_mode):
            below = item.path + b"/"
            return PathState(PathSide.vacant if any(path.startswith(below) for path in paths) else PathSide.other)
        entry = item.old or item.new
        assert entry is not None
        return PathState(self._side_of(item, found, self._hash(item.path, found, len(entry.sha))), found)

    def barrier(self, path: bytes) -> bytes | None:
        """The first thing on the way to a path that is not a folder; None if the way is free or ends."""
        parts = path.split(b"/")[:-1]
        for depth in range(1, len(parts) + 1):
            above = b"/".join(parts[:depth])
            found = self.seen(above)
            if found is None:
                return None
            if not stat.S_ISDIR(found.st_mode):
                return above
        return None

    def _side_of(self, item: ChangedPath, found: os.stat_result, sha: str) -> PathSide:
        if item.old is not None and item.old.sha == sha and self._kind_fits(item.old, found):
            return PathSide.old
        if item.new is not None and item.new.sha == sha and self._kind_fits(item.new, found):
            return PathSide.new
        return PathSide.other

    def _kind_fits(self, entry: FileEntry, found: os.stat_result) -> bool:
        if stat.S_ISLNK(found.st_mode):
            return entry.mode == SYMLINK
        if not stat.S_ISREG(found.st_mode):
            return False
        if entry.mode == SYMLINK:  # a plain file where core.symlinks is off
            return True
        return not self.settings.filemode or bool(found.st_mode & stat.S_IXUSR) == (entry.mode == EXECUTABLE)

    def _hash(self, path: bytes, found: os.stat_result, length: int) -> str:
        """The name git would give to exactly these bytes; empty for what is neither file nor link."""
        full = self.full(path)
        digest = hashlib.new("sha256" if length == 64 else "sha1", usedforsecurity=False)
        digest.update(b"blob %d\0" % found.st_size)
        if stat.S_ISLNK(found.st_mode):
            digest.update(os.readlink(os.fsencode(full)))  # noqa: PTH115  # a Path would tidy it up
        elif stat.S_ISREG(found.st_mode):
            with full.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        else:
            return ""
        return digest.hexdigest()

    async def _cleaned(self, paths: list[bytes]) -> dict[bytes, str]:
        """The names that git would store: line ends and filters applied. A path it could misread is left out."""
        plain = [path for path in paths if b"\n" not in path and not path.startswith(b'"')]
        if not plain:
            return {}
        output = await run(self.place, "hash-object", "--stdin-paths", stdin=b"\n".join(plain) + b"\n")
        return dict(zip(plain, output.text.splitlines(), strict=True))

    async def modified(self, index: Path, paths: Sequence[bytes]) -> set[bytes]:
        """Those of these paths that git itself calls modified, by that index.

        A file that was committed against its own attributes never hashes to its blob again; git goes by its stat.
        """
        place = replace(self.place, index=index)
        output = await run(place, "diff-files", "-z", "--name-only", "--ignore-submodules=dirty")
        return set(output.stdout.split(b"\0")) & set(paths)

    async def was_begun(self, item: ChangedPath) -> bool:
        """Whether a killed git may have begun to write this file: it holds the beginning of one of the two."""
        found = self.seen(item.path)
        if found is None or not stat.S_ISREG(found.st_mode) or self.barrier(item.path) is not None:
            return False
        present = self.full(item.path).read_bytes()
        path = os.fsdecode(item.path)
        for entry in (item.old, item.new):
            if entry is None or entry.mode == SYMLINK:
                continue
            whole = await run(self.place, "cat-file", "--filters", f"--path={path}", entry.sha)
            if whole.stdout.startswith(present):
                return True
        return False
