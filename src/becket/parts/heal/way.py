"""Promote or propose: by the autonomy as it stands, and by what the change newly can do."""

from __future__ import annotations

from typing import Annotated

from becket.kernel.actions.candidate import REVERT, Candidate, current
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.guard import NOT_SOURCE, ChangeClass, ClassFinding
from becket.kernel.contract.made import BaseBranchOrNone, BaseVerdicts, takes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.spec import Autonomy
from becket.parts.gates.judging.reference import red_without_tests
from becket.parts.guard.section import GUARD
from becket.parts.heal.actions.holdout import NOTHING, PASSED

WAYS = ("promote", "propose")
LINES_TOLD = 5


class WayParams(Record):
    """`verdicts` are the base's, as artifacts: a red step that named no tests proves little. `checks` are the hold-out
    checks that the candidate has met.
    """

    branch: BaseBranchOrNone = ""
    verdicts: BaseVerdicts = ()
    checks: Annotated[tuple[str, ...], takes("holdout.checks")] = ()


async def way(context: ActionContext, params: WayParams) -> Result:
    """What a proven candidate may do, by the configuration as it stands now (L18)."""
    candidate = current(context)
    against = await _against(context, params, candidate)
    name, why = ("propose", against) if against else ("promote", await _in_favour(context, params, candidate))
    evidence: dict[str, Json] = {"why": why}
    said = Condition(object="way", name=name, group=WAYS, evidence=evidence)
    return Result(outputs={"way": name, "why": why}, conditions=(said,), note=why)


async def _against(context: ActionContext, params: WayParams, candidate: Candidate) -> str:
    """Why main does not move by itself, or nothing."""
    if candidate.accepted_by:
        return ""
    if not context.autonomy.allows(Autonomy.merge):
        return f"{context.autonomy_told}: main moves only at merge or release"
    if not_watched(context, params.branch):
        return f"proven, but {context.run.loop_id} does not watch {params.branch}: a person moves it"
    return await _against_candidate(context, params, candidate)


async def _against_candidate(context: ActionContext, params: WayParams, candidate: Candidate) -> str:
    if held := context.conditions.get("candidate.smoke_waits"):
        return f"proven, but its services were not tried: {held.evidence.get('why')}"
    if candidate.kind == REVERT:  # it brings back what was proven, whatever that can do
        promoted = context.port(Projects).current().heal.on_exhausted == "revert"
        return "" if promoted else "a revert is proposed; `heal: {on_exhausted: revert}` in becket.yaml promotes it"
    if not _tests_tied(context):
        return "proven, but no failing test can be tied to a file of the repository"
    against = await _against_its_class(context, params, candidate)
    return f"proven, but {against}" if against else ""


def not_watched(context: ActionContext, branch: str) -> bool:
    """A person asked about a commit of another branch: nobody said that Becket may move, share or release that."""
    watched = context.spec.watches(context.port(Projects).current().branch)
    return bool(watched) and branch not in watched


async def _against_its_class(context: ActionContext, params: WayParams, candidate: Candidate) -> str:
    trusted, (kind, lines) = await _trusted(context, candidate), _class_of(context)
    if ChangeClass.plain is kind or "change.approved" in context.conditions:
        return ""  # a person who approved it has read what it can do, and meant exactly this change
    if ChangeClass.powerful is trusted:
        return _no_source(context)
    if kind.rank > trusted.rank:
        return f"a person decides about a change that is {kind}: {lines}"
    if red := await red_without_tests(context, params.verdicts, candidate.parent):
        return f"the red step {red[0]} named no tests, which only a plain change may cross by itself: {lines}"
    if f"candidate.{PASSED}" in context.conditions:
        return ""
    held = context.conditions.get(f"candidate.{NOTHING}")
    return (
        f"it is ordinary ({lines}) and has no hold-out proof: {held.evidence.get('why') if held else 'none was made'}"
    )


def _no_source(context: ActionContext) -> str:
    """Tests are enough for source; what decides how they are run is no source."""
    found = context.conditions.get(f"candidate.{ChangeClass.powerful}")
    told = [ClassFinding.model_validate(one) for one in found.evidence.get("findings", ())] if found is not None else []
    lines = [str(one) for one in told if one.power == NOT_SOURCE]
    return f"a person decides about files that are no product source: {'; '.join(lines[:LINES_TOLD])}" if lines else ""


async def _in_favour(context: ActionContext, params: WayParams, candidate: Candidate) -> str:
    if candidate.accepted_by:
        return f"accepted by {candidate.accepted_by}"
    told = [context.autonomy_told]
    if candidate.kind != REVERT and await _trusted(context, candidate) is ChangeClass.powerful:
        kind, _ = _class_of(context)
        told.append(
            f"`guard: {{promote: powerful}}`: the tests are enough, whatever a change can do; this one is {kind}"
        )
    if f"candidate.{PASSED}" in context.conditions:
        offered = f"`becket runs show {context.run.run_id} --log holdout`"
        told.append(f"{len(params.checks)} hold-out checks pass; they are kept, and may serve as new tests: {offered}")
    return "; ".join(told)


async def _trusted(context: ActionContext, candidate: Candidate) -> ChangeClass:
    """As committed in base, like all that a candidate is judged by."""
    return (await context.port(Projects).committed(candidate.parent)).section(GUARD).promote


def _class_of(context: ActionContext) -> tuple[ChangeClass, str]:
    """And the lines that made it so. What nobody has read is not trusted."""
    for kind in ChangeClass:
        found = context.conditions.get(f"candidate.{kind}")
        if found is not None:
            lines = [str(ClassFinding.model_validate(told)) for told in found.evidence.get("findings", ())]
            return kind, "; ".join(lines[:LINES_TOLD]) or "no line is named"
    return ChangeClass.powerful, "nobody has read what it can do"


def _tests_tied(context: ActionContext) -> bool:
    """Where nobody can tell in which files the tests are, the guard cannot tell whether they were changed."""
    found = context.conditions.get("candidate.guard_ok")
    return found is None or bool(found.evidence.get("tests_tied", True))


WAY = ActionDef(
    name="heal.way",
    summary="Promote or propose, by the autonomy as it stands and by what the change can do.",
    run=way,
    params=WayParams,
    raises=(ConditionGroup(object="way", names=WAYS),),
    outputs=("way", "why"),
    about="way",
)
