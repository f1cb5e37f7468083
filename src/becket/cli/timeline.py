"""What a run did, as rows of a timeline: phases with their steps. Pure: no colour, no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from becket.app.record.at_work import current, steps_of
from becket.cli.plain import evidence, line, took
from becket.kernel.contract.base import Json
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import DECISION, ENDED, RunStatus, Step, StepState
from becket.kernel.contract.spec import PHASES, LoopSpec, Phase

if TYPE_CHECKING:
    from becket.app.record.story import Story

REDUNDANT = frozenset({"action_error", "verifier_failed", "verifier_undecided", "no_output"})
"""Conditions that only repeat what the step's own row says."""


class RowMark(StrEnum):
    done = "done"
    failed = "failed"
    undecided = "undecided"
    skipped = "skipped"
    current = "current"
    pending = "pending"
    left_out = "left_out"
    decision = "decision"


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One line of the timeline. `depth` 0 is a phase, 1 a step; `last` closes the phase's branch."""

    depth: int
    mark: RowMark
    name: str
    text: str = ""
    right: str = ""
    last: bool = False


@dataclass(frozen=True, slots=True)
class IterationView:
    """One iteration."""

    number: int
    rows: tuple[TimelineRow, ...]
    seconds: float
    outcome: str = ""


def passages(story: Story) -> tuple[IterationView, ...]:
    """Every iteration that has begun, oldest first."""
    numbers = sorted({step.iteration for step in story.steps} | _begun(story))
    return tuple(_passage(story, number) for number in numbers)


def _begun(story: Story) -> set[int]:
    """A run that waits stands before an iteration that has not begun; so does one that nobody claimed yet."""
    return {story.run.iteration} if story.run.status is RunStatus.running else set()


def _passage(story: Story, number: int) -> IterationView:
    steps = [step for step in story.steps if step.iteration == number]
    now_at = current(story) if number == story.run.iteration else None
    rows = [row for phase in PHASES for row in _phase(story, phase, steps, now_at, number)]
    decision = next((step for step in steps if step.id == DECISION), None)
    return IterationView(number, tuple(rows), _seconds(steps), _outcome(decision) if decision else "")


def _phase(
    story: Story, phase: Phase, steps: Sequence[Step], now_at: tuple[Phase, str] | None, number: int
) -> Iterator[TimelineRow]:
    mine = [step for step in steps if step.phase is phase]
    here = now_at is not None and now_at[0] is phase
    if phase not in story.spec.phases and not mine:
        return
    logs = {item.digest: item.receipt.log for item in story.receipts if item.receipt.log}
    below = [_step_row(step, [log for digest in step.receipts if (log := logs.get(digest))]) for step in mine]
    if here and now_at is not None:
        below.append(TimelineRow(1, RowMark.current, now_at[1], _doing(story.spec, now_at)))
    open_end = number == story.run.iteration and story.run.status not in ENDED
    objective = story.spec.phases[phase].objective if phase in story.spec.phases else ""
    worked = [step for step in mine if step.state is not StepState.skipped and step.id != DECISION]
    right = took(_seconds(worked)) if worked else ""
    yield TimelineRow(0, _phase_mark(mine, here, open_end), phase.value, line(objective, 100), right)
    for index, row in enumerate(below, 1):
        yield TimelineRow(row.depth, row.mark, row.name, row.text, row.right, last=index == len(below))


def _phase_mark(steps: Sequence[Step], here: bool, open_end: bool) -> RowMark:
    if here:
        return RowMark.current
    marks = {mark_of(step) for step in steps}
    for mark in (RowMark.failed, RowMark.undecided):
        if mark in marks:
            return mark
    if marks <= {RowMark.skipped}:
        return RowMark.skipped if steps else RowMark.pending if open_end else RowMark.left_out
    return RowMark.done


def mark_of(step: Step) -> RowMark:
    if step.id == DECISION:
        return RowMark.decision
    if step.state is StepState.failed:
        return RowMark.undecided if step.error_kind == "undecided" else RowMark.failed
    return RowMark.skipped if step.state is StepState.skipped else RowMark.done


def _step_row(step: Step, logs: Sequence[str]) -> TimelineRow:
    if step.id == DECISION:
        return TimelineRow(1, RowMark.decision, _outcome(step))
    if step.state is StepState.skipped:
        return TimelineRow(1, RowMark.skipped, step.id, line(f"skipped: {step.note}"))
    return TimelineRow(1, mark_of(step), step.id, "; ".join(_told(step, logs)), took(step.ended_at - step.started_at))


def _told(step: Step, logs: Sequence[str]) -> Iterator[str]:
    """Verifiers say pass, fail or undecided; actions say what they raised; failures say why."""
    says = step.outputs.get("says") if set(step.outputs) == {"says"} else None
    for condition in step.conditions:
        if condition.object == step.id and condition.name == says:
            yield condition_words(condition, str(says))
        elif condition.name not in REDUNDANT:
            yield condition_words(_with_log(condition, logs))
    if step.state is StepState.failed and says is None:
        yield line(f"{step.error_kind}: {step.error}", 240)
    if step.note:
        yield line(step.note)
    if step.attempts > 1:
        yield f"{step.attempts} attempts"


def _with_log(condition: Condition, logs: Sequence[str]) -> Condition:
    """What a command's exit code says is worth nothing without its log."""
    if "exit_code" not in condition.evidence or "log" in condition.evidence or not logs:
        return condition
    return condition.model_copy(update={"evidence": {**condition.evidence, "log": logs[-1]}})


def condition_words(condition: Condition, name: str | None = None) -> str:
    """`base.fast_red  (exit code 1, log 3fa2c91a)`."""
    shown = evidence({key: _told_value(value) for key, value in condition.evidence.items()})
    return f"{name or condition.ref}  ({shown})" if shown else name or condition.ref


def _told_value(value: Json) -> Json:
    """What is nested says too little in one line: reports and --json have it."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value)):
        return None
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _outcome(decision: Step) -> str:
    outcome, why = str(decision.outputs.get("outcome", "")), str(decision.outputs.get("reason", ""))
    return line(f"{outcome}: {reason_words(why)}")


def _seconds(steps: Iterable[Step]) -> float:
    return sum(step.ended_at - step.started_at for step in steps)


def _doing(spec: LoopSpec, at: tuple[Phase, str]) -> str:
    step = next((item for item in steps_of(spec, at[0]) if item.id == at[1]), None)
    return line((step.uses or step.run or "") if step else "", 80)
