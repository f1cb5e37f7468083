"""The effects on the person's refs, as the door sees them."""

from __future__ import annotations

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit
from becket.kernel.contract.errors import EffectFailed, GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.git.move import PROPOSALS, PROPOSE, UPDATE_REF, RefBusy
from becket.kernel.git.program import GRACE, TIMEOUT, GitTimedOut
from becket.kernel.git.refs import SHA
from becket.kernel.git.repository import GitRepository

_TWO_COMMANDS = 2 * (TIMEOUT + 2 * GRACE)  # each ended by force at the worst


class UpdateRefEffect:
    """Moves one ref to an exact hash by compare-and-swap: target is the ref, payload `{new, old}`."""

    name = UPDATE_REF
    class_ = EffectClass.queryable
    needs = Autonomy.merge
    timeout = _TWO_COMMANDS

    def __init__(self, git: GitRepository) -> None:
        self._git = git

    def check(self, call: EffectCall) -> str | None:
        if problem := ref_problem(call.target):
            return problem
        if set(call.payload) != {"new", "old"}:
            return "the payload must be exactly {new, old}; old is null for a ref that must not exist yet"
        new, old = call.payload["new"], call.payload["old"]
        if not is_sha(new) or not (old is None or is_sha(old)):
            return "new and old must be full hashes, never names (old may be null)"
        return f"{call.target} would stay at {new}; there is nothing to do" if new == old else None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        new, old = call.payload["new"], call.payload["old"]
        try:
            await self._git.update_ref(call.target, new, old, permit)
        except GitFailed as failed:
            raise effect_failure(failed) from failed
        return {"ref": call.target, "old": old, "new": new}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        try:
            value = await self._git.value(call.target)
        except GitFailed:
            return LookUpResult.cannot_tell
        if value == call.payload["new"]:
            return LookUpResult.yes
        return LookUpResult.no if value == call.payload["old"] else LookUpResult.cannot_tell


class ProposeEffect:
    """Offers one commit as a branch below `refs/heads/becket/`: target is the ref, payload `{new}`.

    Needs less than moving a ref: nobody's branch changes, and what a person makes of it is theirs to say.
    """

    name = PROPOSE
    class_ = EffectClass.queryable
    needs = Autonomy.propose
    timeout = _TWO_COMMANDS

    def __init__(self, git: GitRepository) -> None:
        self._git = git

    def check(self, call: EffectCall) -> str | None:
        if problem := ref_problem(call.target):
            return problem
        if not call.target.startswith(PROPOSALS):
            return f"{call.target} is not below {PROPOSALS}; only branches there are proposals"
        if set(call.payload) != {"new"}:
            return "the payload must be exactly {new}"
        return None if is_sha(call.payload["new"]) else "new must be a full hash, never a name"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        try:
            await self._git.propose(call.target, call.payload["new"], permit)
        except GitFailed as failed:
            raise effect_failure(failed) from failed
        return {"ref": call.target, "new": call.payload["new"]}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        value = await self._git.value(call.target)
        if value is None:
            return LookUpResult.no
        return LookUpResult.yes if value == call.payload["new"] else LookUpResult.cannot_tell


def effect_failure(failed: GitFailed) -> EffectFailed:
    """A git that was ended may have done its work; one that met a lock may do it in a moment."""
    if isinstance(failed, GitTimedOut):
        return EffectFailed(str(failed), retryable=True, ambiguous=True)
    return EffectFailed(str(failed), retryable=isinstance(failed, RefBusy))


def is_sha(value: Json) -> bool:
    return isinstance(value, str) and SHA.fullmatch(value) is not None
