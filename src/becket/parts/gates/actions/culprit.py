"""Which of the new commits broke the base? Asked of the failing tests, by a bisection that tolerates flakes."""

from __future__ import annotations

import json
from typing import Annotated

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.gate import GateVerdict, StepVerdict
from becket.kernel.contract.git import Git
from becket.kernel.contract.made import BaseBranch, BaseSha, BaseVerdicts, takes
from becket.parts.gates.culprit import Culprit, CulpritUndecided, ErrorRates, Observation, search
from becket.parts.gates.judging.history import MOST_COMMITS, since_proven
from becket.parts.gates.judging.step import run_step
from becket.parts.gates.judging.tree import open_tree
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.section import GATES

NAMES = ("known", "unknown")
MOST_RUNS = 24
DIFF_LIMIT = 60_000
OUTPUTS = ("sha", "why", "base", "diff", "subject", "confidence", "runs")


class CulpritParams(Record):
    """`verdicts` are the red verdicts of `base`, as artifacts; `branch` names the subjects that earlier runs proved.

    `green` is a commit before it where the first red step is green; it counts where none is proven.
    """

    base: BaseSha
    branch: BaseBranch
    verdicts: BaseVerdicts
    green: Annotated[str, takes("ever.green")] = ""


async def find(context: ActionContext, params: CulpritParams) -> Result:
    earlier = context.outputs.get(context.step_id, {})
    if earlier.get("base") == params.base:
        return _result(params, str(earlier.get("sha", "")), str(earlier.get("why", "")), dict(earlier))
    found_green = await since_proven(context, params.branch, params.base) or await _since(context, params)
    if found_green is None or not found_green[1]:
        return await _told(context, params, "", "no earlier commit is known to be green", 0.0, 0)
    _, new = found_green
    if len(new) == 1:
        return await _told(context, params, new[0], "it is the only new commit since the last green one", 1.0, 0)
    red = await _red_step(context, params)
    if red is None:
        return await _told(context, params, "", "no red step can be asked", 0.0, 0)
    found = await _search(context, params, new, red)
    if isinstance(found, Culprit):
        why = f"{found.runs} runs of the failing tests over {len(new)} commits"
        return await _told(context, params, found.sha, why, found.confidence, found.runs)
    return await _told(context, params, "", found.reason, 0.0, found.runs)


async def _since(context: ActionContext, params: CulpritParams) -> tuple[str, list[str]] | None:
    if not params.green:
        return None
    new = await context.port(Git).commits(params.green, params.base, MOST_COMMITS + 1)
    return (params.green, list(reversed(new))) if len(new) <= MOST_COMMITS else None


async def _red_step(context: ActionContext, params: CulpritParams) -> StepVerdict | None:
    for digest in params.verdicts:
        if digest:
            verdict = GateVerdict.model_validate_json(await context.read(digest))
            for step in verdict.steps:
                if verdict.commit == params.base and not step.green:
                    return step
    return None


async def _search(
    context: ActionContext, params: CulpritParams, commits: list[str], red: StepVerdict
) -> Culprit | CulpritUndecided:
    async def is_bad(sha: str) -> bool | None:
        proof = await open_tree(context, sha, params.base)
        if isinstance(proof, SetupFailed):
            return None
        step = next(each for each in proof.config.section(GATES)[red.gate] if each.name == red.step)
        done = await run_step(context, red.gate, step, proof, label=f"bisect-{sha[:12]}", tests=red.failing)
        if done.verdict.problem:
            return None
        if red.failing and not set(red.failing) & {case.id for case in done.report.cases}:
            return False if done.verdict.green else None  # these tests were not there yet
        return not done.verdict.green

    seen = (Observation(sha=params.base, bad=True), Observation(sha=params.base, bad=True))  # red, and red again alone
    return await search(commits, is_bad, ErrorRates(), budget=MOST_RUNS, seen=seen)


async def _told(
    context: ActionContext, params: CulpritParams, sha: str, why: str, confidence: float, runs: int
) -> Result:
    diff = message = ""
    if sha:
        candidates = context.port(Candidates)
        parents = await context.port(Git).commits(None, sha, 2)
        if len(parents) == 2:
            patch = await candidates.patch(f"{sha}^", sha, DIFF_LIMIT)
            diff = await context.keep(patch, "culprit.patch")
        message = (await candidates.message(sha)).partition("\n")[0]
    made: dict[str, Json] = {
        "sha": sha,
        "why": why,
        "base": params.base,
        "diff": diff,
        "subject": message,
        "confidence": round(confidence, 4),
        "runs": runs,
    }
    await context.keep(json.dumps(made).encode(), "culprit.json")
    return _result(params, sha, why, made)


def _result(params: CulpritParams, sha: str, why: str, made: dict[str, Json]) -> Result:
    evidence: dict[str, Json] = {"sha": sha, "why": why, "confidence": made.get("confidence", 0.0)}
    said = Condition(object="culprit", name="known" if sha else "unknown", group=NAMES, evidence=evidence)
    return Result(outputs=made, conditions=(said,), note=why)


ACTIONS = (
    ActionDef(
        name="git.culprit",
        summary="Find the commit that broke the base, by its failing tests.",
        run=find,
        params=CulpritParams,
        raises=(ConditionGroup(object="culprit", names=NAMES),),
        outputs=OUTPUTS,
        keeps=OUTPUTS,
        about="culprit",
    ),
)
