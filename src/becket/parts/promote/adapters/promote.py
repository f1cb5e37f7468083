"""Moves a checked-out branch to a proven commit: ref, index and files together, or none of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.effect import Permit, demand
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.contract.outlasting import to_its_end
from becket.kernel.contract.promote import (
    IntentHeld,
    LockMark,
    NotPromoted,
    Promoted,
    PromoteIntent,
    PromoteRequest,
    WhyNot,
    promote_call,
)
from becket.kernel.git.program import GitPlace, run, shown
from becket.kernel.git.refs import Refs
from becket.kernel.git.repository import GitRepository
from becket.parts.promote.adapters.intent import IntentFile, is_ours, process_mark
from becket.parts.promote.adapters.locks import IndexLock, RefTransaction, settle
from becket.parts.promote.adapters.paths import ChangedPath, Files, read_settings, touched_between
from becket.parts.promote.adapters.places import PromotionRefused, WorkTree, standing_on, work_trees
from becket.parts.promote.adapters.recover import put_in_order
from becket.parts.promote.adapters.tree import PromotionIndexes, TreeMove

T = TypeVar("T")

PATIENCE = 2.0
RECOVERY_PATIENCE = 30.0
_OLD_LOCK = 10.0
_AFTERMATH = 0.05

after_intent = CrashPoint("promote.after_intent", "the intent is written, nothing is locked")
after_index_lock = CrashPoint("promote.after_index_lock", "the index is locked, the ref is not")
after_prepare = CrashPoint("promote.after_prepare", "the ref is locked, and the intent does not tell its locks yet")
before_checkout = CrashPoint("promote.before_checkout", "everything is locked and checked, no file is touched")
after_checkout = CrashPoint("promote.after_checkout", "the files are new, index and ref are old")
after_index = CrashPoint("promote.after_index", "files and index are new, the ref is old")
after_commit = CrashPoint("promote.after_commit", "ref, index and files are new, the index is still locked")
before_clear = CrashPoint("promote.before_clear", "all is done, the intent is still there")


def promoter_of(git: GitRepository) -> GitPromoter:
    return GitPromoter(git.ref_store)


class GitPromoter:
    """The only one who touches a person's checkout. Both methods end what they began, even when cancelled."""

    def __init__(self, refs: Refs) -> None:
        self._refs = refs

    async def promote(self, request: PromoteRequest, permit: Permit, log: IntentFile) -> Promoted | NotPromoted:
        """Move the branch, once. Called with the lease held; what an earlier life left is put in order first.

        Raises EffectRefused without a permit for exactly this request, and GitFailed where git cannot answer at all
        (the commit is missing, say) or the files could not be put back; then the intent stays for `recover`.
        """
        demand(permit, promote_call(request))
        if problem := ref_problem(request.ref):
            raise GitFailed(problem)
        # Seen through, also when cancelled: it ends in a second, and half of it would be worse than all.
        return await to_its_end(_told_as_git(self._promote(request, log)))

    async def recover(self, log: IntentFile) -> Promoted | NotPromoted | None:
        """Put in order what a killed promotion left; None if there was none. Called at every start, also twice.

        The branch is never moved here: files that were already new go back unless the branch had moved before the
        kill. Doing it again is the door's decision.
        """
        return await to_its_end(_told_as_git(self._recover(log)))

    async def _promote(self, request: PromoteRequest, log: IntentFile) -> Promoted | NotPromoted:
        try:
            async with log.hold(PATIENCE) as held:
                earlier = await put_in_order(self._refs, log, held)
                if isinstance(earlier, Promoted) and (earlier.branch, earlier.new) == (request.branch, request.new):
                    return earlier
                plan = await self._plan(request, held)
                await self._move(plan, log, held)
        except PromotionRefused as refused:
            return await self._told(request, refused.answer)
        except IntentHeld as busy:
            return NotPromoted(reason=WhyNot.main_busy, message=str(busy))
        return Promoted(branch=request.branch, old=request.old, new=request.new, worktree=plan.worktree)

    async def _recover(self, log: IntentFile) -> Promoted | NotPromoted | None:
        try:
            async with log.hold(RECOVERY_PATIENCE) as held:
                return await put_in_order(self._refs, log, held)
        except PromotionRefused as refused:
            return refused.answer
        except IntentHeld as busy:
            return NotPromoted(reason=WhyNot.main_busy, message=str(busy))

    async def _told(self, request: PromoteRequest, answer: NotPromoted) -> NotPromoted:
        if answer.reason is not WhyNot.main_moved:
            return answer
        return answer.model_copy(update={"main": await self._refs.value(request.ref)})

    async def _plan(self, request: PromoteRequest, held: int) -> PromotionPlan:
        """Everything that can be known without a lock; most refusals come from here, and disturb nobody."""
        refs = self._refs
        if refs.reftable:
            raise PromotionRefused(
                WhyNot.unsupported, f"{refs.common_dir} keeps its refs as a reftable; promote needs files"
            )
        if refs.leads_to(request.ref):
            raise PromotionRefused(
                WhyNot.unsupported, f"{request.ref} is a symbolic ref; name the branch that it leads to"
            )
        if (value := await refs.value(request.ref)) != request.old:
            raise PromotionRefused(
                WhyNot.main_moved, f"{request.ref} is at {value or 'no commit'}, not at {request.old}"
            )
        commits = (f"{request.old}^{{commit}}", f"{request.new}^{{commit}}")
        if (await run(refs.place, "merge-base", "--is-ancestor", *commits, ok=(0, 1))).code == 1:
            raise PromotionRefused(WhyNot.not_fast_forward, f"{request.new} does not contain {request.old}")
        touched = await touched_between(refs.place, *commits)
        if moved := tuple(shown(item.path) for item in touched if item.moves_submodule):
            message = f"the new commit moves submodules ({', '.join(moved)}); merge it by hand"
            raise PromotionRefused(WhyNot.unsupported, message, moved)
        trees = await work_trees(refs)
        tree = standing_on(trees, request.ref)
        place = replace(refs.place, inherits=(held,))
        if tree is None:
            return PromotionPlan(refs, request, tuple(trees), place)
        place = GitPlace(tree.git_dir, tree.folder, inherits=(held,))
        return PromotionPlan(
            refs, request, tuple(trees), place, tree, Files(place, await read_settings(place)), touched
        )

    async def _move(self, plan: PromotionPlan, log: IntentFile, held: int) -> None:
        """Take the locks, move, give them back. What failed half way is put in order as after a kill."""
        async with await RefTransaction.begin(plan.place, self._refs.common_dir, plan.request) as ref:
            attempt = _Attempt(plan, ref, log)
            error = await attempt.run()
        if attempt.half_done:
            answer = await put_in_order(self._refs, log, held)
            if isinstance(answer, NotPromoted):
                raise PromotionRefused(answer.reason, f"{answer.message} ({error})", answer.paths)
            return
        attempt.release()
        before_clear()
        log.clear()
        if isinstance(error, PromotionRefused):
            raise error
        if error is not None:
            raise PromotionRefused(WhyNot.failed, f"nothing was touched: {error}")


@dataclass(frozen=True, slots=True)
class PromotionPlan:
    """What a promotion will do, and where. Without `tree` the branch is checked out nowhere."""

    refs: Refs
    request: PromoteRequest
    trees: tuple[WorkTree, ...]
    place: GitPlace
    tree: WorkTree | None = None
    files: Files | None = None
    touched: Sequence[ChangedPath] = ()

    @property
    def worktree(self) -> Path | None:
        return None if self.tree is None else self.tree.folder

    def locks(self) -> list[IndexLock]:
        """Of the branch's work tree; of all, where it has none: any of them could be switched to it right now."""
        trees = [tree for tree in self.trees if tree.reachable] if self.tree is None else [self.tree]
        return [IndexLock(tree) for tree in trees]


class _Attempt:
    """One promotion between its intent and its end."""

    def __init__(self, plan: PromotionPlan, ref: RefTransaction, log: IntentFile) -> None:
        self._plan = plan
        self._ref = ref
        self._log = log
        self._locks: dict[IndexLock, LockMark] = {}
        self._intent: PromoteIntent
        self._writing = False
        self.half_done = False

    async def run(self) -> PromotionRefused | GitFailed | OSError | None:
        """None: the branch has moved."""
        try:
            await self._take_locks()
            if self._plan.files is not None:
                await self._move_tree(self._plan.files)
            await self._move_ref()
        except PromotionRefused as refused:
            return refused
        except (GitFailed, OSError) as error:
            self.half_done = self._writing
            return error
        after_commit()
        if self._plan.tree is None and self._locks:
            # A `git switch` that has read the old value would still check it out: let it meet the lock and end.
            await asyncio.sleep(_AFTERMATH)
        return None

    def release(self) -> None:
        for lock, mark in self._locks.items():
            lock.release(mark)

    async def _take_locks(self) -> None:
        for lock in self._plan.locks():
            self._locks[lock] = lock.prepare()
        self._write(
            PromoteIntent(
                request=self._plan.request,
                worktree=self._plan.worktree,
                git_dir=self._plan.place.git_dir,
                owner=process_mark(os.getpid()),
                transaction=self._ref.mark,
                index_locks=tuple(self._locks.values()),
            )
        )
        after_intent()
        for lock in self._locks:
            if not lock.take() and (self._plan.tree is not None or lock.age() < _OLD_LOCK):
                raise lock.busy()
        after_index_lock()
        await settle(list(self._locks))
        await self._ref.prepare()
        after_prepare()
        self._write(self._intent.model_copy(update={"ref_locks": self._ref.locks}))
        if standing_on(await work_trees(self._plan.refs), self._plan.request.ref) != self._plan.tree:
            raise PromotionRefused(
                WhyNot.main_busy, f"{self._plan.request.ref} was checked out elsewhere meanwhile; try again"
            )

    async def _move_tree(self, files: Files) -> None:
        ((lock, mark),) = self._locks.items()
        tree = TreeMove(files, PromotionIndexes.of(lock), self._plan.request, self._plan.touched)
        await tree.check()
        self._write(self._intent.model_copy(update={"writing": True}))
        before_checkout()
        tree.look_once_more()
        self._writing = True
        await tree.forward()
        after_checkout()
        if not is_ours(mark):
            raise GitFailed(f"somebody has removed {mark.path} while it was held")
        tree.install()
        after_index()

    async def _move_ref(self) -> None:
        request = self._plan.request
        if not await self._ref.commit() and await self._plan.refs.value(request.ref) != request.new:
            raise GitFailed(f"the git that held {request.ref} was ended before it had moved it; try again")

    def _write(self, intent: PromoteIntent) -> None:
        self._log.write(intent)
        self._intent = intent


async def _told_as_git(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except OSError as error:
        raise GitFailed(f"a promotion met a file that it could not read or write: {error}") from error
