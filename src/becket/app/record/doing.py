"""What is going on: runs at work with what they do this second, and runs that wait with what would move them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from becket.app.compose import App
from becket.app.record.output_now import PrintedLine, last_output
from becket.app.record.state_word import StateWord, waits_for_a_person, word_of
from becket.app.record.status import RunNow, Snapshot


class MovedBy(StrEnum):
    """What would make a run that does not move go on."""

    itself = "itself"  # it is at work
    nobody = "nobody"  # whoever had it is gone, or nobody is there to take it
    turn = "turn"
    person = "person"
    held = "held"
    pause = "pause"
    quota = "quota"
    clock = "clock"
    signal = "signal"


@dataclass(frozen=True, slots=True)
class Doing:
    """`about`: the agent whose quota it is, what is paused, or the signals. `at`: when, if anybody knows."""

    run: RunNow
    word: StateWord
    moved_by: MovedBy
    about: tuple[str, ...] = ()
    at: float | None = None
    since: float = 0.0
    command: str = ""
    said: PrintedLine | None = None


async def doing(app: App, now: Snapshot) -> tuple[Doing, ...]:
    """Those at work first."""
    found = [_stands(run, now) for run in (*now.running, *now.waiting, *now.queued)]
    return tuple(await asyncio.to_thread(lambda: [_with_output(app, one) for one in found]))


def _with_output(app: App, one: Doing) -> Doing:
    if one.word is not StateWord.working:
        return one
    said = last_output(app.places.of_run(one.run.run_id), app.state.folder / "setups")
    if said is None or said.at < one.run.since or not said.text:  # a set-up serves many runs
        return one
    return Doing(one.run, one.word, one.moved_by, one.about, one.at, one.since, one.command, said)


def _stands(run: RunNow, now: Snapshot) -> Doing:
    alone = run.nobody_since is not None
    word = word_of(run.status, run.waits_for, held=run.held, alone=alone)
    by, about, at, command = _moved(run, now)
    since = run.nobody_since if by is MovedBy.nobody and run.nobody_since is not None else run.since
    return Doing(run, word, by, about, at, since, command)


def _moved(run: RunNow, now: Snapshot) -> tuple[MovedBy, tuple[str, ...], float | None, str]:
    follow = f"becket runs show {run.run_id} --follow"
    paused = next((item.scope for item in now.paused if item.scope in ("all", f"loop:{run.loop_id}")), "")
    if run.held:
        return MovedBy.held, (), None, f"becket hold {run.run_id} --off"
    if run.status == "queued" and paused:
        return MovedBy.pause, (paused,), None, _resume(paused)
    if run.status == "running":
        return (MovedBy.nobody, (), None, follow) if run.nobody_since is not None else (MovedBy.itself, (), None, "")
    if run.status == "queued":
        return (MovedBy.turn, (), None, "") if run.nobody_since is None else (MovedBy.nobody, (), None, follow)
    return _waited_for(run, now, follow)


def _waited_for(run: RunNow, now: Snapshot, follow: str) -> tuple[MovedBy, tuple[str, ...], float | None, str]:
    due = min((at for at in (run.looks_at, run.until) if at is not None), default=now.now)
    if due < now.now and now.engine is None:
        return MovedBy.nobody, (), None, follow
    if run.quota is not None:
        return MovedBy.quota, (run.quota.agent,), run.quota.back, ""
    if any(map(waits_for_a_person, run.waits_for)):
        return MovedBy.person, (), run.until, ""
    if run.looks_at is not None:
        return MovedBy.clock, (), run.looks_at, ""
    return MovedBy.signal, run.wakes_on, run.until, ""


def _resume(scope: str) -> str:
    return "becket pause --off" if scope == "all" else f"becket pause {scope.removeprefix('loop:')} --off"
