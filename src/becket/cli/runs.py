"""`becket runs`: what happened and what is happening."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import columns, emit, note, say
from becket.cli.plain import clock, digests_shortened, safe, short, took, visible
from becket.cli.run import Everything, Follow, see, see_run
from becket.cli.shape import AsJson, NoWait, RunId, end, group, in_app, me
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.reasons import reason_words, wait_words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.record.story import Story
    from becket.kernel.contract.events import Event
    from becket.kernel.contract.run import Run

HEAD = ("run", "loop", "status", "began", "took", "subject", "reason")
TRIED = "gates_tried"
"""The condition that a trial of gates ends with."""

runs = group("Look at runs and their reports; cancel, retry or migrate them.")


@runs.command("list")
def list_(
    loop: Annotated[str | None, typer.Option("--loop", help="Only runs of this loop.")] = None,
    status: Annotated[list[str] | None, typer.Option("--status", help="Only these; may be repeated.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="Only runs about this.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""
    from becket.app.record.run_list import beginnings, handed_off, read_list, settled_ones
    from becket.app.state import find_state
    from becket.kernel.contract.run import RunStatus
    from becket.kernel.contract.store import RunFilter

    if stray := [name for name in status or () if name not in list(RunStatus)]:
        raise typer.BadParameter(f"{stray[0]!r} is not one of {', '.join(RunStatus)}", param_hint="--status")
    where = RunFilter(
        loop_id=loop, statuses=tuple(RunStatus(name) for name in status or ()), subject=subject, limit=limit
    )

    async def read(app: App) -> tuple[tuple[Run, ...], float]:
        return await app.store.list_runs(where), await app.store.now()

    found, now = read_list(find_state(), where) or in_app(read, tolerant=True)
    if as_json:
        emit([run.model_dump(mode="json") for run in found])
    elif not found:
        note(words.NO_SUCH_RUNS if loop or status or subject else words.NO_RUNS)
    else:
        ids = [run.run_id for run in found]
        short_ids = beginnings(find_state(), ids) if sys.stdout.isatty() else {}
        over = handed_off(find_state(), ids)
        if over is None:
            kept = in_app(lambda app: app.store.handoffs(), tolerant=True)
            over = settled_ones((item.run_id, item.state, item.note) for item in kept)
        rows = [_listed(run, short_ids.get(run.run_id, run.run_id), now, over.get(run.run_id, "")) for run in found]
        columns(HEAD, rows, drop=("took", "began"), cut="reason")


def _listed(run: Run, run_id: str, now: float, settled: str) -> tuple[str, ...]:
    tried = _tried(run)
    status = words.STATUS[run.status.value] + (", held" if run.held else "")
    status = words.TRIED if tried else words.SETTLED if settled else status
    waits = ", ".join(map(wait_words, run.waiting_on))
    reason = tried or digests_shortened(settled) or _proven(run) or reason_words(run.reason) or waits
    subject = digests_shortened(run.subject.name)
    subject = subject.partition("/")[0] if tried else subject  # its own id stands first in the row
    lasted = took((run.ended_at or now) - run.created_at)
    return (
        run_id, run.loop_id, status, clock(run.created_at, now), lasted, subject, reason,
    )  # fmt: skip


def _tried(run: Run) -> str:
    """What a trial of gates found: which of its steps are red."""
    found = run.detail.get(TRIED)
    if not isinstance(found, dict) or "red" not in found:
        return ""
    return f"red: {', '.join(map(str, found['red']))}" if found["red"] else "green"


def _proven(run: Run) -> str:
    """What a completed run found its branch to be."""
    found = run.detail.get("main_proven") if run.reason == "stop_conditions_met" else None
    if not isinstance(found, dict):
        return ""
    if found.get("instead_of"):
        return words.MOVED_ON
    return words.REPAIRED if found.get("repaired") else words.WAS_GREEN


@runs.command("show")
def show(
    run_id: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", help="See an open run through; without a daemon this command works on it.")
    ] = False,
    output: Annotated[str | None, typer.Option("--output", metavar="ID.NAME", help="Print one output.")] = None,
    log: Annotated[str | None, typer.Option("--log", metavar="ID", help="Print the log of one step.")] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="With --output or --log: as it was made, with what a terminal would obey."),
    ] = False,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Say how a run stands or ended; with --all, its whole story."""
    from becket.app.record.report.collect import read_report
    from becket.app.record.story import read_story
    from becket.cli.follow import print_end, print_story
    from becket.kernel.contract.state import state_seen

    story = in_app(lambda app: read_story(app, run_id), tolerant=not follow)
    if output is not None:
        say(_output(story, output, raw=raw))
    elif log is not None:
        sys.stdout.buffer.write(_log(story, log, raw=raw))
    elif follow:
        see_run(story.run.run_id, follow=True, as_json=as_json, everything=everything)
    elif as_json:
        from becket.app.record.shown import whole_run

        emit(whole_run(story).model_dump(mode="json"))
    elif everything:
        print_story(story, in_app(lambda app: read_report(app, story.run.run_id), tolerant=True))
        _say_where_reports_are(story.run.run_id)
    else:
        print_end(story, in_app(lambda app: read_report(app, story.run.run_id)))
        for seen in state_seen(story.events):
            if seen.changed:
                note(words.state_ref(seen))


def _say_where_reports_are(run_id: str) -> None:
    from becket.app.record.report.write import written
    from becket.app.state import find_state

    for path in written(find_state(), run_id)[:1]:
        note(words.REPORT_IS.format(path=path))


@runs.command("report")
def report(
    run_id: RunId,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file.")] = None,
    md: Annotated[Path | None, typer.Option("--md", metavar="FILE", help="Write Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report a run from its records: Markdown, unless told otherwise."""
    from becket.app.record.report.collect import read_report
    from becket.app.record.report.html import html_of
    from becket.app.record.report.markdown import markdown_of

    if html is not None and md is not None and html.resolve() == md.resolve():
        raise UsageError(words.SAME_FILE)
    found = in_app(lambda app: read_report(app, run_id), tolerant=True)
    for path, text in ((html, html_of), (md, markdown_of)):
        if path is not None:
            _write(path, text(found))
    if as_json:
        emit(found.model_dump(mode="json"))
    elif html is None and md is None:
        say(markdown_of(found).rstrip("\n"))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(words.cannot_write(str(path), error.strerror or str(error))) from None
    note(words.REPORT_WROTE.format(path=path))


def _output(story: Story, wanted: str, *, raw: bool) -> str:
    made = {
        f"{step.id}.{name}": value
        for step in story.steps
        if not step.id.startswith("@")
        for name, value in step.outputs.items()
    }
    if wanted not in made:
        raise UsageError(words.no_output(story.run.run_id, wanted, ", ".join(made)))
    value = made[wanted]
    if isinstance(value, str):
        return value if raw else _harmless(value)
    import json

    return json.dumps(value, indent=2, ensure_ascii=not raw)


def _harmless(text: str) -> str:
    """For a file or a pipe too: it is read with `cat` and `less -R` later. There tabs stay, for patches need them."""
    return safe(text) if sys.stdout.isatty() else visible(text)


def _log(story: Story, step: str, *, raw: bool) -> bytes:
    from becket.app.record.shown import logs_of

    logs = logs_of(story.receipts)
    if step not in logs:
        said = {item.id: item.outputs["said"] for item in story.steps if item.outputs.get("said")}
        if step not in said:
            raise UsageError(words.no_step(story.run.run_id, step, ", ".join((*logs, *said))))
        text = str(said[step]).rstrip("\n") + "\n"
        return (text if raw else _harmless(text)).encode()
    digest = logs[step]

    async def read(app: App) -> bytes:
        return app.artifacts.read(str(digest))

    content = in_app(read, tolerant=True)
    return content if raw else _harmless(content.decode(errors="replace")).encode()


@runs.command("events")
def events(
    run_id: RunId,
    after: Annotated[int, typer.Option("--after", min=0, max=10**9, help="Only events after this number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print a run's journal, one event per line."""
    from becket.cli.events import event_line

    async def read(app: App) -> tuple[tuple[Event, ...], float]:
        run = await app.store.get_run(run_id)
        return await app.store.events(run.run_id, after), await app.store.now()

    found, now = in_app(read, tolerant=True)
    if as_json:
        emit([event.model_dump(mode="json") for event in found])
        return
    for event in found:
        say(f"{event.seq:>4}  {short(event.digest)}  {event_line(event, now)}")


@runs.command("cancel")
def cancel(
    run_id: RunId,
    reason: Annotated[str, typer.Option("--reason", help="Kept in the journal.")] = "",
    no_wait: NoWait = False,
    as_json: AsJson = False,
) -> None:
    """Cancel a run; one at work stops its action and notifies."""

    async def stop(app: App) -> Run:
        from becket.app.desk import cancel, cancel_to_the_end

        # Whoever sees it through becomes the engine where there is none, and an engine needs its settings.
        return await (cancel if no_wait or app.trouble else cancel_to_the_end)(app, me(app), run_id, reason)

    print_cancelled(in_app(stop, sys.stderr if as_json else None, tolerant=True), as_json)


def print_cancelled(run: Run, as_json: bool) -> None:
    from becket.kernel.contract.run import ENDED, RunStatus

    if as_json:
        emit({"run": run.model_dump(mode="json")})
        return
    ended = words.CANCELLED if run.status is RunStatus.cancelled else words.ENDED_ALREADY
    text = ended if run.status in ENDED else words.CANCEL_ASKED
    say(text.format(run_id=run.run_id, status=words.STATUS[run.status.value]))


@runs.command("retry")
def retry(run_id: RunId, follow: Follow = None, everything: Everything = False, as_json: AsJson = False) -> None:
    """Start a new run on the same subject, with the loop's current spec."""
    from becket.app import desk

    see(in_app(lambda app: desk.retry(app, me(app), run_id)), follow, as_json, everything)


@runs.command("migrate")
def migrate(run_id: RunId, as_json: AsJson = False) -> None:
    """Move a waiting run to its loop's current spec."""
    from becket.app import desk

    run = in_app(lambda app: desk.migrate(app, me(app), run_id))
    if as_json:
        emit({"run": run.model_dump(mode="json")})
    else:
        say(words.MIGRATED.format(run_id=run.run_id, loop_id=run.loop_id, digest=short(run.spec_digest)))
    end(0)
