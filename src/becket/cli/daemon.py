"""`becket up`, `down` and the watchdog."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words
from becket.cli.output import emit, note, say
from becket.cli.shape import AsJson, end

if TYPE_CHECKING:
    from becket.app.state import StateFolder

GREETS_WITHIN = 15.0


def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Start it in the background and come back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the daemon: triggers, schedules and every queued run."""
    from becket.app import daemon
    from becket.app.state import find_state

    state = find_state()
    if not detach:
        end(daemon.run_foreground(state, partial(_say_up, state, as_json)))
        return
    started = daemon.start_detached(state, note)
    greetings = _greetings(state, GREETS_WITHIN)
    if as_json:
        emit(
            {"pid": started.pid, "watchdog": started.watchdog_pid, "already": started.already,
             "replaced": list(started.replaced), "said": list(greetings)}
        )  # fmt: skip
        return
    if started.replaced:
        say(words.UP_REPLACED.format(pids=" and ".join(map(str, started.replaced))))
    if started.already and not started.replaced:
        say(words.UP_ALREADY.format(pid=started.pid))
    elif started.watchdog_pid is None:
        say(words.UP_UNWATCHED.format(pid=started.pid, log=state.logs / "watchdog.log"))
    else:
        say(words.UP_STARTED.format(pid=started.pid, watchdog=started.watchdog_pid))
    for line in greetings:
        say(line)


def _greetings(state: StateFolder, within: float) -> tuple[str, ...]:
    """What parts have to say of what came up with it. One that fails is no reason to doubt the daemon."""
    from becket.app.parts import installed, loaded

    found: list[str] = []
    for part in installed():
        if part.greeting:
            try:
                found += [str(line) for line in loaded(part, part.greeting)(state, within)]
            except Exception as error:
                found.append(f"The part {part.name} cannot say what it did: {error}")
    return tuple(found)


def _say_up(state: StateFolder, as_json: bool) -> None:
    if as_json:
        emit({"pid": os.getpid(), "watchdog": None, "already": False})
        sys.stdout.flush()
    note(words.UP_FOREGROUND.format(pid=os.getpid()))
    for line in _greetings(state, 0.0):
        note(line)


def down(as_json: AsJson = False) -> None:
    """Stop the daemon and its watchdog, and see them gone."""
    from becket.app import daemon
    from becket.app.state import find_state

    stopped = daemon.stop(find_state())
    if as_json:
        emit(
            {"daemon": stopped.daemon and stopped.daemon.pid, "watchdog": stopped.watchdog and stopped.watchdog.pid,
             "killed": [one.pid for one in (stopped.daemon, stopped.watchdog) if one and one.killed]}
        )  # fmt: skip
        return
    parts = {"daemon": stopped.daemon, "watchdog": stopped.watchdog}
    what = ", ".join(
        f"{name} (pid {one.pid}{words.DOWN_KILLED if one.killed else ''})" for name, one in parts.items() if one
    )
    say(words.DOWN_DONE.format(what=what) if what else words.DOWN_NOTHING)


def watchdog(as_json: AsJson = False) -> None:
    """Be the second process that watches over the daemon."""
    from becket.app.state import find_state
    from becket.app.watchdog import run_watchdog

    end(run_watchdog(find_state()))
