"""The effect on the person's repository, as the door sees it."""

from __future__ import annotations

from becket.adapters.git.move import UPDATE_REF, RefBusy
from becket.adapters.git.program import GRACE, TIMEOUT, GitTimedOut
from becket.adapters.git.refs import SHA, ref_problem
from becket.adapters.git.repository import GitRepository
from becket.contract.base import Json
from becket.contract.effect import EffectCall, Permit, Seen
from becket.contract.errors import EffectFailed, GitFailed
from becket.contract.spec import Autonomy, EffectClass


class UpdateRefEffect:
    """Moves one ref to an exact hash by compare-and-swap: target is the ref, payload `{new, old}`."""

    name = UPDATE_REF
    class_ = EffectClass.queryable
    needs = Autonomy.merge
    timeout = 2 * (TIMEOUT + 2 * GRACE)  # two git commands, each ended by force at the worst

    def __init__(self, git: GitRepository) -> None:
        self._git = git

    def check(self, call: EffectCall) -> str | None:
        if problem := ref_problem(call.target):
            return problem
        if set(call.payload) != {"new", "old"}:
            return "the payload must be exactly {new, old}; old is null for a ref that must not exist yet"
        new, old = call.payload["new"], call.payload["old"]
        if not _is_sha(new) or not (old is None or _is_sha(old)):
            return "new and old must be full hashes, never names (old may be null)"
        return f"{call.target} would stay at {new}; there is nothing to do" if new == old else None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        new, old = call.payload["new"], call.payload["old"]
        try:
            await self._git.update_ref(call.target, new, old, permit)
        except GitTimedOut as timed_out:
            raise EffectFailed(str(timed_out), retryable=True, ambiguous=True) from timed_out
        except GitFailed as failed:
            raise EffectFailed(str(failed), retryable=isinstance(failed, RefBusy)) from failed
        return {"ref": call.target, "old": old, "new": new}

    async def look_up(self, call: EffectCall, key: str) -> Seen:
        try:
            value = await self._git.value(call.target)
        except GitFailed:
            return Seen.cannot_tell
        if value == call.payload["new"]:
            return Seen.yes
        return Seen.no if value == call.payload["old"] else Seen.cannot_tell


def _is_sha(value: Json) -> bool:
    return isinstance(value, str) and SHA.fullmatch(value) is not None
