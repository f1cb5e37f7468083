"""`becket demo`: a real loop mends a real fault in a scratch repository, and the record is checked afterwards."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from becket.cli import words
from becket.cli.paper import emit, say
from becket.cli.plain import Paint, safe, short, took
from becket.cli.shape import AsJson, end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from becket.app.compose import App
    from becket.app.story import Story
    from becket.app.verify import Checked
    from becket.cli.follow import View

LOOP = "links"


def demo(
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Make the repository here and keep it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a small loop mend a scratch repository: no key, no network."""
    from becket.cli.demo.scratch import head, make

    began = time.monotonic()
    with _folder(keep) as folder:
        make(folder)
        before = head(folder)
        if not as_json:
            say(words.DEMO_REPO)
        story, checks = _run(folder, as_json)
        problem = _problem(story, checks, head(folder) == before)
        if as_json:
            emit(_document(story, checks, problem))
        else:
            _tell(story, checks, before)
            if keep is not None:
                say()
                say(words.DEMO_KEPT.format(folder=folder, run_id=story.run.run_id))
            say()
            told = words.DEMO_FAILED.format(why=problem) if problem else words.DEMO_END
            say(told.format(took=took(time.monotonic() - began)))
    end(int(bool(problem)))


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="becket-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, as_json: bool) -> tuple[Story, tuple[Checked, ...]]:
    from becket.app.compose import App
    from becket.app.state import find_state
    from becket.cli.follow import viewing

    state = find_state(folder)

    async def whole(view: View, console: TextIO) -> tuple[Story, tuple[Checked, ...]]:
        app = App.open(state, console)
        try:
            return await _see_and_check(app, view)
        finally:
            await app.store.close()

    async def introduced() -> None:
        app = App.open(state)
        try:
            _introduce(app)
        finally:
            await app.store.close()

    if not as_json:
        asyncio.run(introduced())
    with viewing(as_json) as (view, console):
        return asyncio.run(whole(view, console))


async def _see_and_check(app: App, view: View) -> tuple[Story, tuple[Checked, ...]]:
    from becket.app.desk import Wish, start
    from becket.app.verify import verify_run
    from becket.cli.follow import follow

    started = await start(app, Wish(loop_id=LOOP))
    assert started.run is not None
    story = await follow(app, started.run.run_id, view)
    return story, await verify_run(app, story.run.run_id, rerun=False)


def _introduce(app: App) -> None:
    holds = app.processes.holds()
    held = [name for name in ("files", "processes", "network") if name not in holds.missing]
    say(words.DEMO_SANDBOX.format(kind=holds.kind.value, held=", ".join(held) or "nothing"))
    say(words.DEMO_RUN.format(loop=LOOP, lines=len(app.loops.get(LOOP).text.splitlines())))
    say()


def _tell(story: Story, checks: tuple[Checked, ...], before: str) -> None:
    from becket.cli.follow import print_story
    from becket.cli.verify import print_checks

    if not sys.stdout.isatty():
        say()
    print_story(story)
    say()
    say(words.DEMO_PATCH)
    _print_patch(_patch(story))
    say()
    say(words.DEMO_MAIN.format(sha=short(before)))
    say(words.DEMO_VERIFY)
    print_checks(checks)


def _print_patch(patch: str) -> None:
    paint = Paint()
    for text in safe(patch).splitlines():
        added, removed = text.startswith("+"), text.startswith("-")
        say("  " + (paint.green(text) if added else paint.red(text) if removed else text))


def _patch(story: Story) -> str:
    found = [step.outputs["diff"] for step in story.steps if step.id == "patch" and "diff" in step.outputs]
    return str(found[-1]) if found else ""


def _problem(story: Story, checks: tuple[Checked, ...], main_untouched: bool) -> str:
    """What the demo promises, looked at afterwards; empty if all of it holds."""
    if story.run.status.value != "completed":
        return f"the run is {words.STATUS[story.run.status.value]} ({words.reason(story.run.reason)})"
    if not _patch(story):
        return "there is no patch"
    if not main_untouched:
        return "main moved"
    return "" if all(item.ok for item in checks) else "the record does not hold"


def _document(story: Story, checks: tuple[Checked, ...], problem: str) -> dict[str, object]:
    return {
        "ok": not problem, "problem": problem, "run": story.run.model_dump(mode="json"), "patch": _patch(story),
        "checks": [{"ok": item.ok, "what": item.what, "detail": item.detail} for item in checks],
    }  # fmt: skip
