"""What a run at work does now. The journal knows a step only when it is over."""

from __future__ import annotations

from collections.abc import Iterator

from becket.app.record.story import Story
from becket.kernel.contract.condition import Conditions
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import DECISION, RunStatus, StepState
from becket.kernel.contract.spec import CLOSING, PHASES, ActionSpec, LoopSpec, Phase, VerifierSpec
from becket.kernel.contract.when import WhenError, parse

_BEGINNINGS = (EventKind.iteration_started, EventKind.run_claimed, EventKind.run_woken)


def current(story: Story) -> tuple[Phase, str] | None:
    """What a run at work does now. The journal knows a step only when it is over: the spec says what comes next."""
    if story.run.status is not RunStatus.running:
        return None
    steps = [step for step in story.steps if step.iteration == story.run.iteration]
    known = {(step.phase, step.id) for step in steps}
    decided = any(step.id == DECISION for step in steps)
    diverted = decided or any(step.state is StepState.failed and step.phase not in CLOSING for step in steps)
    raised = Conditions(story.conditions)
    furthest = max((PHASES.index(step.phase) for step in steps), default=0)
    for phase in PHASES[furthest:]:
        if (diverted and phase not in CLOSING) or (decided and phase is not Phase.notify):
            continue
        for spec in steps_of(story.spec, phase):
            if (phase, spec.id) not in known and _holds(spec, raised):
                return phase, spec.id
    return None


def steps_of(spec: LoopSpec, phase: Phase) -> Iterator[ActionSpec | VerifierSpec]:
    yield from spec.phase(phase).actions
    yield from spec.phase(phase).verifiers


def _holds(spec: ActionSpec | VerifierSpec, raised: Conditions) -> bool:
    try:
        return spec.when is None or parse(spec.when).holds(raised.has)
    except WhenError:
        return True


def began(story: Story) -> float:
    """Since when the current step is at work: since the one before it was over."""
    ends = [step.ended_at for step in story.steps if step.iteration == story.run.iteration]
    starts = [event.at for event in story.events if event.kind in _BEGINNINGS]
    return max((*ends, *starts[-1:]), default=story.run.created_at)
