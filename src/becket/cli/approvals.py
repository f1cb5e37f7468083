"""`becket approvals`, `approve`, `deny`, `revoke`: decisions of people, bound to exactly what was asked."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import columns, emit, note, say, show_patch
from becket.cli.plain import clock, line, safe, short, visible
from becket.cli.shape import AsJson, Note, NoWait, group, in_app, me

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.record.questions import Question
    from becket.kernel.contract.handoff import Approval
    from becket.kernel.contract.run import Run

ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="See `becket approvals list`; its beginning is enough.")]
About = Annotated[str | None, typer.Option("--about", help="Refuse unless it is about exactly this hash.")]

approvals = group("List what waits for a decision, or show what one is about.", bare="list")


@approvals.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Decided ones too.")] = False, as_json: AsJson = False
) -> None:
    """List open approvals with the commands that decide them."""

    async def read(app: App) -> tuple[tuple[Approval, ...], float]:
        return await app.store.approvals(open_only=not everything), await app.store.now()

    found, now = in_app(read, tolerant=True)
    if as_json:
        emit([item.model_dump(mode="json") for item in found])
    elif not found:
        note(words.NO_APPROVALS)
    else:
        head = ("approval", "state", "role", "about", "until", "run", "question")
        columns(head, [_listed(item, now) for item in found], drop=("run", "about", "role", "state"))


def _listed(item: Approval, now: float) -> tuple[str, ...]:
    return (
        item.approval_id, item.state.value, item.role, short(item.bound_to), clock(item.expires_at, now), item.run_id,
        line(item.question.strip().partition("\n")[0], 160),
    )  # fmt: skip


@approvals.command("show")
def show(
    approval_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Its or its run's id, or the beginning; without it: the only open one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a question with the whole change it is about, and the commands that decide it."""
    from becket.app.record.questions import read_question

    async def read(app: App) -> tuple[Question, float]:
        return await read_question(app, approval_id), await app.store.now()

    asked, now = in_app(read, tolerant=True)
    item = asked.approval
    if as_json:
        change = {
            "base": asked.base,
            "candidate": asked.candidate,
            "diff": asked.diff.decode(errors="replace"),
            "text": asked.text,
        }
        emit({**item.model_dump(mode="json"), **change})
        return
    if question := safe(item.question).strip():
        say(question)
    if asked.diff:
        show_patch(asked.diff)
    elif asked.text.strip() and asked.text.strip() not in item.question:
        say(f"{words.ASKED_TEXT}\n{visible(asked.text).rstrip()}")
    about = {"about": short(item.bound_to), "role": item.role, "until": clock(item.expires_at, now)}
    state = words.STILL_ASKED if item.state == "asked" else item.state.value
    say(words.ASKED_ABOUT.format(approval_id=item.approval_id, run_id=item.run_id, state=state, **about))
    if item.state == "asked":
        say(words.DECIDE_IT.format(approval_id=item.approval_id))


def approve(
    approval_id: ApprovalId, about: About = None, note: Note = "", no_wait: NoWait = False, as_json: AsJson = False
) -> None:
    """Say yes to what a run asks."""
    from becket.app.desk import decide

    _decide(lambda app: decide(app, me(app), approval_id, True, about, note), no_wait, as_json)


def deny(
    approval_id: ApprovalId, about: About = None, note: Note = "", no_wait: NoWait = False, as_json: AsJson = False
) -> None:
    """Say no to what a run asks."""
    from becket.app.desk import decide

    _decide(lambda app: decide(app, me(app), approval_id, False, about, note), no_wait, as_json)


def revoke(approval_id: ApprovalId, note: Note = "", no_wait: NoWait = False, as_json: AsJson = False) -> None:
    """Take an approval back before it is used."""
    from becket.app.desk import revoke

    _decide(lambda app: revoke(app, me(app), approval_id, note), no_wait, as_json)


def _decide(deciding: Callable[[App], Awaitable[Approval]], no_wait: bool, as_json: bool) -> None:
    from becket.app.record.report.collect import read_report
    from becket.app.record.story import read_story
    from becket.cli.follow import print_end

    async def decide(app: App) -> tuple[Approval, Run]:
        decided = await deciding(app)
        if not as_json:
            about = short(decided.bound_to)
            say(words.DECIDED.format(approval_id=decided.approval_id, state=decided.state.value, about=about))
        if not no_wait:
            await carry_on(app, decided.run_id)
        return decided, await app.store.get_run(decided.run_id)

    approval, run = in_app(decide, sys.stderr if as_json else None)
    if as_json:
        emit({"approval": approval.model_dump(mode="json"), "run": run.model_dump(mode="json")})
        return
    story = in_app(lambda app: read_story(app, run.run_id))
    print_end(story, in_app(lambda app: read_report(app, run.run_id)))
    if run.ended_at is None:
        say(words.WATCH_IT.format(run_id=run.run_id))


async def carry_on(app: App, run_id: str) -> None:
    """Where no daemon runs, a woken run would lie there until somebody came by: see it through."""
    from becket.app.desk import daemon_is_up
    from becket.app.driving import see_through

    if not daemon_is_up(app.state):
        await see_through(app, me(app), (run_id,))
