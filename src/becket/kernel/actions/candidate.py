"""The commit that a loop wants to promote: where it is, on top of what, and what becomes of it.

`candidate.exists` carries it through the run: the evidence is the candidate, so no two steps can mean another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.candidate import Candidates, CommitMade, Conflict
from becket.kernel.contract.condition import Condition, ConditionGroup, Lifetime
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.guard import Refusal
from becket.kernel.contract.made import BaseBranchOrNone, BaseSha, takes
from becket.kernel.contract.proposal import AcceptedProposal, Proposals

OBJECT = "candidate"
NAMES = ("exists", "none")
GROUP = ConditionGroup(object=OBJECT, names=NAMES, life=Lifetime.run)
BARRED = ConditionGroup(object=OBJECT, names=("barred",))
PROPOSAL = ConditionGroup(object="proposal", names=("stands", "moved"))
REPAIR, REVERT = "repair", "revert"


class Candidate(Record):
    """What is in the evidence of `candidate.exists`."""

    sha: str
    parent: str
    tree: str
    kind: str = REPAIR
    waiting: tuple[str, ...] = ()  # further candidates of the same attempt, to be tried if this one is not proven
    accepted_by: str = ""  # the person who said yes to this change; it is carried over with it, and to no other


def exists(candidate: Candidate) -> Condition:
    evidence = candidate.model_dump(mode="json")
    return Condition(object=OBJECT, name="exists", group=NAMES, life=Lifetime.run, evidence=evidence)


def none(why: str, waiting: tuple[str, ...] = (), *, ask_again: bool = True, answer: str = "") -> Condition:
    """`ask_again`: the same agent may do better. `answer`: how its call ended, if that is why there is none."""
    evidence: dict[str, Json] = {"why": why, "waiting": list(waiting), "ask_again": ask_again, "answer": answer}
    return Condition(object=OBJECT, name="none", group=NAMES, life=Lifetime.run, evidence=evidence)


def barred(refusals: Sequence[Refusal]) -> Condition:
    """The guard keeps out what an agent left: there is no commit, and nothing of it is in the repository."""
    evidence: dict[str, Json] = {"refusals": [refusal.model_dump(mode="json") for refusal in refusals]}
    return Condition(object=OBJECT, name="barred", group=BARRED.names, evidence=evidence)


def kept_out_of(context: ActionContext) -> tuple[Refusal, ...]:
    """Why that is so."""
    found = context.conditions.get("candidate.barred")
    if found is None:
        raise ActionFailed("there is no candidate, and none was kept out", kind="no_candidate")
    return tuple(Refusal.model_validate(each) for each in found.evidence["refusals"])


def current(context: ActionContext) -> Candidate:
    found = context.conditions.get("candidate.exists")
    if found is None:
        raise ActionFailed("there is no candidate", kind="no_candidate")
    return Candidate.model_validate({k: v for k, v in found.evidence.items() if k in Candidate.model_fields})


def made_as(made: CommitMade, kind: str, waiting: tuple[str, ...] = ()) -> Candidate:
    return Candidate(sha=made.sha, parent=made.parent, tree=made.tree, kind=kind, waiting=waiting)


class TakeParams(Record):
    """`run` left the ready repair; empty where this run is about no such thing."""

    run: str = ""
    onto: BaseSha


class OntoParams(Record):
    onto: BaseSha


class RevertParams(Record):
    culprit: Annotated[str, takes("culprit.sha")]
    onto: BaseSha
    subject: BaseBranchOrNone = ""


class DropParams(Record):
    why: str = "it was not proven"


class CurrentParams(Record):
    limit: int = Field(default=2_000_000, ge=1, le=10**9)


async def show(context: ActionContext, params: CurrentParams) -> Result:
    """Name the candidate for the steps that judge it, and keep its patch."""
    candidate, candidates = current(context), context.port(Candidates)
    if why := await _broken(candidates, candidate.sha):
        raise ActionFailed(why, kind="candidate_broken")
    patch = await candidates.patch(candidate.parent, candidate.sha, params.limit)
    outputs: dict[str, Json] = {
        "sha": candidate.sha,
        "parent": candidate.parent,
        "tree": candidate.tree,
        "kind": candidate.kind,
        "patch": await context.keep(patch, "candidate.patch"),
    }
    return Result(outputs=outputs)


async def _broken(candidates: Candidates, sha: str) -> str | None:
    missing = await candidates.missing(sha)
    told = f"the candidate {sha[:12]} is broken: {missing}. Something removed its objects; `becket doctor` tells more"
    return told if missing else None


async def rebase(context: ActionContext, params: OntoParams) -> Result:
    """Carry the candidate over where its base has moved (L2); one that fits no more, or is lost, is dropped."""
    candidate, candidates = current(context), context.port(Candidates)
    if why := await _broken(candidates, candidate.sha):
        return Result(outputs={"sha": ""}, conditions=(none(why, candidate.waiting),), note=why)
    if candidate.parent == params.onto:
        return Result(outputs={"sha": candidate.sha}, note="its base has not moved")
    moved = await candidates.carry_over(
        candidate.sha,
        params.onto,
        context.folder("rebase"),
        await candidates.message(candidate.sha),
        f"candidate/{context.run.run_id}/moved-{params.onto[:12]}",
    )
    if isinstance(moved, Conflict):
        why = f"it does not fit on {params.onto[:12]}: {moved.message}"
        return Result(outputs={"sha": ""}, conditions=(none(why, candidate.waiting),), note=why)
    carried = made_as(moved, candidate.kind, candidate.waiting)
    carried = carried.model_copy(update={"accepted_by": candidate.accepted_by})
    return Result(outputs={"sha": moved.sha}, conditions=(exists(carried),))


async def take(context: ActionContext, params: TakeParams) -> Result:
    """The ready repair that a person accepted. Its proof stands while its branch is where it was; else it is carried
    over and proven again, like any other candidate.
    """
    if not params.run:
        return Result(nothing_to_do="it is about no ready repair")
    if context.conditions.has("candidate.none"):
        return Result(nothing_to_do="the accepted repair was not proven again")
    word = await context.port(Proposals).accepted(params.run)
    if why := await _broken(context.port(Candidates), word.sha):
        raise ActionFailed(why, kind="candidate_broken")
    stands = word.whole and word.parent == params.onto
    said = Condition(
        object="proposal", name="stands" if stands else "moved", group=PROPOSAL.names, evidence={"by": word.by}
    )
    itself = exists(Candidate(**word.model_dump(exclude={"proof", "by", "whole"}), accepted_by=word.by))
    known = context.conditions.has("candidate.exists") and not stands  # as it was carried over before
    outputs: dict[str, Json] = {"sha": word.sha, "by": word.by, "proof": word.proof if stands else ""}
    note = f"accepted by {word.by}, proven by {params.run}" + (
        "" if stands else f"; {_why_again(word, params.onto)}, so it is proven again"
    )
    return Result(outputs=outputs, conditions=(said,) if known else (itself, said), note=note)


def _why_again(word: AcceptedProposal, onto: str) -> str:
    return f"{onto[:12]} is new since then" if word.parent != onto else "its services waited for the yes"


async def following(context: ActionContext, params: OntoParams) -> Result:
    """The next candidate of the same attempt, if one still waits."""
    before = context.conditions.get("candidate.none")
    waiting = [str(sha) for sha in before.evidence.get("waiting", ())] if before is not None else []
    if not waiting:
        return Result(nothing_to_do="no other candidate waits")
    candidates = context.port(Candidates)
    sha, rest = waiting[0], tuple(waiting[1:])
    moved = await candidates.carry_over(
        sha,
        params.onto,
        context.folder("rebase"),
        await candidates.message(sha),
        f"candidate/{context.run.run_id}/next-{sha[:12]}",
    )
    if isinstance(moved, Conflict):
        return Result(nothing_to_do=moved.message, conditions=(none(moved.message, rest),))
    return Result(outputs={"sha": moved.sha}, conditions=(exists(made_as(moved, REPAIR, rest)),))


async def revert(context: ActionContext, params: RevertParams) -> Result:
    """The culprit's change undone, as a candidate that must be proven like any other."""
    message = f"Revert {params.culprit[:12]}: it broke {params.subject or params.onto[:12]}\n\nBecket-Run: "
    undone = await context.port(Candidates).undo(
        params.culprit,
        params.onto,
        context.folder("rebase"),
        message + context.run.run_id,
        f"candidate/{context.run.run_id}/revert",
    )
    if isinstance(undone, Conflict):
        why = f"{params.culprit[:12]} cannot be undone: {undone.message}"
        return Result(nothing_to_do=why, conditions=(none(why),))
    return Result(
        outputs={"sha": undone.sha}, conditions=(exists(made_as(undone, REVERT)),), progress=f"revert {undone.tree}"
    )


async def drop(context: ActionContext, params: DropParams) -> Result:
    """Not proven: the next iteration begins without it. Its ref stays, so nothing is lost (L7)."""
    candidate = current(context)
    return Result(outputs={"sha": candidate.sha}, conditions=(none(params.why, candidate.waiting),), note=params.why)


ACTIONS = (
    ActionDef(
        name="candidate.current", summary="Name the candidate and keep its patch.", run=show, params=CurrentParams,
        outputs=("sha", "parent", "tree", "kind", "patch"), about=OBJECT,
    ),
    ActionDef(
        name="candidate.rebase", summary="Carry the candidate over onto a base that moved.", run=rebase,
        params=OntoParams, raises=(GROUP,), outputs=("sha",),
    ),
    ActionDef(
        name="candidate.take", summary="Take the ready repair that a person accepted.", run=take, params=TakeParams,
        raises=(GROUP, PROPOSAL), outputs=("sha", "by", "proof"), about="accepted",
    ),
    ActionDef(
        name="candidate.next", summary="Take the next candidate of the same attempt.", run=following,
        params=OntoParams, raises=(GROUP,), outputs=("sha",),
    ),
    ActionDef(
        name="candidate.revert", summary="Make a candidate that undoes the culprit.", run=revert,
        params=RevertParams, raises=(GROUP,), outputs=("sha",), about="revert",
    ),
    ActionDef(
        name="candidate.drop", summary="Go on without the candidate.", run=drop, params=DropParams, raises=(GROUP,),
        outputs=("sha",),
    ),
)  # fmt: skip
