"""`becket handoffs`: what only a person or an outside system can finish."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import columns, emit, note, say
from becket.cli.plain import clock, digests_shortened, line, safe
from becket.cli.shape import AsJson, Note, group, in_app, me
from becket.kernel.contract.reasons import reason_words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.record.report.model import Report
    from becket.kernel.contract.handoff import Handoff, HandoffState

HandoffId = Annotated[str, typer.Argument(metavar="ID", help="See `becket handoffs list`; its beginning is enough.")]

HEAD = ("handoff", "state", "owner", "since", "run", "subject", "reason")
DROPPED = ("run", "since", "owner")
"""Columns that a narrow terminal does not get: `becket handoffs show` has them."""

handoffs = group("List and take what only a person can finish.", bare="list")


@handoffs.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Finished ones too.")] = False, as_json: AsJson = False
) -> None:
    """List handoffs that are open or taken."""
    from becket.kernel.contract.handoff import UNSETTLED

    states = () if everything else UNSETTLED

    async def read(app: App) -> tuple[tuple[Handoff, ...], float]:
        from becket.app.proposals import all_open

        await all_open(app)  # closes those that were merged by hand
        return await app.store.handoffs(states), await app.store.now()

    found, now = in_app(read, tolerant=True)
    if as_json:
        emit([item.model_dump(mode="json") for item in found])
    elif not found:
        note(words.NO_HANDOFFS)
    else:
        noted = everything and not sys.stdout.isatty()
        rows = [(*_listed(item, now), *((line(item.note, 100),) if noted else ())) for item in found]
        columns((*HEAD, "note") if noted else HEAD, rows, drop=DROPPED, cut="reason")


def _listed(item: Handoff, now: float) -> tuple[str, ...]:
    state = f"{item.state.value} by {item.taken_by}" if item.taken_by else item.state.value
    return (
        item.handoff_id, state, item.owner, clock(item.created_at, now), item.run_id, digests_shortened(item.subject),
        _why(item),
    )  # fmt: skip


def _why(item: Handoff) -> str:
    """On a terminal there is no room to tell of a settled one also what is over."""
    from becket.kernel.contract.handoff import SETTLED, UNSETTLED

    how = digests_shortened(item.note.removeprefix(SETTLED)) if item.state not in UNSETTLED else ""
    return how if how and sys.stdout.isatty() else reason_words(item.reason)


@handoffs.command("show")
def show(handoff_id: HandoffId, as_json: AsJson = False) -> None:
    """Show a handoff with its evidence and the next step."""
    from becket.app.record.report.collect import read_report
    from becket.cli.ending import print_ending
    from becket.cli.follow import paper
    from becket.kernel.contract.handoff import HandoffState

    async def read(app: App) -> tuple[Handoff, Report, float]:
        item = await app.store.get_handoff(handoff_id)
        return item, await read_report(app, item.run_id), await app.store.now()

    item, report, now = in_app(read, tolerant=True)
    if as_json:
        emit(item.model_dump(mode="json"))
        return
    say(f"{item.handoff_id}  {item.state.value}  for {safe(item.owner)}  since {clock(item.created_at, now)}")
    say(f"{item.loop_id}  {line(digests_shortened(item.subject))}  {item.run_id}")
    print_ending(paper(), report)
    if item.state in (HandoffState.done, HandoffState.declined) and item.note:
        say(safe(item.note))


@handoffs.command("take")
def take(handoff_id: HandoffId, note: Note = "", as_json: AsJson = False) -> None:
    """Say that you are on it."""
    from becket.kernel.contract.handoff import HandoffState

    item = _change(handoff_id, HandoffState.taken, note, as_json)
    if not as_json:
        say(words.TAKEN.format(handoff_id=item.handoff_id, by=item.taken_by, next_step=safe(item.next_step)))


@handoffs.command("done")
def done(handoff_id: HandoffId, note: Note = "", as_json: AsJson = False) -> None:
    """Say that it is finished."""
    from becket.kernel.contract.handoff import HandoffState

    item = _change(handoff_id, HandoffState.done, note, as_json)
    if not as_json:
        say(words.DONE.format(handoff_id=item.handoff_id))


def _change(handoff_id: str, state: HandoffState, note: str, as_json: bool) -> Handoff:
    from becket.app import desk

    item = in_app(lambda app: desk.change_handoff(app, me(app), handoff_id, state, note), tolerant=True)
    if as_json:
        emit(item.model_dump(mode="json"))
    return item
