"""`becket pause`, `hold`, `drop`: keep things from going on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.approvals import carry_on
from becket.cli.output import emit, say
from becket.cli.shape import AsJson, Note, NoWait, RunId, in_app, me

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.run import Run

Off = Annotated[bool, typer.Option("--off", help="Let go again.")]


def pause(
    loop: Annotated[str | None, typer.Argument(metavar="[LOOP]", help="Without it: all loops.")] = None,
    off: Off = False,
    note: Note = "",
    as_json: AsJson = False,
) -> None:
    """Keep one loop, or all of them, from starting anything."""
    from becket.app import desk

    controls = in_app(lambda app: desk.pause(app, me(app), loop, not off, note), tolerant=True)
    if as_json:
        emit({"paused": [item.model_dump(mode="json") for item in controls]})
        return
    scope = "all" if loop is None else f"loop:{loop}"
    text = words.PAUSE_OFF if off else words.PAUSE_ON
    say(text.format(scope=words.scope(scope), command=words.pause_command(scope)))


def hold(run_id: RunId, off: Off = False, no_wait: NoWait = False, as_json: AsJson = False) -> None:
    """Keep one run from going on."""

    async def change(app: App) -> Run:
        from becket.app.desk import hold

        run = await hold(app, me(app), run_id, not off)
        if off and not no_wait:
            await carry_on(app, run.run_id)
        return await app.store.get_run(run.run_id)

    console = sys.stderr if as_json else None
    _told(in_app(change, console, tolerant=not off), words.HOLD_OFF if off else words.HOLD_ON, as_json)


def drop(run_id: RunId, as_json: AsJson = False) -> None:
    """Give up a run that waits or is queued."""
    from becket.app import desk

    _told(in_app(lambda app: desk.drop(app, me(app), run_id), tolerant=True), words.DROPPED_RUN, as_json)


def _told(run: Run, text: str, as_json: bool) -> None:
    if as_json:
        emit({"run": run.model_dump(mode="json")})
    else:
        say(text.format(run_id=run.run_id))
