"""The crossing proof: what failed on the parent passes on the child, with the parent's tests exactly (L21).

The candidate's own tests count for nothing here: its additions are removed, its deletions restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record, digest_of
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.gate import GateColor, GateVerdict, StepVerdict
from becket.kernel.contract.git import Git
from becket.kernel.contract.made import BaseBranchOrNone, BaseSha, BaseVerdicts, CandidateSha
from becket.kernel.contract.receipt import Receipt
from becket.kernel.contract.spec import Name
from becket.parts.gates.judging.gate import StepResult, run_gate
from becket.parts.gates.judging.reference import NOTHING_PROVEN, WhenProven, when_proven
from becket.parts.gates.judging.step import has_selection, run_step
from becket.parts.gates.judging.tree import ProofTree, open_tree
from becket.parts.gates.ports.report import CaseOutcome, TestCase, TestReport
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.reports.compare import every_id_ran
from becket.parts.gates.section import GATES
from becket.parts.guard.actions.side import side_of
from becket.parts.heal import words

NAMES = ("crossed", "not_crossed", "cross_undecided")
OUTPUTS = ("state", "about", "digest", "receipt", "against", "summary")


class CrossParams(Record):
    """`verdicts` are the base's verdicts (artifact digests); the red steps in them are what must cross."""

    of: Name = "candidate"
    base: BaseSha
    candidate: CandidateSha
    verdicts: BaseVerdicts
    branch: BaseBranchOrNone  # where the last proven commit is looked for, if a file that did not load only skips
    approved: str = ""  # the condition by which a person let the candidate's own tests count


@dataclass(frozen=True, slots=True)
class Crossing:
    """One red step of the parent, and what became of it on the child."""

    parent: StepVerdict
    child: StepVerdict
    against: tuple[str, ...]  # why it does not count as crossed
    undecided: bool = False

    def told(self) -> dict[str, Json]:
        return {
            "gate": self.parent.gate,
            "step": self.parent.step,
            "parent": self.parent.receipt,
            "child": self.child.receipt,
            "failed_on_parent": list(self.parent.failing[:50]) or [f"the step {self.parent.step}"],
            "against": list(self.against),
        }


def groups(params: CrossParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES),)


async def cross(context: ActionContext, params: CrossParams) -> Result:
    earlier = context.outputs.get(context.step_id, {})
    if earlier.get("about") == _about(context, params) and earlier.get("state") == "crossed":
        return _as_before(params, earlier)  # a run that waits for main to be free looks often
    red = [step for verdict in await _verdicts(context, params) for step in verdict.steps if not step.green]
    if not red:
        raise ActionFailed("no step was red on the parent, so nothing can cross", kind="nothing_to_cross")
    commit = await _with_parents_tests(context, params)
    proof = await open_tree(context, commit, params.base)
    if isinstance(proof, SetupFailed):
        return await _result(context, params, commit, [], [f"the set-up of the candidate fails: {proof.reason}"])
    crossings, facts = [], dict[str, str]()
    for gate in dict.fromkeys(step.gate for step in red):
        names = [step.step for step in red if step.gate == gate]
        done = await run_gate(context, gate, proof, defined_by=params.base, ttl=0.0, only=names)
        facts |= done.facts
        parents = {step.step: step for step in red if step.gate == gate}
        crossings += [await _crossing(context, params, proof, parents[each.verdict.step], each) for each in done.steps]
    return replace(await _result(context, params, commit, crossings, []), facts=facts)


def _about(context: ActionContext, params: CrossParams) -> str:
    tests = "its own tests" if params.approved and params.approved in context.conditions else "the parent's tests"
    return f"{params.base}..{params.candidate} with {tests}"


def _as_before(params: CrossParams, made: Mapping[str, Json]) -> Result:
    evidence: dict[str, Json] = {"base": params.base, "candidate": params.candidate, "receipt": made.get("receipt")}
    said = Condition(object=params.of, name="crossed", group=NAMES, evidence=evidence)
    return Result(outputs=dict(made), conditions=(said,), note="as this run found it before")


async def _verdicts(context: ActionContext, params: CrossParams) -> list[GateVerdict]:
    """Those about this base: a gate that was not asked again since main moved still has its old one."""
    found = [GateVerdict.model_validate_json(await context.read(digest)) for digest in params.verdicts if digest]
    return [verdict for verdict in found if verdict.commit == params.base]


async def _with_parents_tests(context: ActionContext, params: CrossParams) -> str:
    if params.approved and params.approved in context.conditions:
        return params.candidate
    side = await side_of(context, params.base, params.verdicts)
    candidates = context.port(Candidates)
    made = await candidates.with_side_of(
        params.candidate,
        params.base,
        side.belongs,
        f"becket: {params.candidate[:12]} with the tests of {params.base[:12]}",
        f"crossing/{context.run.run_id}",
    )
    # Where the candidate left the tests alone there is one tree, and its greens are the candidate's own.
    same = made.tree == await context.port(Git).tree_of(params.candidate)
    return params.candidate if same else made.sha


async def _crossing(
    context: ActionContext, params: CrossParams, proof: ProofTree, parent: StepVerdict, child: StepResult
) -> Crossing:
    """Every test that failed must have run and held; every test that ran before must have run; alone as in company."""
    if not child.verdict.green:
        undecided = child.verdict.color is GateColor.undecided
        return Crossing(parent, child.verdict, child.verdict.reasons or ("the step is red",), undecided)
    if child.flaky:
        return Crossing(parent, child.verdict, (f"passes only sometimes: {', '.join(child.flaky[:5])}",), True)
    before = TestReport.model_validate_json(await context.read(parent.report))
    after = TestReport.model_validate_json(await context.read(child.verdict.report))
    idle = _only_skip(before, after)
    proven = await when_proven(context, params.branch, params.base, parent.gate) if idle else NOTHING_PROVEN
    against = (*_against(before, after), *_idle_against(idle, after, proven, parent.step))
    if not against:
        against = await _alone(context, proof, parent, set(idle))
    return Crossing(parent, child.verdict, against)


def _only_skip(before: TestReport, after: TestReport) -> tuple[str, ...]:
    """The files that did not load on the parent, and whose tests the child knows and skips, every one."""
    skipped = {case.id for case in after.cases if case.outcome is CaseOutcome.skipped}
    return tuple(case.id for case in before.failing if case.group and case.id in skipped)


def _idle_against(idle: Iterable[str], after: TestReport, proven: WhenProven, step: str) -> Iterable[str]:
    """Such a file is repaired if it was like that on the last proven commit, and is the same file still."""
    then = proven.reports.get(step)
    for name in idle:
        old, new = _tests_of(name, then), _tests_of(name, after)
        if not old:
            yield words.ONLY_SKIPS.format(file=name)
        elif ran := [case.id for case in old if case.outcome is not CaseOutcome.skipped]:
            yield words.SKIPS_WHAT_RAN.format(file=name, test=ran[0])
        elif {case.id for case in old} != {case.id for case in new} or not {case.file for case in old} <= proven.same:
            yield words.SKIPS_OTHERS.format(file=name)


def _tests_of(name: str, report: TestReport | None) -> list[TestCase]:
    """Those of a file; the file itself, where it is skipped as a whole."""
    found = [case for case in report.cases if case.id.startswith(name)] if report is not None else []
    return [case for case in found if not case.group] or found


def _against(before: TestReport, after: TestReport) -> Iterable[str]:
    held = {case.id for case in after.cases if case.outcome.held}
    by_id = before.names_every_test and after.names_every_test
    failed = [case.id for case in before.failing if not case.group]
    if after.names_every_test or any(case.id in {other.id for other in after.cases} for case in before.failing):
        for name in failed:
            if name not in held:
                yield f"{name} failed on the parent and did not run and pass on the child"
    bad = {case.id for case in after.cases if not case.outcome.held and case.outcome is not CaseOutcome.skipped}
    for case in before.failing:
        if case.group and case.id in bad:
            yield f"{case.id} failed on the parent and did not run and pass on the child"
    if by_id:
        gone = every_id_ran({case.id for case in before.executed if not case.group}, after)
        for name in (*gone.missing[:5], *gone.skipped[:5]):
            if name not in failed:
                yield f"{name} ran on the parent and not on the child"
    if after.tests_run < min(before.tests_run, len(before.executed)):
        yield f"{before.tests_run} tests ran on the parent, only {after.tests_run} on the child"


async def _alone(context: ActionContext, proof: ProofTree, parent: StepVerdict, idle: set[str]) -> tuple[str, ...]:
    """The failing tests once more, alone, backwards and in a fresh process: a repair that needs company is none."""
    step = next(each for each in proof.config.section(GATES)[parent.gate] if each.name == parent.step)
    tests = tuple(name for name in reversed(parent.failing) if name not in idle)
    if not tests or not has_selection(step, proof, tests):
        return ()
    alone = await run_step(context, parent.gate, step, proof, label="alone", tests=tests)
    if alone.verdict.green:
        return ()
    return tuple(f"alone, in a fresh process: {reason}" for reason in alone.verdict.reasons)


async def _result(
    context: ActionContext, params: CrossParams, commit: str, crossings: list[Crossing], problems: list[str]
) -> Result:
    against = [*problems, *(reason for crossing in crossings for reason in crossing.against)]
    undecided = bool(against) and not problems and all(c.undecided for c in crossings if c.against)
    name = "crossed" if not against else "cross_undecided" if undecided else "not_crossed"
    told: list[Json] = [crossing.told() for crossing in crossings]
    body: dict[str, Json] = {"base": params.base, "candidate": params.candidate, "tried": commit, "crossings": told}
    now = await context.now()
    receipt = await context.receipt(Receipt(kind="crossing", tree=commit, body={**body, "says": name}), now, now)
    summary = "\n".join(against)
    evidence: dict[str, Json] = {**body, "receipt": receipt, "against": against[:20]}
    outputs: dict[str, Json] = {
        "state": name,
        "about": _about(context, params),
        "digest": digest_of(body),
        "receipt": receipt,
        "against": against[:50],
        "summary": await context.keep(summary.encode(), "crossing.txt"),
    }
    said = Condition(object=params.of, name=name, group=NAMES, evidence=evidence)
    return Result(outputs=outputs, conditions=(said,))


ACTIONS = (
    ActionDef(
        name="gate.cross",
        summary="What failed on the parent passes on the child, with the parent's tests exactly.",
        run=cross,
        params=CrossParams,
        raises=groups,
        outputs=OUTPUTS,
        keeps=OUTPUTS,
        about="crossing",
    ),
)
