"""`becket watch`: the daemon that watches over commits, as one thing to start, stop and look at."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.daemon import down, up
from becket.cli.output import emit, note, say
from becket.cli.plain import Paint, digests_shortened, line, safe
from becket.cli.shape import AsJson, end, group

if TYPE_CHECKING:
    from becket.app.record.status import Snapshot
    from becket.app.watch import WatchOverview

watch = group("Watch over commits: the daemon as one thing to start, stop and look at.")


@watch.command("start")
def start(as_json: AsJson = False) -> None:
    """Start the daemon in the background: `becket up --detach`."""
    up(detach=True, as_json=as_json)


@watch.command("stop")
def stop(as_json: AsJson = False) -> None:
    """Stop the daemon and its watchdog: `becket down`."""
    down(as_json=as_json)


@watch.command("restart")
def restart(as_json: AsJson = False) -> None:
    """Stop it if it runs, and start it."""
    from becket.app import daemon
    from becket.app.state import find_state

    daemon.stop(find_state())
    up(detach=True, as_json=as_json)


@watch.command("status")
def status(as_json: AsJson = False) -> None:
    """Show whether it watches, what starts loops, how far they may go, and what is queued. Exit code 1: it is down."""
    from becket.app.record.status import take
    from becket.app.state import find_state
    from becket.app.watch import watched

    state = find_state()
    found, now = watched(state), take(state)
    if as_json:
        queue = {"running": now.running, "queued": now.queued, "waiting": now.waiting}
        emit(
            {
                "daemon": now.daemon,
                "watchdog": now.watchdog,
                "wanted": now.wanted,
                "autonomy": asdict(found.autonomy),
                "loops": [asdict(item) for item in found.loops],
                **{name: [asdict(run) for run in runs] for name, runs in queue.items()},
            }
        )
    else:
        for text in _told(found, now, Paint()):
            say(text)
    end(int(now.daemon is None))


def _told(found: WatchOverview, now: Snapshot, paint: Paint) -> Iterator[str]:
    from becket.cli.status_screen import daemon_words, queue_words

    yield f"{paint.dim('daemon')}    {daemon_words(now, paint)}"
    yield f"{paint.dim('autonomy')}  {_autonomy(found, paint)}"
    yield from ("", paint.bold("loops that commits start"))
    width = max((len(item.loop_id) for item in found.loops), default=0)
    for item in found.loops:
        about = f"{item.loop_id.ljust(width)}  on {', '.join(map(safe, item.branches))}"
        last = f"  last: {digests_shortened(line(item.last_subject, 60))}, {item.last_status}" if item.last_run else ""
        paused = paint.yellow("  paused") if item.paused else ""
        yield f"  {about}  {paint.dim(f'autonomy {item.autonomy}')}{paint.dim(last)}{paused}"
    if not found.loops:
        yield f"  {words.WATCH_NOTHING}"
    yield from queue_words(now, paint)


def _autonomy(found: WatchOverview, paint: Paint) -> str:
    now = found.autonomy
    return f"{now.allowed}{paint.yellow(now.why) if now.why else ''}"


@watch.command("logs")
def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the last lines.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Tell what the daemon and its watchdog did: commits seen, runs, restarts, alarms; in local time."""
    from becket.app.state import find_state
    from becket.app.watch import account, new_lines

    folder = find_state().logs
    found, tails = account(folder, lines)
    if as_json:
        emit({"file": str(folder / "daemon.log"), "lines": found})
        return
    if all(tail.file is None for tail in tails.values()):
        note(words.WATCH_NO_LOG.format(path=folder / "daemon.log"))
    paint = Paint()
    for text in found:
        say(_shown(text, paint))
    sys.stdout.flush()
    for text in new_lines(tails) if follow else ():
        say(_shown(text, paint))
        sys.stdout.flush()


_LINE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),\d{3} ([A-Z]+) becket\.(\w+)\S*: (.*)")


def _shown(text: str, paint: Paint) -> str:
    """A line of the log for a person: when, and what; what went wrong stands out."""
    found = _LINE.fullmatch(text)
    if found is None:
        return safe(text)
    day, at, level, part, said = found.groups()
    when = at if day == time.strftime("%Y-%m-%d") else f"{day} {at}"
    told = digests_shortened(safe(said))
    if level == "INFO":
        return f"{paint.dim(when)}  {told}"
    return f"{paint.dim(when)}  {paint.red(f'! {part}: {told}')}"
