"""Puts in order what a promotion left that did not come to its end: our own locks, and files already new."""

from __future__ import annotations

from pathlib import Path

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.promote import NotPromoted, Promoted, PromoteIntent, WhyNot
from becket.kernel.git.program import GitPlace, run, shown
from becket.kernel.git.refs import Refs
from becket.parts.promote.adapters.intent import IntentFile, is_alive, is_ours, remove_ours
from becket.parts.promote.adapters.locks import IndexLock
from becket.parts.promote.adapters.paths import Files, read_settings, touched_between
from becket.parts.promote.adapters.places import PromotionRefused, WorkTree
from becket.parts.promote.adapters.tree import PromotionIndexes
from becket.parts.promote.adapters.undo import put_back


class NotPutBack(GitFailed):
    """Files of a promotion that failed are still there; the intent and the index's lock stay until they are not."""


async def put_in_order(refs: Refs, log: IntentFile, held: int) -> Promoted | NotPromoted | None:
    """None: there was nothing to do. Refused where somebody's lock is in the way; the intent then stays."""
    intent = log.read()
    if intent is None:
        return None
    answer = await _Remains(refs, intent, held).settled()
    log.clear()
    return answer


class _Remains:
    """What one intent tells of, seen by a later process."""

    def __init__(self, refs: Refs, intent: PromoteIntent, held: int) -> None:
        self._refs = refs
        self._intent = intent
        self._request = intent.request
        self._held = held
        self._marks = {mark.path.parent: mark for mark in intent.index_locks}

    async def settled(self) -> Promoted | NotPromoted:
        if is_alive(self._intent.transaction):
            message = f"process {self._intent.transaction.pid} of an earlier promotion still runs; end it"
            raise PromotionRefused(WhyNot.main_busy, message)
        for mark in self._intent.ref_locks:
            remove_ours(mark)
        value = await self._refs.value(self._request.ref)
        landed = value is not None and await self._contains(value)
        strange: list[bytes] = []
        worktree = self._intent.worktree
        still_there = worktree is not None and worktree.is_dir() and self._intent.git_dir.is_dir()
        if worktree is not None and still_there and self._intent.writing and not landed:
            strange = await self._undone(worktree, value)
        self._release()
        return self._promoted() if landed else self._not_promoted(value, tuple(shown(path) for path in strange))

    async def _contains(self, value: str) -> bool:
        """Whether the branch had moved before the kill; somebody may have gone on from there."""
        if value in (self._request.new, self._request.old):
            return value == self._request.new
        output = await run(self._refs.place, "merge-base", "--is-ancestor", self._request.new, value, ok=(0, 1, 128))
        return output.code == 0

    async def _undone(self, worktree: Path, value: str | None) -> list[bytes]:
        lock = IndexLock(WorkTree(self._intent.git_dir, worktree))
        untouched = is_ours(self._marks[self._intent.git_dir])
        if not untouched:
            self._marks[self._intent.git_dir] = lock.prepare()
            if not lock.take():
                raise lock.busy()
        place = GitPlace(self._intent.git_dir, worktree, inherits=(self._held,))
        files = Files(place, await read_settings(place))
        touched = await touched_between(place, self._request.old, self._request.new)
        if value is not None and value != self._request.old:
            since = {item.path for item in await touched_between(place, self._request.old, value)}
            touched = tuple(item for item in touched if item.path not in since)
        try:
            return await put_back(files, PromotionIndexes.of(lock), touched, untouched=untouched)
        except (GitFailed, OSError) as error:
            raise NotPutBack(
                f"a promotion failed, and the files at {worktree} could not be put back yet: {error}; "
                "the next start tries again, and nothing of yours was changed"
            ) from error

    def _release(self) -> None:
        for git_dir, mark in self._marks.items():
            IndexLock(WorkTree(git_dir, None)).release(mark)

    def _promoted(self) -> Promoted:
        request = self._request
        return Promoted(branch=request.branch, old=request.old, new=request.new, worktree=self._intent.worktree)

    def _not_promoted(self, value: str | None, left_alone: tuple[str, ...]) -> NotPromoted:
        if left_alone:
            message = (
                f"files were changed while they were being moved, and were left alone: {', '.join(left_alone)}; "
                "compare them with `git diff`, then commit or discard"
            )
            return NotPromoted(reason=WhyNot.main_dirty, message=message, paths=left_alone)
        if value == self._request.old:
            return NotPromoted(reason=WhyNot.failed, message="a promotion was interrupted; everything is as it was")
        message = f"a promotion was interrupted, and {self._request.ref} has moved since; nothing of it is left"
        return NotPromoted(reason=WhyNot.main_moved, message=message, main=value)
