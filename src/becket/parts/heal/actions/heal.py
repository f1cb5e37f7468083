"""What only the heal loop decides: how to repair, and how the run stands in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.gate import GateVerdict
from becket.kernel.contract.git import Git
from becket.kernel.contract.made import (
    BaseBranch,
    BaseBranchOrNone,
    BaseSha,
    BaseVerdicts,
    CandidateSha,
    takes,
)
from becket.kernel.contract.naming import alone
from becket.kernel.contract.project import Projects
from becket.kernel.contract.promote import NOT_WATCHED
from becket.kernel.contract.ready import ACCEPT, CHANGES
from becket.kernel.contract.spec import Autonomy
from becket.parts.gates.ports.setup import Setups
from becket.parts.heal.actions.fix import fixer_of
from becket.parts.heal.brief import BRIEF
from becket.parts.heal.way import WAY, not_watched

PLANS = ("fix", "revert", "take", "nothing", "observe", "moved_on")
ENDS = (
    "main_proven", "undecided", "environment_broken", "no_agent", "agent_not_found", "agent_gave_up", "fix_exhausted",
)  # fmt: skip
VAIN = (AgentOutcome.nothing_done, AgentOutcome.refused, AgentOutcome.limit_reached)
"""What an agent's answer is when asking it the same again and again is vain. A quota that is out says nothing of it."""
MOST_VAIN = 2
NOT_A_BRANCH = "symbolic_branch"
MOST_REASONS = 20
MOST_SAID = 600
UNKNOWN = "it is not known what broke it"
FAULTS = {
    "No space left on device": "make room on that disk, then retry",
    "Disk quota exceeded": "make room within the quota, then retry",
    "Read-only file system": "make the repository writable again, then retry",
    "Permission denied": "let this user write there again, then retry",
    "Too many open files": "raise the limit (`ulimit -n`) and start the daemon again, then retry",
    "Input/output error": "see what the system's log says about that disk, then retry",
}
"""What the system says when something cannot be written or read, and what a person does about it."""


class PlanParams(Record):
    culprit: Annotated[str, takes("culprit.sha")] = ""
    branch: BaseBranchOrNone = ""
    base: BaseSha = ""
    sent_back: Annotated[tuple[str, ...], takes("guard.sent_back")] = ()


async def plan(context: ActionContext, params: PlanParams) -> Result:
    """Repair while there are tries; in the last one, or without an agent, undo what broke it."""
    await _check_branch(context, params.branch)
    made = context.outputs.get(context.step_id, {})
    vain = int(made.get("vain", 0)) + _in_vain(context, params)
    last = context.conditions.get("candidate.none")
    if last is not None and last.evidence.get("ask_again") is False:
        vain = MOST_VAIN
    if head := await _repaired_by(context, params):
        name, why = "moved_on", f"{params.branch} has moved on; {params.base[:12]} is repaired by {head[:12]}"
    else:
        name, why = _choice(context, params, vain)
    more = _more(context, name, vain)
    said = Condition(object="plan", name=name, group=PLANS, evidence={"why": why, "head": head, **more})
    red = _evidence(context, "base.code_red")
    failing, failed = red.get("failing", []), red.get("failed", 0)
    outputs: dict[str, Json] = {"plan": name, "vain": vain, "failing": failing, "failed": failed}
    return Result(outputs=outputs, conditions=(said,), note=why)


def _more(context: ActionContext, name: str, vain: int) -> dict[str, Json]:
    """What an end says of the plan besides, once it is known what came of it."""
    if name == "fix":
        return {"agent": fixer_of(context.port(Projects).current())}
    return {"given_up": _given_up(context, vain)} if name == "revert" else {}


async def _repaired_by(context: ActionContext, params: PlanParams) -> str:
    """The branch's head, where that is proven and holds this red commit: nobody needs another repair of it."""
    if not params.base or not params.branch or context.run.inputs.get(ACCEPT):
        return ""
    git = context.port(Git)
    head = await git.resolve(f"refs/heads/{params.branch}")
    if head is None or head == params.base or not await context.known("proven", f"{params.branch}@{head}"):
        return ""
    return head if await git.contains(head, params.base) else ""


async def _check_branch(context: ActionContext, branch: str) -> None:
    """Known before anybody repairs anything (L13)."""
    target = await context.port(Git).leads_to(branch) if branch else None
    if target and context.autonomy.allows(Autonomy.merge):
        raise ActionFailed(
            f"{branch} is only another name of {target} (a symbolic ref), and promote moves no such name: write "
            f"`branch: {target}` in becket.yaml and commit",
            kind=NOT_A_BRANCH,
        )


def _in_vain(context: ActionContext, params: PlanParams) -> int:
    """An agent that leaves it at that after the guard's words does as it was told: a person decides."""
    answer = _evidence(context, "candidate.none").get("answer")
    if answer == AgentOutcome.nothing_done and params.sent_back:
        return MOST_VAIN
    return int(answer in VAIN)


def _choice(context: ActionContext, params: PlanParams, vain: int) -> tuple[str, str]:
    if not context.autonomy.allows(Autonomy.propose):
        return "observe", f"{context.autonomy_told}: what is red is only told"
    if context.run.inputs.get(ACCEPT):
        return _accepted(context)
    agent = fixer_of(context.port(Projects).current())
    last_try = context.run.counted >= context.spec.max_iterations > 1
    if agent is not None and not last_try and vain < MOST_VAIN:
        return "fix", f"{agent} repairs it"
    why = _given_up(context, vain)
    if context.run.inputs.get(CHANGES):
        return "nothing", f"{why}; the repair that it was to change is offered as it was"
    if params.culprit:
        return "revert", f"{why}; what broke it is undone instead"
    return "nothing", f"{why}; nothing was undone: {_evidence(context, 'culprit.unknown').get('why') or UNKNOWN}"


def _accepted(context: ActionContext) -> tuple[str, str]:
    """A yes is about one change: where that cannot be proven again, a person hears of it, and no agent is called."""
    if found := _evidence(context, "candidate.exists"):
        return "take", f"accepted by {found.get('accepted_by')}"
    return "nothing", f"the accepted repair is not proven any more: {_evidence(context, 'candidate.none').get('why')}"


def _given_up(context: ActionContext, vain: int) -> str:
    if fixer_of(context.port(Projects).current()) is None:
        return "no agent is configured"
    last = _evidence(context, "candidate.none")
    if last.get("ask_again") is False:
        return str(last["why"])
    return "the agent changed nothing any more" if vain >= MOST_VAIN else "the agent could not repair it"


class SettleParams(Record):
    """`verdicts` and `after` are those of base and candidate; `candidate` and `proof` count only where it was promoted.
    The others are for a person, where nothing was.
    """

    base: BaseSha
    branch: BaseBranch
    verdicts: BaseVerdicts = ()
    after: Annotated[tuple[str, ...], takes("candidate.verdict", each=True)] = ()
    candidate: CandidateSha = ""
    proof: Annotated[str, takes("accepted.proof", "proof.digest")] = ""
    vain: Annotated[int, takes("plan.vain")] = 0
    undone: Annotated[str, takes("revert.sha")] = ""  # the commit that undoes what broke main
    said: Annotated[str, takes("fix.said")] = ""
    calls: Annotated[tuple[Json, ...], takes("fix.calls")] = ()
    sent_back: Annotated[tuple[str, ...], takes("guard.sent_back")] = ()
    not_crossed: Annotated[tuple[str, ...], takes("crossing.against")] = ()


async def settle(context: ActionContext, params: SettleParams) -> Result:
    """Say how the run stands: main is proven, nobody can tell, the machine is broken, or the repair is exhausted."""
    has = context.conditions.has
    if (found := await _found_proven(context, params)) is not None:
        return found
    outputs: dict[str, Json] = {"sha": "", "proof": ""}
    if machine := _evidence(context, "base.environment_red") or _vain_to_try(context):
        return _ends(outputs, "environment_broken", machine)
    if has("base.fast_undecided") or has("base.slow_undecided"):
        return _ends(outputs, "undecided", _evidence(context, "base.flaky_red"))
    if has("agent.not_found") or has("plan.nothing") or (has("plan.revert") and not has("candidate.proven")):
        return _ends(outputs, _without_repair(context, params), _for_a_person(context, params))
    return Result(outputs=outputs, note="not settled yet")


async def _found_proven(context: ActionContext, params: SettleParams) -> Result | None:
    has = context.conditions.has
    if has("promoted"):
        return await _proven(context, params, params.candidate, {"proof": params.proof, "repaired": params.base})
    if has("base.fast_green") and has("base.slow_green"):
        return await _proven(context, params, params.base, {"repaired": "", **_instead(context, params.base)})
    return await _moved_on(context, params) if has("plan.moved_on") else None


async def _moved_on(context: ActionContext, params: SettleParams) -> Result:
    """Its head is proven already, and in service or on its way there by the run that proved it."""
    head = str(_evidence(context, "plan.moved_on").get("head") or params.base)
    told: dict[str, Json] = {"repaired": "", "instead_of": params.base}
    made = await _proven(context, params, head, told)
    return replace(made, outputs={"sha": head, "proof": f"proven@{head}"})


def _instead(context: ActionContext, base: str) -> dict[str, Json]:
    """A run that found another commit than its own green says nothing of its own."""
    asked = str(context.run.subject.fields.get("sha", base))
    return {"instead_of": asked} if asked != base else {}


def _without_repair(context: ActionContext, params: SettleParams) -> str:
    """Whether nobody could be asked, nobody changed anything, or what was changed was never proven."""
    end = "fix_exhausted"
    if context.conditions.has("agent.not_found"):
        end = "agent_not_found"
    elif fixer_of(context.port(Projects).current()) is None:
        end = "no_agent"
    elif params.vain >= MOST_VAIN:
        end = "agent_gave_up"
    # A run that began with an older spec is handed over at `fix_exhausted` alone.
    return end if end in context.spec.handoff_conditions else "fix_exhausted"


def _for_a_person(context: ActionContext, params: SettleParams) -> dict[str, Json]:
    """Why, the agent's last words, the hosts it was not let reach, and what the guard and the crossing said."""
    missing = _evidence(context, "agent.not_found")
    calls = [call for call in params.calls if isinstance(call, dict)]
    tried = "what would undo it" if params.undone else "its change"
    told: dict[str, Json] = {
        "why": missing.get("reason") or _evidence(context, "plan.nothing").get("why") or _not_reverted(context, params),
        "agent": calls[-1].get("agent", "") if calls else "",
        "said": params.said[-MOST_SAID:],
        "denied": list(dict.fromkeys(host for call in calls for host in call.get("denied", []))),
        "against": [
            *(f"the guard sent it back: {words}" for words in params.sent_back),
            *(f"{tried} was not proven: {words}" for words in params.not_crossed),
            *_why_red(context),
        ],
    }
    return {name: value for name, value in told.items() if value}


def _not_reverted(context: ActionContext, params: SettleParams) -> str:
    """What was planned is no news where nothing came of it."""
    if not (plan := _evidence(context, "plan.revert")):
        return ""
    culprit = str(_evidence(context, "culprit.known").get("sha", ""))[:12]
    why = _evidence(context, "candidate.none").get("why") or "that could not be tried"
    said = f"main without {culprit} was not proven" if params.undone else why
    return f"{plan.get('given_up')}; nothing was undone: {said}"


def _vain_to_try(context: ActionContext) -> dict[str, Json]:
    """Where the runtime itself cannot write, or not move the branch, and an agent is not to blame (L13)."""
    failed = _evidence(context, "action_error")
    said = str(failed.get("error", ""))
    problems: list[Json] = [f"{said}; {advice}" for sign, advice in FAULTS.items() if sign in said]
    if failed.get("kind") in (NOT_A_BRANCH, "not_configured"):
        problems.append(said)
    if failed.get("kind") == "not_configured":
        return {"problems": problems, "next": "becket doctor"}
    return {"problems": problems} if problems else {}


async def _proven(context: ActionContext, params: SettleParams, sha: str, more: dict[str, Json]) -> Result:
    kept = [digest for digest in (*params.verdicts, *params.after) if digest]
    verdicts = [GateVerdict.model_validate_json(await context.read(digest)) for digest in kept]
    verdicts = [verdict for verdict in verdicts if verdict.commit == sha]
    by_itself = params.branch == alone(sha)
    gates: dict[str, Json] = {verdict.gate: verdict.digest for verdict in verdicts}
    head = sha if by_itself else await context.port(Git).resolve(f"refs/heads/{params.branch}")
    if head is None or not await context.port(Git).contains(head, sha):
        why = f"{sha[:12]} is proven, and is not in {params.branch} any more: what is there now is looked at instead"
        return Result(outputs={"sha": "", "proof": ""}, note=why)
    for key in {step.setup for verdict in verdicts for step in verdict.steps if step.setup}:
        await context.port(Setups).trust(key, context.run.run_id)
    proof = params.proof if more.get("proof") else next((str(digest) for digest in gates.values()), "")
    evidence: dict[str, Json] = {"sha": sha, "gates": gates, "head": head, **more}
    said = [Condition(name="main_proven", group=ENDS, evidence=evidence)]
    if not_watched(context, params.branch):
        said.append(Condition(name=NOT_WATCHED, evidence={"branch": params.branch}))
    outputs: dict[str, Json] = {"sha": sha, "proof": proof}
    # A dry run releases nothing: the run that would must still be started.
    facts = {} if context.run.dry_run or by_itself else {"proven": f"{params.branch}@{sha}"}
    return Result(outputs=outputs, conditions=tuple(said), facts=facts)


def _ends(outputs: dict[str, Json], name: str, evidence: dict[str, Json]) -> Result:
    return Result(outputs=outputs, conditions=(Condition(name=name, group=ENDS, evidence=evidence),))


def _why_red(context: ActionContext) -> list[Json]:
    """What the gates said of main: not every red is a test that fails."""
    reds = [_evidence(context, f"base.{gate}_red").get("reasons", []) for gate in ("fast", "slow")]
    return [reason for reasons in reds for reason in reasons][:MOST_REASONS]


def _evidence(context: ActionContext, ref: str) -> dict[str, Json]:
    found = context.conditions.get(ref)
    return dict(found.evidence) if found is not None else {}


ACTIONS = (
    ActionDef(
        name="heal.plan", summary="Choose between a repair, a revert and a person.", run=plan, params=PlanParams,
        raises=(ConditionGroup(object="plan", names=PLANS),), outputs=("plan", "vain", "failing", "failed"),
        keeps=("vain", "failing", "failed"), about="plan",
    ),
    BRIEF,
    WAY,
    ActionDef(
        name="heal.settle", summary="Say how main stands.", run=settle, params=SettleParams,
        raises=(ConditionGroup(names=ENDS), ConditionGroup(names=(NOT_WATCHED,))), outputs=("sha", "proof"),
        about="settled", facts=("proven",),
    ),
)  # fmt: skip
