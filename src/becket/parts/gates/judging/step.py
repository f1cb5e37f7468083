"""One step of a gate: run it contained, read its report, judge it by exit code and report (L11)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath

from becket.kernel.contract.action import ActionContext, Executed, RunCommand
from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.gate import GateColor, StepVerdict
from becket.kernel.contract.git import Git
from becket.kernel.contract.process import ChildEnd, Processes
from becket.kernel.contract.receipt import Receipt
from becket.parts.gates.judging.env_file import BadPlace, provided, refuse_committed
from becket.parts.gates.judging.keys import environment_digest, step_env
from becket.parts.gates.judging.tree import ProofTree, clean_again
from becket.parts.gates.ports.report import Color, Problem, ProblemCode, TestReport
from becket.parts.gates.reports.folder import ReportFolder
from becket.parts.gates.reports.formats import parse
from becket.parts.gates.reports.verdict import verdict_of
from becket.parts.gates.section import GateStep
from becket.parts.gates.selectors import selection

MOST_NAMES = 200
LARGEST_LOG = 64_000_000


@dataclass(frozen=True, slots=True)
class StepRun:
    """One execution of a step, with everything it said."""

    verdict: StepVerdict
    report: TestReport
    at_work: str = ""  # the command line that did not end in time

    @property
    def hung(self) -> bool:
        return self.verdict.end == ChildEnd.timeout


def has_selection(step: GateStep, proof: ProofTree, tests: tuple[str, ...]) -> bool:
    return _command(step, proof, tests) != step.run


async def run_step(
    context: ActionContext, gate: str, step: GateStep, proof: ProofTree, *, label: str, tests: tuple[str, ...] = ()
) -> StepRun:
    """Run the step, or only the given tests of it where the step says how; else the whole step again."""
    env_file = env_file_of(context, step)
    command = _command(step, proof, tests)
    _remove_old_report(step, proof)
    async with _provided(context, env_file, step, proof):
        proof.use.began = True
        done = await context.execute(
            RunCommand(
                text=command,
                cwd=proof.root,
                timeout=step.timeout,
                env=step_env(step, proof),
                network=step.network.value,
                readable=proof.readable,
                label=f"{gate}-{step.name}-{label}",
            )
        )
    if done.end is ChildEnd.not_started:
        raise ActionFailed(f"the step {step.name} could not be started: {done.message}", kind="environment")
    report = await asyncio.to_thread(_read_report, step, proof, done, context.redact)
    return await _judged(context, gate, step, proof, command, done, report, env_file)


def env_file_of(context: ActionContext, step: GateStep) -> Path | None:
    """The person's file that the step declares."""
    if step.env_file is None:
        return None
    source = context.port(Git).root / step.env_file
    if not source.is_file():
        raise ActionFailed(
            f"the step {step.name} declares env_file {step.env_file}, and {source} is not there; make it, or take "
            "env_file out of becket.yaml",
            kind="env_file_missing",
        )
    return source


@asynccontextmanager
async def _provided(
    context: ActionContext, env_file: Path | None, step: GateStep, proof: ProofTree
) -> AsyncIterator[None]:
    """In a tree as it was opened: whatever an earlier run put in the file's place is gone."""
    if env_file is None or step.env_file is None:
        yield
        return
    try:
        refuse_committed(step.env_file, await context.port(Git).listing(proof.workspace.sha))
        await clean_again(context, proof)
        with provided(env_file, proof.root, step.env_file):
            yield
    except BadPlace as problem:
        raise ActionFailed(f"the env_file {step.env_file} of {step.name}: {problem}", kind="bad_env_file") from problem


def _command(step: GateStep, proof: ProofTree, tests: tuple[str, ...]) -> str:
    if not tests or step.rerun is None or not _writes_report(step.rerun, step.report):
        return step.run
    chosen = selection(step.report, tests, proof.has)
    return step.run if chosen is None else step.rerun.replace("{tests}", chosen)


def _writes_report(command: str, report: str) -> bool:
    """Without its report a run of some tests proves nothing, however it exits: then the whole step runs again."""
    _, _, pattern = report.partition(":")
    wanted = PurePosixPath(pattern).name
    return not pattern or any(fnmatch(PurePosixPath(word).name, wanted) for word in re.split(r"[\s=\"']+", command))


def _remove_old_report(step: GateStep, proof: ProofTree) -> None:
    """A report of an earlier run in this tree must not speak for this one."""
    _, _, pattern = step.report.partition(":")
    for name in ReportFolder(proof.root).find(pattern) if pattern else ():
        (proof.root / name).unlink(missing_ok=True)


def _read_report(step: GateStep, proof: ProofTree, done: Executed, redact: Callable[[str], str]) -> TestReport:
    folder = ReportFolder(proof.root)
    said = _content(done.stdout_path) or _content(done.log_path)
    report = parse(step.report, said, folder.read, find_files=folder.find, exit_code=done.exit_code, redact=redact)
    if not done.cut or ":" in step.report or step.report == "plain":
        return report
    # A test may have failed where something is missing.
    missing = Problem(code=ProblemCode.too_large, text="the step printed more than is kept: its report is not whole")
    return report.model_copy(update={"problems": (*report.problems, missing)})


def _content(path: Path) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        return file.read(LARGEST_LOG)


async def _judged(
    context: ActionContext, gate: str, step: GateStep, proof: ProofTree, command: str, done: Executed,
    report: TestReport, env_file: Path | None,
) -> StepRun:  # fmt: skip
    selected = command != step.run
    ended = done.end is ChildEnd.exited
    color, reasons = verdict_of(report, done.exit_code if ended else None, 0 if selected else step.min_tests)
    at_work = context.redact(done.message) if done.end is ChildEnd.timeout else ""
    if done.end is ChildEnd.timeout:
        then = f"; `{at_work}` was at work then" if at_work else ""
        reasons_shown = [f"the step did not end within {step.timeout:g} s{then}", *map(str, reasons)]
    else:
        reasons_shown = [str(reason) for reason in reasons]
    names = [case.id for case in report.failing if not case.group] or [case.id for case in report.failing]
    kept = await context.keep(json.dumps(report.model_dump(mode="json")).encode(), f"{gate}.{step.name}.report.json")
    holds = context.port(Processes).holds()
    environment = environment_digest(step, proof, holds, env_file)
    body: dict[str, Json] = {
        "gate": gate,
        "step": step.name,
        "commit": proof.workspace.sha,
        "end": done.end,
        "report": kept,
        "color": color,
        "tests_run": report.tests_run,
        "selected": selected,
        "left_running": done.left_running,
    }
    receipt = Receipt(
        kind="gate", command=("sh", "-euc", command), tree=proof.tree_hash, exit_code=done.exit_code, log=done.log,
        environment=environment, body=body,
    )  # fmt: skip
    problem = None
    if color is Color.red:
        from becket.parts.gates.reports.environment import mentions_environment, not_found  # it takes a while to load

        said = await asyncio.to_thread(_content, done.log_path)
        read = ReportFolder(proof.root).read
        problem = mentions_environment(said, read, partial(proof.held, holds.readable)) or not_found(done.exit_code)
    verdict = StepVerdict(
        gate=gate,
        step=step.name,
        color=GateColor.green if color is Color.green else GateColor.red,
        exit_code=done.exit_code,
        end=done.end,
        seconds=done.seconds,
        tests_run=report.tests_run,
        counts_tests=step.report != "plain",
        failing=tuple(names[:MOST_NAMES]),
        failed=len(names),
        reasons=tuple(reasons_shown),
        problem=context.redact(f"{problem.kind}: {problem.line}") if problem is not None else "",
        receipt=await context.receipt(receipt, done.started_at, done.ended_at),
        log=done.log,
        report=kept,
        environment=environment,
        setup=proof.setup_key,
    )
    return StepRun(verdict, report, at_work)
