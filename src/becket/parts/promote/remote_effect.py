"""Push, as the door sees it: a remote that moved or refuses has answered; one that gave no answer is looked up."""

from __future__ import annotations

from pydantic import ValidationError

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit
from becket.kernel.contract.errors import EffectFailed, GitFailed
from becket.kernel.contract.naming import ref_problem
from becket.kernel.contract.remote import PUSH, Pushed, PushRequest, RemoteFailed, RemoteTrouble, push_call
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.git.program import GRACE
from becket.kernel.git.program import TIMEOUT as LOCAL
from becket.kernel.git.remote import TIMEOUT, GitRemote
from becket.kernel.git.repository import GitRepository

_IN_DOUBT = (RemoteTrouble.timed_out, RemoteTrouble.broken_off)


class PushEffect:
    """Moves a branch of a remote forward: target is `remote/branch`, payload `{remote, branch, new, expected}`."""

    name = PUSH
    class_ = EffectClass.queryable
    needs = Autonomy.merge
    timeout = 2 * TIMEOUT + LOCAL + 4 * GRACE  # one fetch and one push, each ended by force at the worst

    def __init__(self, git: GitRepository, remote: GitRemote | None = None) -> None:
        self._git = git
        self._remote = remote or git.remote()

    def check(self, call: EffectCall) -> str | None:
        try:
            request = PushRequest.model_validate(call.payload)
        except ValidationError as error:
            return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        if problem := ref_problem(request.ref):
            return problem
        wanted = push_call(request).target
        return None if call.target == wanted else f"the target must be {wanted}, as the payload says"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        request = PushRequest.model_validate(call.payload)
        try:
            answer = await self._remote.push(request, permit)
        except RemoteFailed as failed:
            retryable = failed.trouble is not RemoteTrouble.unknown
            raise EffectFailed(str(failed), retryable=retryable, ambiguous=failed.trouble in _IN_DOUBT) from failed
        except GitFailed as failed:
            raise EffectFailed(str(failed)) from failed
        if isinstance(answer, Pushed):
            return {"pushed": True, "remote": answer.new, "old": answer.old}
        return {"pushed": False, "reason": answer.reason.value, "message": answer.message, "remote": answer.remote}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        """Asks the remote; where it does not answer, the door asks again."""
        request = PushRequest.model_validate(call.payload)
        there = (await self._remote.fetch(request.remote, request.branch)).sha
        if there is not None and await self._git.contains(there, request.new):
            return LookUpResult.yes
        # Whatever else is there was not built on our commit; pushing again either follows it or says that it moved.
        return LookUpResult.no
