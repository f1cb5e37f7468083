"""The last word on a candidate: every part of the proof is there, is about this commit, and no test got lost."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from becket.kernel.contract.action import ActionContext, ActionDef, NamesCondition, Result
from becket.kernel.contract.base import Json, Record, digest_of
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.gate import GateVerdict, StepVerdict
from becket.kernel.contract.made import BaseBranchOrNone, BaseSha, BaseVerdicts, CandidateSha, takes
from becket.kernel.contract.receipt import Receipt
from becket.kernel.contract.spec import Name
from becket.kernel.contract.when import parse, parsed
from becket.parts.gates.judging.reference import tells_all, when_proven
from becket.parts.gates.ports.report import TestReport
from becket.parts.gates.ports.setup import Setups
from becket.parts.gates.reports.compare import every_id_ran

trusted = CrashPoint("proof.trusted", "the set-ups of the candidate are trusted; the proof is not written")

NAMES = ("proven", "not_proven")


class ProveParams(Record):
    """`before` and `after` are verdict artifacts of base and candidate; `guard`, `crossing`, `holdout` and `parts` are
    digests of what else was shown, empty for what was not asked for. `needs` says what must hold, as in `when`."""

    of: Name = "candidate"
    base: BaseSha
    candidate: CandidateSha
    before: BaseVerdicts = ()
    after: Annotated[tuple[str, ...], takes("candidate.verdict", each=True)]
    guard: Annotated[str, takes("guard.digest")] = ""
    crossing: Annotated[str, takes("crossing.digest")] = ""
    holdout: Annotated[str, takes("holdout.digest")] = ""
    parts: dict[str, str] = Field(default_factory=dict)
    branch: BaseBranchOrNone = ""  # where the last proven commit is looked for, whose tests must run
    needs: Annotated[tuple[Annotated[str, AfterValidator(parsed)], ...], NamesCondition(expression=True)] = ()


def groups(params: ProveParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES),)


async def prove(context: ActionContext, params: ProveParams) -> Result:
    before = [await _verdict(context, digest) for digest in params.before if digest]
    before = [verdict for verdict in before if verdict.commit == params.base]  # a gate not asked again has its old one
    after = [await _verdict(context, digest) for digest in params.after if digest]
    against = [f"{need} is not raised" for need in params.needs if not parse(need).holds(context.conditions.has)]
    against += [f"the verdict of {v.gate} is about {v.commit[:12]}" for v in after if v.commit != params.candidate]
    against += [f"the gate {v.gate} is {v.color}" for v in after if not v.green]
    against += [] if after else ["no gate has judged the candidate"]
    if not against:
        against += await _lost_tests(context, params, before, after)
    name = "not_proven" if against else "proven"
    if not against:
        for key in {step.setup for verdict in after for step in verdict.steps if step.setup}:
            await context.port(Setups).trust(key, context.run.run_id)
        trusted()
    shown = {"guard": params.guard, "crossing": params.crossing, "holdout": params.holdout, **params.parts}
    body: dict[str, Json] = {
        "base": params.base,
        "candidate": params.candidate,
        "gates": {verdict.gate: verdict.digest for verdict in after},
        "reused": {f"{v.gate}.{s.step}": s.reused_from for v in after for s in v.steps if s.reused_from},
        "parts": {name: digest for name, digest in shown.items() if digest},
        "says": name,
        "against": list(against[:20]),
    }
    now = await context.now()
    receipt = await context.receipt(Receipt(kind="proof", tree=params.candidate, body=body), now, now)
    said = Condition(object=params.of, name=name, group=NAMES, evidence={**body, "receipt": receipt})
    outputs: dict[str, Json] = {"state": name, "digest": digest_of(body), "receipt": receipt, "against": against[:50]}
    return Result(outputs=outputs, conditions=(said,))


async def _verdict(context: ActionContext, digest: str) -> GateVerdict:
    return GateVerdict.model_validate_json(await context.read(digest))


async def _lost_tests(
    context: ActionContext, params: ProveParams, before: list[GateVerdict], after: list[GateVerdict]
) -> list[str]:
    """Tests that ran before and do not run on the candidate; a green without them proves less than it says.

    Before is base; where base could not tell (it did not come to run the step, or not to its end), the last green.
    """
    then = {(verdict.gate, step.step): step for verdict in before for step in verdict.steps}
    lost: list[str] = []
    for verdict in after:
        silent: list[StepVerdict] = []
        for step in verdict.steps:
            old = then.get((verdict.gate, step.step))
            if old is not None:
                lost += await _lost_in(context, old, step)
            if old is None or not tells_all(old, await _report(context, old)):
                silent.append(step)
        if silent:
            lost += await _lost_since_proven(context, params, verdict.gate, silent)
    return lost


async def _lost_since_proven(
    context: ActionContext, params: ProveParams, gate: str, steps: list[StepVerdict]
) -> list[str]:
    proven = await when_proven(context, params.branch, params.base, gate)
    lost: list[str] = []
    for step in steps:
        gone = every_id_ran(proven.ran(step.step), await _report(context, step))
        names = (*gone.missing[:10], *gone.skipped[:10])
        lost += [f"{step.step}: {name} ran on the last proven commit and does not run now" for name in names]
    return lost


async def _report(context: ActionContext, step: StepVerdict) -> TestReport:
    return TestReport.model_validate_json(await context.read(step.report))


async def _lost_in(context: ActionContext, old: StepVerdict, new: StepVerdict) -> list[str]:
    before, after = await _report(context, old), await _report(context, new)
    if not (before.names_every_test and after.names_every_test):
        fewer = after.tests_run < before.tests_run
        return [f"{old.step}: {before.tests_run} tests ran on base, only {after.tests_run} now"] if fewer else []
    gone = every_id_ran({case.id for case in before.executed if not case.group}, after)
    return [
        *(f"{old.step}: {name} ran on base and is gone" for name in gone.missing[:10]),
        *(f"{old.step}: {name} ran on base and is skipped" for name in gone.skipped[:10]),
    ]


ACTIONS = (
    ActionDef(
        name="gate.prove",
        summary="Put the parts of a proof together and check that none is missing.",
        run=prove,
        params=ProveParams,
        raises=groups,
        outputs=("state", "digest", "receipt", "against"),
        about="proof",
    ),
)
