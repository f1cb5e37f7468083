"""`becket event`: something happened outside; loops may listen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.approvals import carry_on
from becket.cli.output import emit, note, say
from becket.cli.shape import AsJson, NoWait, With, in_app, me, pairs

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.run import Run, Started


def event(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The event's name, such as ci.failed.")],
    with_: With = None,
    event_id: Annotated[str | None, typer.Option("--id", help="The same id again starts nothing twice.")] = None,
    no_wait: NoWait = False,
    as_json: AsJson = False,
) -> None:
    """Post an event that loops may listen to."""
    data = pairs(with_)

    async def post(app: App) -> tuple[str, tuple[Started, ...], tuple[Run, ...]]:
        from becket.app.desk import post_event

        known, started = await post_event(app, me(app), name, data, event_id)
        runs = [item.run.run_id for item in started if item.run is not None]
        for run_id in () if no_wait else runs:
            await carry_on(app, run_id)
        return known, started, tuple([await app.store.get_run(run_id) for run_id in runs])

    known, started, runs = in_app(post, sys.stderr if as_json else None)
    if as_json:
        answers = [{"created": item.created, "dropped": item.dropped} for item in started]
        emit({"event_id": known, "runs": [run.model_dump(mode="json") for run in runs], "starts": answers})
    elif not started:
        note(words.EVENT_NOBODY.format(event_id=known, name=name))
    else:
        created = any(item.created for item in started)
        say((words.EVENT_STARTED if created else words.EVENT_WHERE).format(event_id=known))
        for run in runs:
            said = {"run_id": run.run_id, "loop_id": run.loop_id, "subject": run.subject.name}
            say(f"  {words.STARTED.format(**said)}  {words.STATUS[run.status.value]}")
