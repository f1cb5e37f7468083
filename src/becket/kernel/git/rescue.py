"""Saves what a workspace holds beyond its commit, within bounds; what is left out is told in the commit's message."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from becket.kernel.contract.base import show_size
from becket.kernel.contract.candidate import LeftOut, RescueRules
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.naming import ref_problem
from becket.kernel.git.blobs import files_at
from becket.kernel.git.lfs import bring
from becket.kernel.git.program import GitPlace, run, shown
from becket.kernel.git.quarantine import quarantine
from becket.kernel.git.refs import OWN
from becket.kernel.git.work import tree_of_work

if TYPE_CHECKING:
    from becket.kernel.git.repository import GitRepository

RESCUE = f"{OWN}rescue/"
MOST_OF_ONE_NAME = 100
MOST_TOLD = 50
MADE_AGAIN = frozenset(
    os.fsencode(name)
    for name in (
        "node_modules", "bower_components", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".nox",
        ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle",
    )
)  # fmt: skip
"""Folders that tools fill: new ones are no work."""

_TOLD = re.compile(r"^left out: (.+) \((\d+) bytes\): (.+)$", re.MULTILINE)


async def rescue(git: GitRepository, workspace: Workspace, name: str, message: str) -> str | None:
    ref = f"{RESCUE}{name}"
    if problem := ref_problem(ref):
        raise GitFailed(problem)
    async with quarantine(git.source, workspace.objects) as new:
        place = new.at(git.place)
        base = (await run(place, "rev-parse", "--verify", f"{workspace.sha}^{{tree}}")).text

        async def make() -> _Made | None:
            sieve = RescueFilter(git.rescue_rules(), workspace, place)
            tree = await tree_of_work(workspace, new, sieve.choose)
            if tree == base and not sieve.left_out:
                return None
            free = await _place_for(git, ref, tree)
            if free.holds is not None:
                return _Made(free.holds)
            command = ("commit-tree", tree, "-p", workspace.sha, "-F", "-")
            commit = (await run(place, *command, stdin=rescue_message(message, sieve.left_out).encode())).text
            return _Made(commit, free.ref, await new.pack(commit, workspace.sha))

        made = await new.made(make)
        if made is None:
            return None
        await asyncio.to_thread(bring, workspace.git_dir, git.common_dir)
        if made.ref is not None:
            await new.name(made.ref, made.commit, made.pack)
        return made.commit


@dataclass(frozen=True, slots=True)
class _Made:
    commit: str
    ref: str | None = None  # None: it has one already
    pack: Path | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """A ref that is free, or that holds the same already."""

    ref: str
    holds: str | None = None


async def _place_for(git: GitRepository, ref: str, tree: str) -> _Place:
    """What an earlier try left stays saved (L7), and the same work is saved once: where an attempt saved it and did not
    come to close its checkout, the run does so after it, under a shorter name.
    """
    saved = await git.refs_below(RESCUE)
    for name, value in saved.items():
        if name == ref or name.startswith((f"{ref}.", f"{ref}-")):
            with contextlib.suppress(GitFailed):  # a broken one holds nothing; doctor tells of it
                if await git.tree_of(value) == tree:
                    return _Place(name, value)
    names = [ref, *(f"{ref}.{number}" for number in range(2, MOST_OF_ONE_NAME))]
    return _Place(next((name for name in names if name not in saved), names[-1]))


@dataclass(frozen=True, slots=True)
class RescueFilter:
    """Chooses what is worth saving, and remembers what is not."""

    rules: RescueRules
    workspace: Workspace
    place: GitPlace  # where the commit can be read
    left_out: list[LeftOut] = field(default_factory=list)

    async def choose(self, paths: set[bytes], tracked: Collection[bytes]) -> list[bytes]:
        rules = self.rules
        work = await asyncio.to_thread(self._without_rubbish, paths, tracked)
        fitting = await asyncio.to_thread(self._within_bounds, work, tracked, rules)
        known = {os.fsdecode(path) for path in fitting if path in tracked}
        old = await files_at(self.place, self.workspace.sha, known, rules.largest)
        return await asyncio.to_thread(lambda: [path for path in fitting if self._is_clean(path, old, rules)])

    def _without_rubbish(self, paths: set[bytes], tracked: Collection[bytes]) -> set[bytes]:
        sizes: dict[bytes, int] = {}
        for path in sorted(paths.difference(tracked)):
            if folder := _made_again(path):
                sizes[folder] = sizes.get(folder, 0) + (self._size(path) or 0)
        for folder, size in sizes.items():
            self._leave(folder + b"/", size, "tools make this folder")
        return {path for path in paths if path in tracked or not _made_again(path)}

    def _within_bounds(self, paths: set[bytes], tracked: Collection[bytes], rules: RescueRules) -> list[bytes]:
        """Changed files first, then new ones; small ones first."""
        sizes = {path: self._size(path) for path in paths}
        fitting, sum_ = [], 0
        for path in sorted(paths, key=lambda path: (path not in tracked, sizes[path] or 0, path)):
            size = sizes[path]
            if size is None:  # a link
                fitting.append(path)
            elif size > rules.largest:
                self._leave(path, size, f"larger than {show_size(rules.largest)}")
            elif sum_ + size > rules.together:
                self._leave(path, size, f"the rescue would be larger than {show_size(rules.together)}")
            else:
                sum_ += size
                fitting.append(path)
        return fitting

    def _is_clean(self, path: bytes, old: Mapping[str, bytes], rules: RescueRules) -> bool:
        name = os.fsdecode(path)
        file = self.workspace.tree / name
        content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
        why = rules.secret(name, old.get(name, b""), content)
        if why:
            self._leave(path, len(content), why)
        return not why

    def _size(self, path: bytes) -> int | None:
        """As the file appears: a sparse one would be written in full. None for what is no file."""
        try:
            found = os.lstat(self.workspace.tree / os.fsdecode(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def _leave(self, path: bytes, size: int, why: str) -> None:
        name = " ".join(self.rules.shown(shown(path)).split("\n"))
        self.left_out.append(LeftOut(path=name, size=size, why=why))


def _made_again(path: bytes) -> bytes:
    """The outermost folder of such a name that holds the path; empty if none does."""
    parts = path.split(b"/")[:-1]
    depth = next((number for number, part in enumerate(parts, 1) if part in MADE_AGAIN), 0)
    return b"/".join(parts[:depth])


def rescue_message(message: str, left_out: Sequence[LeftOut]) -> str:
    """The commit's message: what was left out is part of what is known of the work."""
    lines = [_line(item) for item in left_out[:MOST_TOLD]]
    if rest := left_out[MOST_TOLD:]:
        more = LeftOut(path=f"{len(rest)} more", size=sum(item.size for item in rest), why="for such reasons")
        lines.append(_line(more))
    return "\n".join([message, *([""] if lines else []), *lines, ""])


def _line(item: LeftOut) -> str:
    return f"left out: {item.path} ({item.size} bytes): {item.why}"


def read_left_out(message: str) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(path=path, size=int(size), why=why) for path, size, why in _TOLD.findall(message))
