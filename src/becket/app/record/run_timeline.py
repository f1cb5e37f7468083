"""What a run did and does: iterations, phases, steps, with what one may look at of each. Bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from becket.app.record.at_work import began, current
from becket.app.record.report.plain import decision_words
from becket.app.record.step_logs import LOG, StepPlace
from becket.app.record.story import Story
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import DECISION, Step, StepState
from becket.kernel.contract.spec import PHASES, Phase

MOST_STEPS = 300
MOST_RECEIPTS = 6


@dataclass(frozen=True, slots=True)
class StepLine:
    """`state`: done, failed, undecided, or at work (without an end)."""

    place: StepPlace
    state: str
    seconds: float = 0.0
    attempts: int = 1
    raised: tuple[str, ...] = ()
    note: str = ""
    error: str = ""
    receipts: tuple[StoredReceipt, ...] = ()
    more_receipts: int = 0
    has_log: bool = False
    since: float | None = None
    by: str = ""  # the agent that is at work


@dataclass(frozen=True, slots=True)
class PhaseLine:
    name: str
    objective: str
    state: str
    seconds: float
    steps: tuple[StepLine, ...]
    skipped: tuple[tuple[str, str], ...]  # id, why
    decision: str


@dataclass(frozen=True, slots=True)
class IterationLine:
    number: int
    phases: tuple[PhaseLine, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """`left_out` steps are not among the iterations: the oldest ones."""

    iterations: tuple[IterationLine, ...]
    left_out: int
    without: int  # iterations that are not shown
    now: StepLine | None

    @property
    def longest(self) -> float:
        return max((phase.seconds for one in self.iterations for phase in one.phases), default=0.0)


def timeline_of(story: Story) -> Timeline:
    steps = story.steps[-MOST_STEPS:]
    now_at = current(story)
    now = _at_work(story, *now_at) if now_at is not None else None
    by_place: dict[tuple[int, Phase], list[Step]] = defaultdict(list)
    for step in steps:
        by_place[step.iteration, step.phase].append(step)
    if now is not None:
        by_place.setdefault((now.place.iteration, now.place.phase), [])
    left = _Left(story, steps)
    numbers = sorted({iteration for iteration, _ in by_place})
    found = tuple(
        IterationLine(
            number,
            tuple(_phase(story, left, by_place[number, phase], number, phase, now)
                  for phase in PHASES if (number, phase) in by_place),
        )
        for number in numbers
    )  # fmt: skip
    return Timeline(found, len(story.steps) - len(steps), story.without, now)


class _Left:
    """What steps left behind, looked up by their place."""

    def __init__(self, story: Story, steps: tuple[Step, ...]) -> None:
        shown = {digest for step in steps for digest in step.receipts}
        self.receipts: Mapping[str, StoredReceipt] = {
            item.digest: item for item in story.receipts if item.digest in shown
        }
        self.logs = {(ref.iteration, ref.phase, ref.action_id) for ref in story.artifacts if ref.name.endswith(LOG)}


def _at_work(story: Story, phase: Phase, step: str) -> StepLine:
    agents = ", ".join(call.agent for call in story.calls if call.end is None)
    place = StepPlace(story.run.iteration, phase, step)
    return StepLine(place, "at_work", since=began(story), by=agents, has_log=True)


def _phase(story: Story, left: _Left, steps: list[Step], number: int, phase: Phase, now: StepLine | None) -> PhaseLine:
    decision = next((step for step in steps if step.id == DECISION), None)
    worked = [step for step in steps if step is not decision and step.state is not StepState.skipped]
    lines = tuple(_step(step, left) for step in worked)
    here = now is not None and (now.place.iteration, now.place.phase) == (number, phase)
    if here and now is not None:
        lines = (*lines, now)
    said = decision.outputs if decision is not None else {}
    return PhaseLine(
        name=phase.value,
        objective=story.spec.phases[phase].objective if phase in story.spec.phases else "",
        state=_state(lines, here=here),
        seconds=sum(step.ended_at - step.started_at for step in worked),
        steps=lines,
        skipped=tuple((step.id, step.note) for step in steps if step.state is StepState.skipped),
        decision=decision_words(f"{said.get('outcome', '')}: {said.get('reason', '')}") if said else "",
    )


def _state(lines: tuple[StepLine, ...], *, here: bool) -> str:
    states = {line.state for line in lines}
    if here:
        return "at_work"
    return next((one for one in ("failed", "undecided") if one in states), "done" if lines else "skipped")


def _step(step: Step, left: _Left) -> StepLine:
    receipts = [left.receipts[digest] for digest in step.receipts if digest in left.receipts]
    undecided = step.state is StepState.failed and step.error_kind == "undecided"
    return StepLine(
        place=StepPlace(step.iteration, step.phase, step.id),
        state="undecided" if undecided else step.state.value,
        seconds=step.ended_at - step.started_at,
        attempts=step.attempts,
        raised=tuple(_raised(step)),
        note=step.note,
        error=f"{step.error_kind}: {step.error}" if step.error else "",
        receipts=tuple(receipts[:MOST_RECEIPTS]),
        more_receipts=max(len(receipts) - MOST_RECEIPTS, 0),
        has_log=(step.iteration, step.phase.value, step.id) in left.logs,
    )


def _raised(step: Step) -> Iterator[str]:
    yield from (condition.ref for condition in step.conditions)
