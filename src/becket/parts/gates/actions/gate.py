"""Decide a tree: run a named gate of base's becket.yaml on an exact commit, in a clean tree of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Duration, Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.gate import GateColor, GateVerdict, RedClass
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import PROOF
from becket.kernel.contract.made import OF, takes
from becket.kernel.contract.naming import BranchOrNone
from becket.kernel.contract.project import Projects
from becket.kernel.contract.receipt import Receipt
from becket.kernel.contract.spec import Name, NonBlank
from becket.parts.gates.judging.gate import GateResult, run_gate
from becket.parts.gates.judging.history import since_proven
from becket.parts.gates.judging.step import StepRun, has_selection, run_step
from becket.parts.gates.judging.tree import ProofTree, clean_again, open_tree
from becket.parts.gates.log_windows import last_lines
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.section import GATES, SET_UP, GateName, GateStep
from becket.parts.gates.summary import summarise

KINDS = ("code_red", "environment_red", "flaky_red")
BASE = "base"
OF_THE_MACHINE = frozenset({"environment", "env_file_missing", "bad_env_file"})
"""Failures before a step ran that a person mends, not an agent in the code."""
MACHINE_CHANGED = (
    "machine: the last proven commit {sha} is red now too, in the same step, so it is not the code that changed; see "
    "what is missing here: `becket gates try {step} --at {sha}`"
)
OUTPUTS = ("color", "verdict", "digest", "failing", "commit", "summary", "kinds", "flaky")
LINES_TOLD = 5
OPTIONAL = frozenset({"slow"})
"""A project without it is simply proven by the others."""


class GateParams(Record):
    """`of` says what the commit `at` is in this loop; the becket.yaml of the commit `by` defines the gate."""

    of: Name = "base"
    gate: GateName = "fast"
    at: Annotated[NonBlank, takes("{of}.sha")]
    by: Annotated[NonBlank, takes("base.sha")]
    place: Literal["resident", "fresh"] = "fresh"
    keep_green: Duration = 7 * 86400.0
    branch: BranchOrNone = ""  # where earlier proofs are looked for, to tell a broken machine from broken code


def colors(gate: str) -> tuple[str, ...]:
    return tuple(f"{gate}_{color}" for color in GateColor)


def groups(params: GateParams) -> tuple[ConditionGroup, ...]:
    return (
        ConditionGroup(object=params.of, names=colors(params.gate)),
        ConditionGroup(object=params.of, names=KINDS),
        ConditionGroup(object=params.of, names=("flaky_seen",)),
    )


async def run(context: ActionContext, params: GateParams) -> Result:
    config = await context.port(Projects).committed(params.by)
    if not config.section(GATES).get(params.gate):
        return _without_gate(params, config)
    if (earlier := await _earlier(context, params)) is not None:
        return earlier
    control = _OnLastProven(context, params) if params.branch else None
    resident = params.place == "resident" and _stays_on(context, params.branch)
    place = PROOF if control is None else f"gate-{params.of}"  # that of its control beside it
    try:
        proof = await open_tree(context, params.at, params.by, place, resident=resident, when_needed=True)
        if isinstance(proof, SetupFailed):
            return await _setup_failed(context, params, proof)
        done = await run_gate(context, params.gate, proof, defined_by=params.by, ttl=params.keep_green, control=control)
    except ActionFailed as failed:
        if params.of != BASE or failed.kind not in OF_THE_MACHINE:
            raise
        return await _not_run(context, params, str(failed), {})
    return await _result(context, params, done)


def _stays_on(context: ActionContext, branch: str) -> bool:
    """There is one resident tree, for one branch: a run on another could reset it while a gate runs in there."""
    return branch in ("", context.port(Projects).current().branch)


@dataclass(frozen=True, slots=True)
class _OnLastProven:
    """On the last proven commit before the one that is judged; for one step at a time, since they share a tree."""

    context: ActionContext
    params: GateParams
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def passes(self, step: GateStep) -> bool:
        async with self.turn:
            green = await self._proven()
            if not green or await self._lacks_more_than(green):
                return False
            proof = await open_tree(self.context, green, self.params.by)
            return isinstance(proof, ProofTree) and (await self._run(step, proof, "control")).verdict.green

    async def machine_changed(self, step: GateStep, tests: tuple[str, ...]) -> str:
        """By its own becket.yaml: a step or a set-up that is new was never proven there."""
        async with self.turn:
            return await self._changed(step, tests)

    async def _changed(self, step: GateStep, tests: tuple[str, ...]) -> str:
        at, named = self.params.at, f"{self.params.gate}/{step.name}"
        if await self.context.known("proven", f"{self.params.branch}@{at}"):
            return MACHINE_CHANGED.format(sha=at[:12], step=named)  # it was this very commit
        green = await self._proven()
        if not green or not await self._same_there(step, green):
            return ""
        proof = await open_tree(self.context, green, green)
        if isinstance(proof, SetupFailed):
            return ""
        alone = tests if has_selection(step, proof, tests) else ()
        for label, chosen in (("still", alone), ("still-whole", ())):
            done = await self._run(step, proof, label, chosen)
            if done.verdict.green:
                return ""
            if done.hung:
                break  # the next would cost as much and say no more
        return MACHINE_CHANGED.format(sha=green[:12], step=named)

    async def _proven(self) -> str:
        found = await since_proven(self.context, self.params.branch, self.params.at)
        return found[0] if found is not None else ""

    async def _lacks_more_than(self, green: str) -> bool:
        """A submodule that was there, or of another commit: the step can be green there without it."""
        git = self.context.port(Git)
        now = await git.absent_submodules(self.params.at)
        return bool(now) and not set(now) <= set(await git.absent_submodules(green))

    async def _same_there(self, step: GateStep, green: str) -> bool:
        projects = self.context.port(Projects)
        then, now = await projects.committed(green), await projects.committed(self.params.by)
        steps = then.section(GATES).get(self.params.gate, ())
        return step in steps and then.section(SET_UP) == now.section(SET_UP)

    async def _run(self, step: GateStep, proof: ProofTree, label: str, tests: tuple[str, ...] = ()) -> StepRun:
        await clean_again(self.context, proof)
        return await run_step(self.context, self.params.gate, step, proof, label=label, tests=tests)


def _without_gate(params: GateParams, config: Config) -> Result:
    if params.gate not in OPTIONAL or not any(config.section(GATES).values()):
        raise ActionFailed(
            f"becket.yaml of {params.by[:12]} has no steps for the gate `{params.gate}`; add them under `gates:` and "
            "commit; `becket doctor` shows how",
            kind="not_configured",
        )
    why = f"becket.yaml of {params.by[:12]} has no gate `{params.gate}`"
    green = Condition(
        object=params.of, name=f"{params.gate}_green", group=colors(params.gate), evidence={"nothing_to_run": why}
    )
    outputs = {
        "color": "green",
        "verdict": "",
        "digest": "",
        "failing": [],
        "commit": params.at,
        "summary": "",
        "kinds": [],
        "flaky": [],
    }
    return Result(outputs=outputs, conditions=(green,), note=why)


async def _earlier(context: ActionContext, params: GateParams) -> Result | None:
    """This run's own verdict about exactly this commit, where its code alone decided: asking again only costs time."""
    made = context.outputs.get(context.step_id, {})
    digest = str(made.get("verdict") or "")
    doubtful = made.get("color") == GateColor.undecided or RedClass.environment in made.get("kinds", [])
    if not digest or made.get("commit") != params.at or doubtful:
        return None
    verdict = GateVerdict.model_validate_json(await context.read(digest))
    if verdict.commit != params.at or verdict.defined_by != params.by or verdict.gate != params.gate:
        return None
    kinds = [RedClass(kind) for kind in made.get("kinds", [])]
    said = _conditions(params, verdict, kinds, list(made.get("flaky", [])))
    return Result(outputs=dict(made), conditions=said, note="as this run found it before")


async def _result(context: ActionContext, params: GateParams, done: GateResult) -> Result:
    verdict = done.verdict
    kept = await context.keep(verdict.model_dump_json().encode(), f"{params.of}.{params.gate}.verdict.json")
    body: dict[str, Json] = {
        "of": params.of,
        "gate": params.gate,
        "commit": params.at,
        "defined_by": params.by,
        "color": verdict.color,
        "steps": {step.step: step.receipt for step in verdict.steps},
        "reused": {step.step: step.reused_from for step in verdict.steps if step.reused_from},
        "verdict": verdict.digest,
    }
    now = await context.now()
    receipt = await context.receipt(Receipt(kind="verdict", tree=verdict.tree, body=body), now, now)
    why = context.redact(await _summary(context, done))
    summary = await context.keep(why.encode(), f"{params.of}.{params.gate}.summary.txt")
    outputs: dict[str, Json] = {
        "color": verdict.color,
        "verdict": kept,
        "digest": verdict.digest,
        "failing": list(verdict.failing[:50]),
        "commit": params.at,
        "summary": summary,
        "receipt": receipt,
        "kinds": sorted(done.kinds),
        "flaky": list(done.flaky[:50]),
    }
    said = _conditions(params, verdict, sorted(done.kinds), list(done.flaky))
    return Result(outputs=outputs, conditions=said, facts=done.facts)


def _conditions(
    params: GateParams, verdict: GateVerdict, kinds: list[RedClass], flaky: list[str]
) -> tuple[Condition, ...]:
    evidence: dict[str, Json] = {
        "commit": verdict.commit,
        "verdict": verdict.digest,
        "steps": {step.step: {"color": step.color, "receipt": step.receipt} for step in verdict.steps},
        "failing": list(verdict.failing[:20]),
        "failed": verdict.failed,
        "reasons": [f"{step.step}: {reason}" for step in verdict.steps if not step.green for reason in step.reasons],
    }
    said = [
        Condition(object=params.of, name=f"{params.gate}_{verdict.color}", group=colors(params.gate), evidence=evidence)
    ]
    if kinds:
        # One fault of the machine makes every other red of the gate doubtful; a flaky one leaves a real one real.
        kind = next(kind for kind in (RedClass.environment, RedClass.code, RedClass.flaky) if kind in kinds)
        problems = [step.problem for step in verdict.steps if step.problem]
        said.append(
            Condition(
                object=params.of,
                name=f"{kind}_red",
                group=KINDS,
                evidence={
                    "gate": params.gate,
                    "problems": problems,
                    "failing": list(verdict.failing[:20]),
                    "failed": verdict.failed,
                },
            )
        )
    if flaky:
        said.append(Condition(object=params.of, name="flaky_seen", evidence={"tests": flaky[:50]}))
    return tuple(said)


async def _summary(context: ActionContext, done: GateResult) -> str:
    """Made of the logs as they are kept: in a window of a log, half a secret is not to be recognised (L25)."""
    parts = []
    for step in done.steps:
        if step.verdict.green or not step.runs:
            continue
        first = step.runs[0]
        log = await context.read(first.verdict.log)
        parts.append(summarise(step.verdict.step, first.report, log).text)
    return "\n\n".join(parts)


async def _setup_failed(context: ActionContext, params: GateParams, failed: SetupFailed) -> Result:
    """A set-up that fails is the machine's fault on base, and the candidate's where only its lock files fail."""
    said = last_lines(failed.log, LINES_TOLD) if failed.log is not None and failed.log.exists() else ""
    told: list[Json] = [*context.redact(said).splitlines()]
    return await _not_run(context, params, f"set-up failed: {failed.reason}", {"setup": failed.reason}, told)


async def _not_run(
    context: ActionContext, params: GateParams, why: str, more: dict[str, Json], last: Sequence[Json] = ()
) -> Result:
    """The gate did not come to run its steps: red, and nobody's code is to blame (L13)."""
    evidence: dict[str, Json] = {**more, "reasons": [why], "commit": params.at}
    said = (
        Condition(object=params.of, name=f"{params.gate}_red", group=colors(params.gate), evidence=evidence),
        Condition(
            object=params.of, name="environment_red", group=KINDS, evidence={"problems": [why], "last_lines": [*last]}
        ),
    )
    outputs: dict[str, Json] = {
        "color": "red", "verdict": "", "digest": "", "failing": [], "commit": params.at, "receipt": "",
        "summary": await context.keep(why.encode(), f"{params.of}.summary.txt"),
        "kinds": [RedClass.environment], "flaky": [],
    }  # fmt: skip
    return Result(outputs=outputs, conditions=said)


ACTIONS = (
    ActionDef(
        name="gate.run",
        summary="Run a gate of base's becket.yaml on an exact commit, in a clean tree.",
        run=run,
        params=GateParams,
        raises=groups,
        outputs=OUTPUTS,
        keeps=OUTPUTS,
        about=OF,
    ),
)
