"""Ask a person, and go on only with an answer to exactly this question."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import PositiveDuration, Record, digest_of
from becket.kernel.contract.caller import Role
from becket.kernel.contract.condition import Condition, ConditionGroup, Lifetime
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.handoff import EXPIRED, Approval, ApprovalState
from becket.kernel.contract.spec import Name, NonBlank, Signal

NAMES = ("asked", "approved", "denied", "expired", "revoked")


class AskParams(Record):
    """`about` is what the decision is bound to: a commit, a diff, a text. Its hash is stored with the approval.

    `details` are told below the question and do not make it another one. With `stands` one yes counts for that hash
    until the run ends, however often the step comes by.
    """

    question: NonBlank
    details: str = ""
    about: NonBlank
    role: Role = "approver"
    expires: PositiveDuration = 7 * 86400.0
    of: Name = "approval"
    keep: Lifetime = Lifetime.iteration  # `run`: the condition stays raised, whatever the step asks about later
    stands: bool = False


def groups(params: AskParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES, life=params.keep),)


async def ask(context: ActionContext, params: AskParams) -> Result:
    """Asked once; an approval is spent the moment it is seen, so that it cannot serve for anything else.

    One that was given in time and is seen too late answers nothing: it has expired like one never given.
    """
    bound_to = digest_of(params.about)
    text = f"{params.question}\n{params.details}".rstrip()
    approval = await context.ask_approval(text, bound_to, params.role, params.expires, stands=params.stands)
    stands = params.stands and approval.state is ApprovalState.used
    if approval.state in (ApprovalState.approved, ApprovalState.used) and not stands:
        approval = await _spent(context, approval)
    name = "approved" if approval.state is ApprovalState.used else approval.state.value
    said = Condition(object=params.of, name=name, group=NAMES, life=params.keep, evidence=_evidence(approval))
    return Result(
        outputs={"approval": approval.approval_id, "state": name, "by": approval.decided_by or ""}, conditions=(said,)
    )


async def _spent(context: ActionContext, approval: Approval) -> Approval:
    try:
        return await context.use_approval(approval.approval_id, approval.bound_to)
    except ActionFailed as error:
        if error.kind != EXPIRED:
            raise
        return approval.model_copy(update={"state": ApprovalState.expired})


def _evidence(approval: Approval) -> dict[str, object]:
    return {
        "approval": approval.approval_id,
        "question": approval.question,
        "bound_to": approval.bound_to,
        "by": approval.decided_by,
        "role": approval.decided_role,
        "until": approval.expires_at,
    }


ACTIONS = (
    ActionDef(
        name="approval.ask",
        summary="Ask a person with a role; bound to a hash of what is approved.",
        run=ask,
        params=AskParams,
        raises=groups,
        outputs=("approval", "state", "by"),
        signals=(Signal.approval,),
    ),
)
