"""Promote, as the door sees it: a branch that must not move yet is an answer, not a failure."""

from __future__ import annotations

from typing import cast

from pydantic import ValidationError

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.errors import EffectFailed, GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.contract.promote import PROMOTE, NotPromoted, Promoted, PromoteRequest, WhyNot
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.git.program import GitCommandFailed
from becket.kernel.git.repository import GitRepository
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.adapters.locks import reflog_words
from becket.parts.promote.adapters.promote import promoter_of

_BRANCHES = "refs/heads/"


class PromoteEffect:
    """Moves a branch to a proven commit: target is the branch's ref, payload `{new, old, proof}`.

    The time limit is not the recipe's: a promotion that takes longer comes to its end all the same, and is then
    looked up. It decides how long the door waits after a crash.
    """

    name = PROMOTE
    class_ = EffectClass.queryable
    needs = Autonomy.merge
    timeout = 30.0

    def __init__(self, git: GitRepository, log: IntentFile) -> None:
        self._git = git
        self._log = log

    def check(self, call: EffectCall) -> str | None:
        if problem := ref_problem(call.target):
            return problem
        if not call.target.startswith(_BRANCHES):
            return f"{call.target} is not a branch; promote moves what lies below {_BRANCHES}"
        if set(call.payload) != {"new", "old", "proof"}:
            return "the payload must be exactly {new, old, proof}"
        try:
            _request(call, "check")
        except ValidationError as error:
            return "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}".strip() for one in error.errors())
        return None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        try:
            answer = await promoter_of(self._git).promote(_request(call, permit.key), permit, self._log)
        except GitFailed as failed:
            # The plan reads; if git says no there, it will say so again. Everything later is worth another try.
            raise EffectFailed(str(failed), retryable=not isinstance(failed, GitCommandFailed)) from failed
        if isinstance(answer, Promoted):
            return {"promoted": True, "main": answer.new, "worktree": answer.worktree and str(answer.worktree)}
        if answer.reason is WhyNot.failed:
            raise EffectFailed(answer.message, retryable=True)
        return {
            "promoted": False,
            "reason": answer.reason.value,
            "message": answer.message,
            "paths": list(answer.paths),
            "main": answer.main or await self._git.value(call.target),
        }

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        """First puts in order what a killed promotion left: it may be ours, and it may still hold locks."""
        left = await promoter_of(self._git).recover(self._log)
        if isinstance(left, NotPromoted) and left.reason is WhyNot.main_busy:
            raise GitFailed(left.message)
        value = await self._git.value(call.target)
        if value is None:
            return LookUpResult.cannot_tell
        told = self._told_by_reflog(call.target, key, value)
        if told or value == call.payload["old"]:
            return LookUpResult.yes if told else LookUpResult.no
        if await self._git.contains(value, call.payload["new"]):
            return LookUpResult.yes
        untouched = told is False or await self._git.contains(value, call.payload["old"])
        return LookUpResult.no if untouched else LookUpResult.cannot_tell

    def _told_by_reflog(self, ref: str, key: str, value: str) -> bool | None:
        """Whether the branch once got its value by this promotion; None where no reflog is kept.

        Git writes the reflog before it moves the ref. An entry counts only if the next one, or the ref, begins where
        it ends; otherwise git was killed in between.
        """
        try:
            log = (self._git.common_dir / "logs" / ref).read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        entries = [line.partition("\t") for line in log.split("\n") if line]
        if not entries:  # expired
            return None
        moves = [fields.split(" ", 2)[:2] for fields, _, _ in entries]
        came_from = [*(old for old, _ in moves[1:]), value]
        return any(
            words == reflog_words(key) and move[1] == following
            for (_, _, words), move, following in zip(entries, moves, came_from, strict=True)
        )


def _request(call: EffectCall, key: str) -> PromoteRequest:
    fields = cast("dict[str, str]", call.payload)
    return PromoteRequest(branch=call.target.removeprefix(_BRANCHES), key=key, **fields)
