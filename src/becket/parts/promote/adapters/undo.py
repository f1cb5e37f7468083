"""Puts a work tree back to the old commit, path by path, whatever state a promotion left it in.

A path is touched only if what is there came from one of the two commits; anything else is somebody's work and stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import GitFailed
from becket.kernel.git.program import run, shown
from becket.parts.promote.adapters.paths import ChangedPath, Files, IndexMarks, PathSide, PathState, listed
from becket.parts.promote.adapters.tree import CHECKOUT_TIMEOUT, PromotionIndexes

mid_undo = CrashPoint("promote.mid_undo", "files of the new commit are removed, those of the old not yet back")
before_old_index = CrashPoint("promote.before_old_index", "all files are old again, the index may still be new")


async def put_back(
    files: Files, indexes: PromotionIndexes, touched: Sequence[ChangedPath], *, untouched: bool
) -> list[bytes]:
    """The paths that are somebody's and were left alone. Called with the index's lock held, any number of times.

    `untouched`: the lock was ours from the beginning, so that the index can only be the one before or our own.
    """
    undo = _Undo(files, indexes, touched)
    await undo.choose_index(untouched=untouched)
    present = await files.look(undo.ours)
    # Attributes decide how every other file is written, so they come first.
    first = [item for item in undo.ours if _is_attributes(item) and files.barrier(item.path) is None]
    await undo.restore(first, present)
    done = {item.path for item in first}
    rest = [item for item in undo.ours if item.path not in done]
    unclear = [item for item in rest if present[item.path].side is PathSide.other]
    present |= await undo.look_again(unclear)
    await undo.restore(rest, present)
    before_old_index()
    return await undo.settle()


class _Undo:
    def __init__(self, files: Files, indexes: PromotionIndexes, touched: Sequence[ChangedPath]) -> None:
        self.files = files
        self.ours: list[ChangedPath] = []
        self._touched = touched
        self._indexes = indexes
        self._place = replace(files.place, index=indexes.work)
        self._entries: Mapping[bytes, IndexMarks] = {}

    async def choose_index(self, *, untouched: bool) -> None:
        """Work on the index as it was; where somebody has written it since, on theirs with our entries taken back."""
        paths = [item.path for item in self._touched]
        self._indexes.work.with_name("index.lock").unlink(missing_ok=True)  # a killed git of ours left it
        if untouched and self._indexes.before.exists():
            shutil.copy2(self._indexes.before, self._indexes.work)
            self._entries = await listed(self._place, paths)
        else:
            shutil.copy2(self._indexes.real, self._indexes.work)
            self._entries = await listed(self._place, paths)
            await self._take_back([item for item in self._touched if self._entry(item) == item.new != item.old])
            self._entries = await listed(self._place, paths)
        self.ours = [item for item in self._touched if self._entry(item) == item.old]

    def _entry(self, item: ChangedPath) -> object:
        found = self._entries.get(item.path)
        return None if found is None else found.entry or "conflict"

    async def _take_back(self, items: Sequence[ChangedPath]) -> None:
        lines = b"".join(_index_info(item) for item in items)
        if lines:
            await run(self._place, "update-index", "-z", "--index-info", stdin=lines)

    async def look_again(self, unclear: Sequence[ChangedPath]) -> dict[bytes, PathState]:
        """With the old attributes in place, and with an eye for files that a killed git had only begun."""
        present = await self.files.look(unclear)
        for item in unclear:
            found = present[item.path]
            if found.side is PathSide.other and await self.files.was_begun(item):
                present[item.path] = PathState(PathSide.new, found.stat)
        return present

    async def restore(self, items: Sequence[ChangedPath], present: Mapping[bytes, PathState]) -> None:
        back: list[bytes] = []
        for item in items:
            found = present[item.path]
            if found.side is PathSide.new and not self._removed(item, found):
                continue
            if item.old is not None and found.side in (PathSide.new, PathSide.vacant) and not self._left_out(item):
                back.append(item.path)
        mid_undo()
        free = [path for path in back if self.files.barrier(path) is None]
        if free:
            # Without --force: a file that somebody has made meanwhile is never replaced.
            options = ("--index", "--ignore-skip-worktree-bits", "--quiet", "-z", "--stdin")
            names = b"\0".join(free) + b"\0"
            await run(self._place, "checkout-index", *options, stdin=names, ok=(0, 1), timeout=CHECKOUT_TIMEOUT)

    def _removed(self, item: ChangedPath, found: PathState) -> bool:
        """Remove a file of the new commit, unless it has changed since it was looked at."""
        now = self.files.seen(item.path)
        if now is not None:
            if found.stat is None or _identity(now) != _identity(found.stat):
                return False
            self.files.full(item.path).unlink()
        parent = item.path.rpartition(b"/")[0]
        with contextlib.suppress(OSError):  # until one that is not empty
            while parent:
                self.files.full(parent).rmdir()
                parent = parent.rpartition(b"/")[0]
        return True

    def _left_out(self, item: ChangedPath) -> bool:
        entry = self._entries.get(item.path)
        return self.files.settings.sparse and entry is not None and entry.skip_worktree

    async def settle(self) -> list[bytes]:
        """Put the index in its place, and say which paths are not as the old commit has them."""
        await run(self._place, "update-index", "-q", "--refresh", ok=(0, 1))
        present = await self.files.look(self.ours)
        strange = [item.path for item in self.ours if not self._is_back(item, present[item.path])]
        if strange:
            odd = await self.files.modified(self._indexes.work, strange)
            strange = [path for path in strange if path in odd or path not in self._entries]
            self._refuse_missing(strange)
        self._indexes.work.replace(self._indexes.real)
        return strange

    def _refuse_missing(self, strange: Sequence[bytes]) -> None:
        """Somebody's work is left alone, but a file that simply is not there is ours to bring back."""
        missing = [
            path
            for path in strange
            if path in self._entries and self.files.seen(path) is None and self.files.barrier(path) is None
        ]
        if missing:
            raise GitFailed(f"git could not write {', '.join(map(shown, missing))}")

    def _is_back(self, item: ChangedPath, found: PathState) -> bool:
        if item.old is None:
            return found.side is PathSide.vacant
        return found.side is PathSide.old or (found.side is PathSide.vacant and self._left_out(item))


def _is_attributes(item: ChangedPath) -> bool:
    return item.path.rpartition(b"/")[2] == b".gitattributes"


def _index_info(item: ChangedPath) -> bytes:
    if item.old is None:
        entry = item.new
        assert entry is not None
        return b"0 %s\t%s\0" % (b"0" * len(entry.sha), item.path)
    return b"%s %s\t%s\0" % (item.old.mode.encode(), item.old.sha.encode(), item.path)


def _identity(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
