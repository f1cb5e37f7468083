"""Share a promoted commit with the remote."""

from __future__ import annotations

from typing import Annotated

from pydantic import ValidationError

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.errors import ActionFailed, EffectFailed
from becket.kernel.contract.made import BaseBranch, takes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.remote import PUSH, PushRequest, WhyNotPushed, push_call
from becket.parts.promote.actions.promote import state_of
from becket.parts.promote.section import REMOTE

ENDS = ConditionGroup(names=("pushed", "push_refused", "push_moved"))

_PUSHED = "pushed"
_FAILED = "failed"


class PushParams(Record):
    """`expected` is the value that the remote's branch must have; empty: any that `sha` contains.

    Without `remote`, that of becket.yaml counts, if it says `push: after_promote`.
    """

    remote: str = ""
    branch: BaseBranch
    sha: Annotated[str, takes("settled.sha")]
    expected: str = ""


async def push(context: ActionContext, params: PushParams) -> Result:
    """A remote that says no, or nothing, is a condition: what was proven and promoted here stays so."""
    remote = params.remote or _configured(context)
    if not remote:
        return Result(nothing_to_do="becket.yaml has no remote with `push: after_promote`")
    try:
        request = PushRequest(remote=remote, branch=params.branch, new=params.sha, expected=params.expected or None)
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ActionFailed(said, kind="bad_params") from error
    try:
        report = await context.perform(push_call(request))
    except EffectFailed as failed:
        return _result(_FAILED, str(failed), "", "")
    said = str(report.result.get("message", "")) or report.reason
    return _result(state_of(report, _PUSHED), said, str(report.result.get("remote") or ""), report.key)


def _configured(context: ActionContext) -> str:
    remote = context.port(Projects).current().section(REMOTE)
    return remote.name if remote is not None and remote.push == "after_promote" else ""


def _result(state: str, message: str, remote: str, effect: str) -> Result:
    outputs: dict[str, Json] = {"state": state, "message": message, "remote": remote, "effect": effect}
    if state == "dry_run":
        return Result(outputs=outputs)
    name = {_PUSHED: "pushed", WhyNotPushed.moved: "push_moved"}.get(state, "push_refused")
    evidence = {"reason": state, "message": message, "remote": remote}
    return Result(
        outputs=outputs, conditions=(Condition(name=name, group=ENDS.names, evidence=evidence),), note=message
    )


ACTIONS = (
    ActionDef(
        name="git.push",
        summary="Move a branch of a remote forward to an exact commit, never over anybody else's.",
        run=push,
        params=PushParams,
        raises=(ENDS,),
        outputs=("state", "message", "remote", "effect"),
        effects=(PUSH,),
    ),
)
