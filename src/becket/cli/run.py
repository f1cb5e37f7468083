"""`becket run`: start a run, or join the one that is there, and see it through."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import emit, note
from becket.cli.shape import AsJson, With, end, in_app, me, pairs
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.reasons import wait_words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.record.report.model import Report
    from becket.app.record.story import Story
    from becket.kernel.contract.run import Run, Started

Code = Callable[["Run"], int]
Level = Annotated[str | None, typer.Option("--autonomy", help="At most observe, propose, merge or release.")]
Follow = Annotated[
    bool | None,
    typer.Option(
        "--follow/--no-follow", help="Follow it until it ends or waits; without either: unless a daemon works on it."
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Every step, condition and receipt.")]


def run(
    loop: Annotated[str, typer.Argument(metavar="LOOP", help="See `becket loops list`.")],
    subject: Annotated[
        str | None, typer.Option("--subject", help="What the run is about; else the loop's own.")
    ] = None,
    with_: With = None,
    base_sha: Annotated[
        str | None,
        typer.Option(
            "--base-sha", metavar="REVISION", help="The commit the run is about: HEAD~1, or the beginning of its hash."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do all that is local; call no agent, let nothing out.")
    ] = False,
    autonomy: Level = None,
    follow: Follow = None,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Start a run of a loop and follow it."""
    from becket.app.desk import RunRequest, start
    from becket.kernel.contract.spec import Autonomy

    if autonomy is not None and autonomy not in list(Autonomy):
        raise typer.BadParameter(f"{autonomy!r} is not one of {', '.join(Autonomy)}", param_hint="--autonomy")
    if base_sha is not None and subject is not None:
        raise UsageError(words.TWO_SUBJECTS)
    wish = RunRequest(
        loop_id=loop, subject=subject, sha=base_sha, inputs=pairs(with_), dry_run=dry_run,
        autonomy=Autonomy(autonomy) if autonomy else None,
    )  # fmt: skip

    async def begin(app: App) -> Started:
        started = await start(app, me(app), wish)
        if started.run is not None:
            await _say_which_branch(app, started.run)
        return started

    see(in_app(begin), follow, as_json, everything)


async def _say_which_branch(app: App, run: Run) -> None:
    """A loop judges the branch of becket.yaml, whatever is checked out, unless that does not hold the commit."""
    from becket.kernel.contract.naming import alone

    refs = await app.git.refs()
    branch, here = run.subject.fields.get("branch"), refs.get("HEAD", "").partition("refs/heads/")[2]
    if branch and here and branch not in (here, alone(str(run.subject.fields.get("sha")))):
        theirs, ours = refs.get(f"refs/heads/{branch}"), refs.get(f"refs/heads/{here}")
        own = theirs and ours and not await app.git.contains(theirs, ours)
        mend = words.OTHER_BRANCH_MEND.format(loop=run.loop_id) if own else ""
        note(words.OTHER_BRANCH.format(branch=branch, here=here, mend=mend))


def see(
    started: Started, follow: bool | None, as_json: bool, everything: bool = False, code: Code | None = None
) -> None:
    """What came of a start: nothing, a run to leave to the daemon, or a run to follow."""
    if started.run is None:
        if as_json:
            emit({"run": None, "created": False, "dropped": started.dropped, "superseded": list(started.superseded)})
        note(words.DROPPED.format(why=started.dropped))
        end(1)
        return
    for other in started.superseded:
        note(words.SUPERSEDED.format(run_id=other))
    if not started.created:
        over = started.run.ended_at is not None
        said = {"run_id": started.run.run_id, "subject": started.run.subject.name}
        status = words.STATUS[started.run.status.value]
        note((words.READY_ALREADY if over else words.ALREADY).format(status=status, **said))
        follow = True if over else follow
    see_run(started.run.run_id, follow, as_json, created=started.created, everything=everything, code=code)


def see_run(
    run_id: str,
    follow: bool | None,
    as_json: bool,
    created: bool = False,
    everything: bool = False,
    code: Code | None = None,
) -> None:
    """`code` says how a run that was followed counts, where not every open end is good enough."""
    from becket.app.record.report.collect import read_report
    from becket.cli.follow import code_of, print_end, print_story, viewing
    from becket.cli.follow import follow as follow_run

    if not _to_follow(follow):
        _leave(run_id, as_json, created)
        return

    async def whole(app: App) -> tuple[Story, list[str], Report | None]:
        story, notes = await follow_run(app, run_id, view), await why_it_rests(app, run_id)
        return story, notes, None if as_json else await read_report(app, run_id)

    with viewing(as_json, everything) as (view, console):
        story, notes, report = in_app(whole, console)
    for text in notes:
        note(text)
    if report is None:
        emit(document(story, created))
    else:
        (print_story if everything else print_end)(story, report)
    end((code or code_of)(story.run))


def _to_follow(follow: bool | None) -> bool:
    from becket.app.desk import daemon_is_up
    from becket.app.state import find_state

    return follow if follow is not None else not daemon_is_up(find_state())


def _leave(run_id: str, as_json: bool, created: bool) -> None:
    from becket.app.desk import daemon_is_up
    from becket.app.liveness import engine_trouble
    from becket.app.record.story import read_story
    from becket.app.state import find_state

    story = in_app(lambda app: read_story(app, run_id))
    if as_json:
        emit(document(story, created))
        return
    print(run_id)
    state = find_state()
    text = words.QUEUED_BEHIND_DAEMON if daemon_is_up(state) else words.QUEUED_FOR_NOBODY
    note(engine_trouble(state) or text.format(run_id=run_id))


async def why_it_rests(app: App, run_id: str) -> list[str]:
    """A run that neither ended nor is at work: who or what keeps it from moving, and how to go on. And what else
    nobody works on.
    """
    from becket.app.desk import daemon_is_up
    from becket.app.driving import first_of_group, others_queued, paused_by
    from becket.cli.plain import who
    from becket.kernel.contract.run import RunStatus

    run, brake = await app.store.get_run(run_id), None
    notes = [words.others(count)] if (count := await others_queued(app, (run.run_id,))) else []
    if run.status is RunStatus.queued:
        brake = await paused_by(app, run.loop_id)
    if run.held:
        notes.append(words.HELD.format(run_id=run.run_id))
    elif brake is not None:
        notes.append(
            words.PAUSED.format(
                run_id=run.run_id, scope=words.scope(brake.scope), by=who(brake.by, brake.via),
                note=f" ({brake.note})" if brake.note else "", command=words.pause_command(brake.scope),
            )
        )  # fmt: skip
    elif (first := await first_of_group(app, run)) is not None:
        notes.append(words.BEHIND.format(run_id=run.run_id, other=first.run_id, subject=first.subject.name))
    elif run.status is RunStatus.waiting and not daemon_is_up(app.state):
        notes.append(await _waits_alone(app, run))
    return notes


async def _waits_alone(app: App, run: Run) -> str:
    from becket.cli.plain import clock
    from becket.kernel.contract.events import EventKind

    if asked := [item for item in await app.store.approvals(open_only=True) if item.run_id == run.run_id]:
        return words.WAITS_FOR_YES.format(run_id=run.run_id, approval_id=asked[0].approval_id)
    told = [event for event in await app.store.events(run.run_id) if event.kind is EventKind.run_waiting][-1]
    at, waits = await app.store.now(), told.data["waits"]
    what = " and ".join(wait_words(name) for name in run.waiting_on)
    due = {"due": clock(min(row["due"] for row in waits), at), "what": what}
    return words.WAITS_ALONE.format(run_id=run.run_id, **due)


def document(story: Story, created: bool = False) -> dict[str, object]:
    """What `becket run --json` prints: how the run stands, and what a person may do about it."""
    return {
        "run": story.run.model_dump(mode="json"),
        "created": created,
        "outputs": {step.id: step.outputs for step in story.steps if step.outputs and not step.id.startswith("@")},
        "conditions": [item.ref for item in story.conditions],
        "approvals": [item.model_dump(mode="json") for item in story.approvals],
        "handoffs": [item.model_dump(mode="json") for item in story.handoffs],
    }
