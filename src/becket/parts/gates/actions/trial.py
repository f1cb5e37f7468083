"""Try the gates of the becket.yaml as it stands: once each, on a clean tree of one commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.gate import GateColor, RedClass, StepTrouble, TriedStep
from becket.kernel.contract.process import ChildEnd
from becket.kernel.contract.project import Projects
from becket.kernel.contract.spec import NonBlank
from becket.parts.gates.judging.gate import StepResult, run_gate
from becket.parts.gates.judging.tree import ProofTree, open_tree
from becket.parts.gates.log_windows import last_lines
from becket.parts.gates.ports.report import ProblemCode
from becket.parts.gates.ports.setup import SetupFailed, Setups
from becket.parts.gates.section import GATES, GateStep
from becket.parts.gates.summary import summarise

TRIED = "gates_tried"
SETUP = "setup"
PROGRESS = "progress.jsonl"
COLORS = {"green": True, "red": False}
WORKING_COPY = "the working copy"
TAIL_LINES = 40
MOST_FAILING = 20


class TryParams(Record):
    at: NonBlank
    steps: str = ""


async def run(context: ActionContext, params: TryParams) -> Result:
    config = context.port(Projects).current()
    chosen = list(wanted(config, params.steps.split()))
    told = _Progress(context.folder(PROGRESS))
    told.begins(SETUP)
    proof = await open_tree(context, params.at, WORKING_COPY, "trial", config=config)
    tried: list[TriedStep] = []
    facts: dict[str, str] = {}
    if isinstance(proof, SetupFailed):
        tried.append(told.ended(await _failed(context, proof)))
        chosen = []
    elif proof.setup is not None:
        seconds = proof.setup.seconds if proof.setup.built else 0.0
        tried.append(told.ended(TriedStep(gate="", step=SETUP, color=GateColor.green, seconds=seconds)))
    for gate, step in chosen:
        assert isinstance(proof, ProofTree)
        told.begins(f"{gate}/{step.name}")
        done = await run_gate(
            context, gate, proof, defined_by=WORKING_COPY, ttl=0.0, only=(step.name,), again=False
        )  # ttl: whoever tries a step wants to see it run
        facts |= done.facts
        tried += [told.ended(await _tried(context, result)) for result in done.steps]
    whole = not params.steps and all(step.green for step in tried)
    if whole and isinstance(proof, ProofTree) and proof.setup is not None:
        await context.port(Setups).trust(proof.setup.key, context.run.run_id)
    steps: list[Json] = [step.model_dump(mode="json") for step in tried]
    said = Condition(name=TRIED, evidence=_by_color(tried))
    return Result(outputs={"steps": steps}, conditions=(said,), facts=facts)


def _by_color(tried: list[TriedStep]) -> dict[str, Json]:
    """Names that whoever lists runs shows."""
    return {color: [step.name for step in tried if step.green is green] for color, green in COLORS.items()}


def wanted(config: Config, names: list[str]) -> Iterator[tuple[str, GateStep]]:
    every = [(gate, step) for gate, steps in config.section(GATES).items() for step in steps]
    if not every:
        raise ActionFailed("becket.yaml has no gates; `becket doctor` shows what to add", kind="no_gates")
    for name in names:
        if not any(name in (step.name, f"{gate}/{step.name}") for gate, step in every):
            known = ", ".join(f"{gate}/{step.name}" for gate, step in every)
            raise ActionFailed(f"there is no step {name!r}; the steps are {known}", kind="no_step")
    yield from ((gate, step) for gate, step in every if not names or {step.name, f"{gate}/{step.name}"} & set(names))


async def _tried(context: ActionContext, result: StepResult) -> TriedStep:
    said = result.verdict
    summary = ""
    if not said.green and result.report is not None:
        text = summarise(said.step, result.report, await context.read(said.log)).text
        summary = await context.keep(context.redact(text).encode(), f"{said.gate}.{said.step}.summary.txt")
    return TriedStep(
        gate=said.gate, step=said.step, color=said.color, trouble=_trouble(result), seconds=said.seconds,
        tests_run=said.tests_run, counts_tests=said.counts_tests, exit_code=said.exit_code, end=said.end,
        reasons=said.reasons, problem=said.problem,
        at_work=next((one.at_work for one in result.runs), ""), failing=said.failing[:MOST_FAILING], summary=summary,
        log=said.log,
    )  # fmt: skip


def _trouble(result: StepResult) -> StepTrouble | None:
    said, report = result.verdict, result.report
    if said.green or report is None:
        return None
    if said.end == ChildEnd.timeout:
        return StepTrouble.timeout
    if result.kind is RedClass.environment:
        return StepTrouble.environment
    if report.failing and any(case.file for case in report.failing):
        return StepTrouble.code
    if any(problem.code is ProblemCode.missing for problem in report.problems):
        return StepTrouble.no_report
    return StepTrouble.no_tests if not report.tests_run and not report.problems else StepTrouble.code


async def _failed(context: ActionContext, failed: SetupFailed) -> TriedStep:
    log = summary = ""
    if failed.log is not None and failed.log.exists():
        log = await context.keep(failed.log, "setup.log")
        text = last_lines(await context.read(log), TAIL_LINES)
        summary = await context.keep(text.encode(), "setup.summary.txt")
    return TriedStep(
        gate="", step=SETUP, color=GateColor.red, trouble=StepTrouble.environment, exit_code=failed.exit_code,
        reasons=(failed.reason,), summary=summary, log=log,
    )  # fmt: skip


class _Progress:
    """What a person who looks on is told, one line each; only a hint, the outcome is in the journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # of a life that was killed

    def begins(self, name: str) -> None:
        self._write({"begins": name})

    def ended(self, step: TriedStep) -> TriedStep:
        self._write({"ended": step.model_dump(mode="json")})
        return step

    def _write(self, told: Json) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


ACTIONS = (
    ActionDef(
        name="gate.try", summary="Run the set-up and each step once, by the becket.yaml as it stands.", run=run,
        params=TryParams, raises=(ConditionGroup(names=(TRIED,)),), outputs=("steps",),
    ),
)  # fmt: skip
