"""What a person sees while a run is at work: what is done, what is being done, since when, and its last line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from becket.app.record.at_work import began, current
from becket.cli import words
from becket.cli.plain import clock, line, took
from becket.cli.story import UNICODE, Marks, boxes, head, marked_rows
from becket.cli.timeline import RowMark, TimelineRow, mark_of
from becket.kernel.contract.run import DECISION, Step, StepState

if TYPE_CHECKING:
    from becket.app.record.output_now import PrintedLine
    from becket.app.record.story import Story

AROUND = 7
"""Rows that are not steps: the head, the current step with its last line, and what keeps them apart."""


def live(story: Story, printed: PrintedLine | None, marks: Marks = UNICODE, height: int = 24) -> RenderableType:
    """What fits the terminal; the step at work stands last, so that it is never cut off."""
    parts: list[RenderableType] = [head(story), Text()]
    done = list(_done(story))
    room = max(height - AROUND, 0)
    parts.append(marked_rows(done[-room:] if room else [], marks))
    parts += [*boxes(story, marks)] if story.run.waiting_on else []
    if (now_at := current(story)) is not None:
        since = max(story.now - began(story), 0.0)
        row = TimelineRow(1, RowMark.current, now_at[1], _who(story), took(since), last=True)
        parts += [marked_rows([row], marks), Text(f"      {last_line(story, printed)}", "dim", no_wrap=True)]
    return Group(*parts)


def _done(story: Story) -> Iterator[TimelineRow]:
    """The steps of this iteration that ran, and of earlier ones that there was one."""
    if story.run.iteration > 1:
        yield TimelineRow(1, RowMark.decision, f"iteration {story.run.iteration}")
    for step in story.steps:
        if step.iteration != story.run.iteration or step.id == DECISION or step.state is StepState.skipped:
            continue
        if ran_nothing(step):
            continue
        said, seconds = step_words(step), step.ended_at - step.started_at
        if said or seconds >= 1.0:  # what is over at once and says nothing is no news
            yield TimelineRow(1, mark_of(step), step.id, said, took(seconds))


def ran_nothing(step: Step) -> bool:
    """A gate that becket.yaml does not have is green, and no news."""
    return any("nothing_to_run" in item.evidence for item in step.conditions)


def step_words(step: Step) -> str:
    """What came of a step, without what only a spec's author knows: `fast red, code red`."""
    if step.state is StepState.failed:
        return line(step.error or step.error_kind, 100)
    named = [words.condition(item.ref) for item in step.conditions]
    return line(", ".join(named) or step.note, 100)


def still(story: Story, printed: PrintedLine | None, now: float) -> str:
    """For a pipe that has heard nothing for long; nothing where no step is at work."""
    if (now_at := current(story)) is None:
        return ""
    said = last_line(story, printed)
    text = words.STILL.format(step=now_at[1], took=took(max(now - began(story), 0.0)), said=f": {said}" if said else "")
    return f"{clock(now, now)}  {text}"


def _who(story: Story) -> str:
    """The agent that is at work, if one is."""
    return ", ".join(call.agent for call in story.calls if call.end is None)


def last_line(story: Story, printed: PrintedLine | None) -> str:
    """Of the step at work: what an earlier one printed last says nothing of it."""
    return line(printed.text, 200) if printed is not None and printed.at >= began(story) - 1 else ""
