"""Take a proven commit to its branch, or offer it to a person as a branch of its own."""

from __future__ import annotations

import contextlib
from typing import Annotated

from becket.kernel.actions.candidate import OBJECT
from becket.kernel.contract.action import ActionContext, ActionDef, EffectReport, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import ActionFailed, GitFailed
from becket.kernel.contract.git import Git
from becket.kernel.contract.guard import ChangeClass, ClassFinding
from becket.kernel.contract.made import BaseBranch, BaseSha, CandidateSha, takes
from becket.kernel.contract.naming import BranchOrNone, alone
from becket.kernel.contract.promote import PROMOTE, WhyNot
from becket.kernel.contract.proposal import Proposals

after_effect = CrashPoint("promote.after_effect", "the effect is settled; the step that asked for it is not written")

MOST_MOVES = 3
MOST_SHOWN = 5

ENDS = ConditionGroup(
    names=("promoted", "main_moved", "main_dirty", "main_busy", "promote_refused"), uncounted=("main_moved",)
)
CONTENDED = ConditionGroup(names=("contended",))
READY = ConditionGroup(names=("repair_ready", "proposed"))
"""A spec that was written before says `proposed`; it is raised where a spec hands over at it."""

DECLINED = ConditionGroup(names=("declined_before",))

_SAID_AS: dict[str, str] = {
    WhyNot.main_moved: "main_moved",
    WhyNot.main_dirty: "main_dirty",
    WhyNot.main_busy: "main_busy",
    WhyNot.ref_locked: "main_busy",  # another git is at work; a moment later it may not be
}
_PROMOTED = "promoted"


class PromoteParams(Record):
    """`moves` is how often main has moved away in this run so far: this action's own output of earlier iterations."""

    branch: BaseBranch
    old: BaseSha
    new: CandidateSha
    proof: Annotated[str, takes("accepted.proof", "proof.digest")]
    moves: str | int = ""


class ProposeParams(Record):
    """`patch` is the digest of the kept patch, where there is one; `why` tells the person why it is theirs to take."""

    candidate: CandidateSha
    base: BaseSha
    branch: BranchOrNone = ""  # becket/<loop>/<short hash>
    patch: Annotated[str, takes("candidate.patch")] = ""
    why: Annotated[str, takes("way.why")] = ""


async def promote(context: ActionContext, params: PromoteParams) -> Result:
    """A branch that must not move yet is a condition, so that the loop can wait, rebase or hand over."""
    payload = {"new": params.new, "old": params.old, "proof": params.proof}
    ref = f"refs/heads/{params.branch}"
    report = await context.perform(EffectCall(name=PROMOTE, target=ref, payload=payload))
    after_effect()
    state = state_of(report, _PROMOTED)
    moves = _moves(context, params) + (state == WhyNot.main_moved)
    main = report.result.get("main") or await context.port(Git).resolve(ref) or ""
    outputs: dict[str, Json] = {"state": state, "main": main, "moves": moves, "effect": report.key}
    return Result(
        outputs=outputs,
        conditions=_conditions(report, state, main, moves),
        note=_message(report),
        facts={"moved": params.new} if state == _PROMOTED else {},  # so that a loop does not feed itself for ever
    )


def state_of(report: EffectReport, done: str) -> str:
    """What was looked up after a crash has no result of its own: then it is known to have happened, and no more."""
    if not report.happened:
        return report.state
    if report.result.get(done, report.result.get("observed", False)):
        return done
    return str(report.result["reason"])


def _moves(context: ActionContext, params: PromoteParams) -> int:
    text = str(params.moves).strip() or str(context.outputs.get(context.step_id, {}).get("moves", 0))
    if not text.isdecimal():
        raise ActionFailed(f"`moves` must be a number or empty, not {text!r}", kind="bad_params")
    return int(text)


def _conditions(report: EffectReport, state: str, main: str, moves: int) -> tuple[Condition, ...]:
    if state == "dry_run":
        return ()
    name = state if state == _PROMOTED else _SAID_AS.get(state, "promote_refused")
    evidence = {"message": _message(report), "paths": report.result.get("paths", []), "main": main}
    said = Condition(name=name, group=ENDS.names, evidence=evidence)
    if name != "main_moved" or moves < MOST_MOVES:
        return (said,)
    return said, Condition(name="contended", evidence={"moves": moves, "main": main})


def _message(report: EffectReport) -> str:
    return str(report.result.get("message", "")) or report.reason


async def propose(context: ActionContext, params: ProposeParams) -> Result:
    """The person's branches stay as they are; taking the proposal is one command."""
    if declined := await _declined(context, params):
        why = f"{declined[:12]} was this very change of {params.base[:12]}, and a person declined it"
        evidence: dict[str, Json] = {
            "candidate": params.candidate,
            "base": params.base,
            "declined": declined,
            "why": why,
        }
        said = Condition(name=DECLINED.names[0], group=DECLINED.names, evidence=evidence)
        outputs: dict[str, Json] = {"branch": "", "commands": [], "state": "", "effect": ""}
        return Result(outputs=outputs, conditions=(said,), note=why)
    branch = params.branch or f"becket/{context.run.loop_id}/{params.candidate[:12]}"
    if in_the_way := await _in_the_way(context, branch):
        note = f"no branch was made: {in_the_way} is a branch, and takes the name"
        return _offered(context, params, "", EffectReport(key="", state="", reason=note), happened=True)
    call = EffectCall(name="git.propose", target=f"refs/heads/{branch}", payload={"new": params.candidate})
    report = await context.perform(call)
    return _offered(context, params, branch, report, happened=report.happened)


async def _declined(context: ActionContext, params: ProposeParams) -> str:
    """The commit of the same tree that a person said no to, if there is one."""
    git = context.port(Git)
    tree = await git.tree_of(params.candidate)
    for sha in await context.port(Proposals).declined(params.base):
        with contextlib.suppress(GitFailed):  # retention may have taken it
            if await git.tree_of(sha) == tree:
                return sha
    return ""


async def _in_the_way(context: ActionContext, branch: str) -> str:
    """A branch whose name is a folder of this one: git cannot have both. The candidate has a ref of its own anyway."""
    parts = branch.split("/")
    for end in range(1, len(parts)):
        above = "/".join(parts[:end])
        if await context.port(Git).resolve(f"refs/heads/{above}") is not None:
            return above
    return ""


def _offered(
    context: ActionContext, params: ProposeParams, branch: str, report: EffectReport, *, happened: bool
) -> Result:
    named = branch or params.candidate
    commands = [
        f"git diff {params.base[:12]}..{named}",
        f"git merge --ff-only {named}",
        *([f"git branch --delete {branch}"] if branch else []),
    ]
    accept = f"becket proposals accept {context.run.run_id}"
    if context.run.subject.fields.get("branch") == alone(params.base):
        accept = commands[1]
    evidence: dict[str, Json] = {
        "branch": branch, "candidate": params.candidate, "base": params.base, "patch": params.patch,
        "commands": commands, "why": params.why, "next": accept,
        **_class_of(context),
    }  # fmt: skip
    return Result(
        outputs={"branch": branch, "commands": commands, "state": report.state, "effect": report.key},
        conditions=(Condition(name=_ready(context), group=READY.names, evidence=evidence),) if happened else (),
        note=report.reason,
    )


def _ready(context: ActionContext) -> str:
    return next((name for name in READY.names if name in context.spec.handoff_conditions), READY.names[0])


def _class_of(context: ActionContext) -> dict[str, Json]:
    """What the guard read: the class of the change, and the lines that made it so."""
    for kind in ChangeClass:
        read = context.conditions.get(f"{OBJECT}.{kind}")
        if read is not None:
            found = [ClassFinding.model_validate(one) for one in read.evidence.get("findings", ())]
            findings = [f"{one.kind}: {one}" for one in found]
            left_out = max(len(findings) - MOST_SHOWN, 0) + int(read.evidence.get("findings_left_out", 0))
            more = [f"and {left_out} more"] if left_out else []
            return {"class": kind.value, "findings": [*findings[:MOST_SHOWN], *more]}
    return {}


ACTIONS = (
    ActionDef(
        name="promote.run",
        summary="Move a branch by fast-forward to the exact commit that was proven, and its work tree with it.",
        run=promote,
        params=PromoteParams,
        raises=(ENDS, CONTENDED),
        outputs=("state", "main", "moves", "effect"),
        keeps=("moves",),
        effects=(PROMOTE,),
        facts=("moved",),
    ),
    ActionDef(
        name="candidate.propose",
        summary="Offer a commit to a person as a branch below becket/.",
        run=propose,
        params=ProposeParams,
        raises=(READY, DECLINED),
        outputs=("branch", "commands", "state", "effect"),
        effects=("git.propose",),
    ),
)
