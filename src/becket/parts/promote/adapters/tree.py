"""Takes the work tree that stands on the branch to the new commit, on a copy of its index, and back again.

The copy lies beside the index and is put in its place by a rename, while we hold the index's lock: at no moment can
another git see, or write, an index that does not fit.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from becket.kernel.contract.promote import PromoteRequest, WhyNot
from becket.kernel.git.program import GitCommandFailed, run
from becket.parts.promote.adapters.check import refuse_dirty, refuse_in_the_way
from becket.parts.promote.adapters.locks import IndexLock
from becket.parts.promote.adapters.paths import ChangedPath, Files, IndexMarks, listed
from becket.parts.promote.adapters.places import PromotionRefused

CHECKOUT_TIMEOUT = 600.0
_SOMEBODYS_WORK = ("Cannot merge", "would be overwritten", "would lose untracked")


@dataclass(frozen=True, slots=True)
class PromotionIndexes:
    """The three states of an index during a promotion."""

    real: Path
    before: Path  # a second name of what `real` was
    work: Path  # what git works on

    @classmethod
    def of(cls, lock: IndexLock) -> PromotionIndexes:
        return cls(lock.index, lock.folder / "index.before", lock.folder / "index")


class TreeMove:
    """One work tree on its way. Everything happens with its index lock and the ref's lock held."""

    def __init__(
        self, files: Files, indexes: PromotionIndexes, request: PromoteRequest, touched: Sequence[ChangedPath]
    ) -> None:
        self.files = files
        self.indexes = indexes
        self.touched = touched
        self._request = request
        self._place = replace(files.place, index=indexes.work)
        self._marked: dict[bytes, IndexMarks] = {}

    async def check(self) -> None:
        """Refuse whatever would meet somebody's work; nothing of theirs is touched."""
        self._copy_index()
        entries = await listed(self._place, [item.path for item in self.touched])
        await refuse_dirty(self.files, self.indexes.work, self.touched, entries)
        await self._unmark(entries)
        await run(self._place, "update-index", "-q", "--refresh", ok=(0, 1))
        await self._read_tree("-n")

    def look_once_more(self) -> None:
        """The last moment before git writes: it would overwrite an ignored file that has come since."""
        refuse_in_the_way(self.files, self.touched)

    async def forward(self) -> None:
        """Write the files. If this fails, some of them may be new; if it is Refused, none is."""
        await self._read_tree()
        await self._mark_again()

    def install(self) -> None:
        self.indexes.work.replace(self.indexes.real)

    def _copy_index(self) -> None:
        try:
            os.link(self.indexes.real, self.indexes.before)
            # With its time: git compares it with the files' to know which of them it must read again.
            shutil.copy2(self.indexes.before, self.indexes.work)
        except FileNotFoundError:
            raise PromotionRefused(
                WhyNot.main_dirty,
                f"{self.files.place.work_tree} has no index, as after `git clone --no-checkout`; run `git reset` there",
            ) from None

    async def _read_tree(self, *options: str) -> None:
        command = ("read-tree", *options, "-m", "-u", "--no-recurse-submodules")
        try:
            await run(self._place, *command, self._request.old, self._request.new, timeout=CHECKOUT_TIMEOUT)
        except GitCommandFailed as failed:
            if "resolve your current index" in failed.stderr:
                message = f"conflicts are unresolved at {self._place.work_tree}; resolve them and commit"
                raise PromotionRefused(WhyNot.main_busy, message) from failed
            if any(words in failed.stderr for words in _SOMEBODYS_WORK):
                message = f"work at {self._place.work_tree} would be lost: {failed.stderr}; commit it or stash it"
                raise PromotionRefused(WhyNot.main_dirty, message) from failed
            raise

    async def _unmark(self, entries: Mapping[bytes, IndexMarks]) -> None:
        """Git neither refreshes a file that it was told not to look at, nor replaces one that it has not refreshed."""
        paths = {item.path for item in self.touched if item.old is not None and self.files.seen(item.path)}
        self._marked = {
            path: entry
            for path, entry in entries.items()
            if path in paths and (entry.skip_worktree or entry.assume_unchanged)
        }
        for mark, marked in self._marks():
            await self._update_index(f"--no-{mark}", marked)

    async def _mark_again(self) -> None:
        staying = {item.path for item in self.touched if item.new is not None}
        for mark, marked in self._marks():
            await self._update_index(f"--{mark}", [path for path in marked if path in staying])

    def _marks(self) -> Iterator[tuple[str, list[bytes]]]:
        yield "skip-worktree", [path for path, entry in self._marked.items() if entry.skip_worktree]
        yield "assume-unchanged", [path for path, entry in self._marked.items() if entry.assume_unchanged]

    async def _update_index(self, option: str, paths: Sequence[bytes]) -> None:
        if paths:
            await run(self._place, "update-index", option, "-z", "--stdin", stdin=b"\0".join(paths) + b"\0")
