"""An approval request as a person sees it: the question and, where it is about a change, the patch."""

from __future__ import annotations

from dataclasses import dataclass

from becket.app.compose import App
from becket.kernel.contract.base import digest_of
from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.handoff import Approval
from becket.kernel.contract.run import Step


@dataclass(frozen=True, slots=True)
class Question:
    approval: Approval
    base: str = ""
    candidate: str = ""  # whose change is asked about; empty where the question is about something else
    diff: bytes = b""
    text: str = ""  # what was asked about, where a step or the run itself has it in so many words


async def read_question(app: App, name: str | None) -> Question:
    """By the beginning of its own or its run's id; without a name, the only open one."""
    approval = await _find(app, name)
    steps = await app.store.steps(approval.run_id)
    for step in reversed(steps):
        base, candidate = _change_of(step, approval.bound_to)
        if candidate:
            return Question(approval, base, candidate, await app.git.candidates().patch(base, candidate))
    run = await app.store.get_run(approval.run_id)
    spec = app.loops.parse(await app.store.spec_text(run.spec_digest))
    written = (action.with_ for phase in spec.phases.values() for action in phase.actions)
    known = [*(step.outputs for step in reversed(steps)), run.inputs, run.subject.fields, *written]
    texts = (value for found in known for value in found.values() if isinstance(value, str))
    return Question(approval, text=next((one for one in texts if digest_of(one) == approval.bound_to), ""))


async def _find(app: App, name: str | None) -> Approval:
    waiting = await app.store.approvals(open_only=True)
    found = [one for one in waiting if name is None or one.run_id.startswith(name)]
    if name is not None and not found:
        return await app.store.get_approval(name)
    if not waiting:
        raise NotFound("nothing waits for a decision; `becket approvals list --all` has what was decided")
    if len(found) > 1:
        listed = ", ".join(one.approval_id for one in found)
        raise UsageError(f"there are {listed}: say which one you mean; see `becket approvals list`")
    return found[0]


def _change_of(step: Step, bound_to: str) -> tuple[str, str]:
    """Base and candidate that a step read as exactly the change that the approval is bound to."""
    if "change" not in step.outputs or digest_of(step.outputs["change"]) != bound_to:
        return "", ""
    told = next((one.evidence for one in step.conditions if one.evidence.get("candidate")), {})
    return str(told.get("base", "")), str(told.get("candidate", ""))
