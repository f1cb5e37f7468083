"""Follow a run to where it rests: a live view on a terminal, a line per event in a pipe, silence for --json."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, Self, TextIO, cast

from becket.cli import words
from becket.cli.shape import Interrupted, me
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import ENDED, Run, RunStatus

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from becket.app.compose import App
    from becket.app.record.output_now import PrintedLine
    from becket.app.record.report.model import Report
    from becket.app.record.story import Story
    from becket.cli.story import Marks

WIDEST, PIPE_WIDTH = 110, 100
NOISE = frozenset({EventKind.child_started, EventKind.child_ended, EventKind.step_skipped})
"""Events that tell of processes and of what was left out; `becket runs events` has them."""
QUIET_FOR = 30.0
"""Seconds after which a pipe is told that a step is still at work."""


class View(Protocol):
    def tell(self, story: Story) -> None:
        """Called whenever the story has grown."""
        ...

    def hear(self, printed: PrintedLine | None) -> None:
        """Called now and then with the last line that a program of the run printed."""
        ...


async def follow(app: App, run_id: str, view: View) -> Story:
    """See the run through, as the engine if there is none, and tell its story meanwhile."""
    from becket.app.driving import see_through
    from becket.app.record.output_now import watch_output
    from becket.app.record.story import read_story, watch_story

    watchers = asyncio.gather(watch_story(app, run_id, view.tell), watch_output(app, run_id, view.hear))
    try:
        await see_through(app, me(app), (run_id,))
    except asyncio.CancelledError:
        raise Interrupted(words.LEFT.format(run_id=run_id)) from None
    finally:
        watchers.cancel()
        await asyncio.gather(watchers, return_exceptions=True)
    story = await read_story(app, run_id)
    view.tell(story)
    return story


class SilentView:
    """For --json."""

    def tell(self, story: Story) -> None:
        pass

    def hear(self, printed: PrintedLine | None) -> None:
        pass


class LineView:
    """For pipes: a line for each event that people care about, or for each there is; and one now and then."""

    def __init__(self, out: TextIO, everything: bool = False) -> None:
        self._out, self._told, self._everything = out, 0, everything
        self.story: Story | None = None
        self._said_at = time.monotonic()

    def tell(self, story: Story) -> None:
        from becket.cli.events import event_line, plain_line
        from becket.cli.live import ran_nothing

        self.story = story
        quiet = {step.id for step in story.steps if ran_nothing(step)}
        for event in story.events:
            if event.seq > self._told:
                self._told = event.seq
                if not self._everything and event.data.get("id") in quiet:
                    continue
                if not self._everything:
                    self._say(plain_line(event, story.now))
                elif event.kind not in NOISE:
                    self._say(event_line(event, story.now))

    def hear(self, printed: PrintedLine | None) -> None:
        from becket.cli.live import still

        if self.story is not None and time.monotonic() - self._said_at >= QUIET_FOR:
            self._say(still(self.story, printed, time.time()))

    def _say(self, text: str) -> None:
        if text:
            self._said_at = time.monotonic()
            print(text, file=self._out, flush=True)


class ScreenView:
    """For terminals: the story so far, drawn again a few times a second so that the clock moves."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self.story: Story | None = None
        self._printed: PrintedLine | None = None
        self._console, self._marks = console, marks_for(console)
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=5, transient=True)

    def tell(self, story: Story) -> None:
        self.story = story

    def hear(self, printed: PrintedLine | None) -> None:
        self._printed = printed

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        from dataclasses import replace

        from becket.cli.live import live

        if self.story is None:
            return ""
        # The store's time and this machine's may differ; only the time since the last look is added.
        now = replace(self.story, now=max(self.story.now, time.time()))
        return live(now, self._printed, self._marks, self._console.height)


def paper() -> Console:
    """A console that never wraps wider than is good to read, and writes no escape codes into a pipe."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    measured = Console(highlight=False, markup=False, emoji=False, force_terminal=terminal)
    width = min(measured.width, WIDEST) if terminal else PIPE_WIDTH
    return Console(
        highlight=False, markup=False, emoji=False, force_terminal=terminal, width=width, soft_wrap=False,
        no_color=True if "NO_COLOR" in os.environ or not terminal else None,
    )  # fmt: skip


def marks_for(console: Console) -> Marks:
    from becket.cli.story import ASCII, UNICODE

    return UNICODE if console.encoding.lower().replace("-", "").startswith("utf") else ASCII


@contextlib.contextmanager
def viewing(as_json: bool, everything: bool = False) -> Iterator[tuple[View, TextIO]]:
    """The right view, and where notices of the loop go while it shows."""
    if as_json:
        yield SilentView(), sys.stderr
    elif sys.stdout.isatty():
        from rich.file_proxy import FileProxy

        console = paper()
        with ScreenView(console) as screen:
            above = cast("TextIO", FileProxy(console, sys.stdout))
            yield screen, above if everything else cast("TextIO", Notices(above, screen))
    else:
        lines = LineView(sys.stdout, everything)
        yield lines, sys.stdout if everything else cast("TextIO", Notices(sys.stdout, lines))


class Notices:
    """What a loop says on the console. That the run is over is left to the end, which says more."""

    def __init__(self, out: TextIO, view: ScreenView | LineView) -> None:
        self._out, self._view = out, view

    def write(self, text: str) -> int:
        subject = self._view.story.run.subject.name if self._view.story is not None else ""
        bare = subject and re.fullmatch(rf"{re.escape(subject)}: \w+ \([^\n]+\)\s*", text)
        return len(text) if bare else self._out.write(text)

    def flush(self) -> None:
        self._out.flush()


def print_story(story: Story, report: Report | None = None) -> None:
    from becket.cli.story import render_story

    console = paper()
    console.print(render_story(story, marks_for(console), report))


def print_end(story: Story, report: Report) -> None:
    """What is so and what to do now; of a run that is not over, what it waits for."""
    from becket.cli.ending import print_ending
    from becket.cli.story import boxes, status_words

    console = paper()
    if report.end is not None:
        print_ending(console, report)
        return
    console.print(f"{story.run.run_id}  {status_words(story)}", soft_wrap=True)
    for box in boxes(story, marks_for(console)):
        console.print(box)


def code_of(run: Run) -> int:
    """0: done, or not over yet; 1: it ended without its goal."""
    return int(run.status in ENDED and run.status not in (RunStatus.completed, RunStatus.completed_dry_run))
