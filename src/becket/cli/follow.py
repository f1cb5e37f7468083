"""Follow a run to where it rests: a live view on a terminal, a line per event in a pipe, silence for --json."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, Self, TextIO, cast

from becket.cli import words
from becket.cli.shape import Interrupted
from becket.contract.events import Kind
from becket.contract.run import ENDED, Run, Status

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from becket.app.compose import App
    from becket.app.report.model import Report
    from becket.app.story import Story
    from becket.cli.story import Marks

WIDEST, PIPE_WIDTH = 110, 100
NOISE = frozenset({Kind.child_started, Kind.child_ended, Kind.step_skipped})
"""Events that tell of processes and of what was left out; `becket runs events` has them."""


class View(Protocol):
    def tell(self, story: Story) -> None:
        """Called whenever the story has grown."""
        ...


async def follow(app: App, run_id: str, view: View) -> Story:
    """See the run through, as the engine if there is none, and tell its story meanwhile."""
    from becket.app.driving import see_through
    from becket.app.story import read_story, watch_story

    watcher = asyncio.create_task(watch_story(app, run_id, view.tell))
    try:
        await see_through(app, (run_id,))
    except asyncio.CancelledError:
        raise Interrupted(words.LEFT.format(run_id=run_id)) from None
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
    story = await read_story(app, run_id)
    view.tell(story)
    return story


class Silent:
    """For --json."""

    def tell(self, story: Story) -> None:
        pass


class Lines:
    """For pipes: one line per event, told once."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._told = out, 0

    def tell(self, story: Story) -> None:
        from becket.cli.events import event_line

        for event in story.events:
            if event.seq > self._told:
                self._told = event.seq
                if event.kind not in NOISE:
                    print(event_line(event, story.now), file=self._out, flush=True)


class Screen:
    """For terminals: the story so far, drawn again a few times a second so that the clock moves."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._story: Story | None = None
        self._marks = marks_for(console)
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=5, transient=True)

    def tell(self, story: Story) -> None:
        self._story = story

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        from dataclasses import replace
        from time import time

        from becket.cli.story import live

        if self._story is None:
            return ""
        # The store's time and this machine's may differ; only the time since the last look is added.
        return live(replace(self._story, now=max(self._story.now, time())), self._marks)


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
def viewing(as_json: bool) -> Iterator[tuple[View, TextIO]]:
    """The right view, and where notices of the loop go while it shows."""
    if as_json:
        yield Silent(), sys.stderr
    elif sys.stdout.isatty():
        from rich.file_proxy import FileProxy

        console = paper()
        with Screen(console) as screen:
            yield screen, cast("TextIO", FileProxy(console, sys.stdout))
    else:
        yield Lines(sys.stdout), sys.stdout


def print_story(story: Story, report: Report | None = None) -> None:
    from becket.cli.story import told

    console = paper()
    console.print(told(story, marks_for(console), report))


def print_end(story: Story, report: Report | None = None) -> None:
    """After the view: on a terminal the whole story; in a pipe the run's name, its end and what to do now."""
    if sys.stdout.isatty():
        print_story(story, report)
        return
    from becket.cli.story import boxes, status_words

    console = paper()
    print(f"{story.run.run_id}  {status_words(story)}", flush=True)
    for box in boxes(story, marks_for(console)):
        console.print(box)


def code_of(run: Run) -> int:
    """0: done, or not over yet; 1: it ended without its goal."""
    return int(run.status in ENDED and run.status not in (Status.completed, Status.completed_dry_run))
