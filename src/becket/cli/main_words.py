"""One line on the branch that matters: is it green, at which commit, proven when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.app.record.main_now import GREEN, JUDGED_NOW, QUEUED, RED
from becket.cli.plain import line, short, took
from becket.kernel.contract.reasons import reason_words

if TYPE_CHECKING:
    from becket.app.record.main_now import MainNow


def main_line(main: MainNow, now: float) -> str:
    branch, head = line(main.branch, 60), short(main.head)
    if main.state == GREEN:
        how = ", repaired" if main.repaired else ""
        return f"{branch} is green at {head}{how} (proven {ago(main.at, now)} by {main.loop_id}, {main.run_id})"
    if main.state == RED:
        return f"{branch} is red at {head}{_failing(main)}{_whose(main)}{_since(main)}"
    if main.state in (JUDGED_NOW, QUEUED):
        return f"{branch} at {head} {_judged(main, now)}{_since(main)}"
    if main.run_id:
        why = reason_words(main.reason) if main.reason else f"its run waits, becket runs show {main.run_id}"
        return f"{branch} at {head} is not decided: {why}{_whose(main)}{_since(main)}"
    return f"{branch} at {head} is not judged yet{_since(main)}"


def _judged(main: MainNow, now: float) -> str:
    began = f"(began {ago(main.at, now)})"
    if main.alone:
        how = "is queued and" if main.state == QUEUED else "was interrupted:"
        return f"is not judged yet: {main.run_id} {how} nobody works on it; becket runs show {main.run_id} --follow"
    return f"waits for {main.run_id} {began}" if main.state == QUEUED else f"is being judged by {main.run_id} {began}"


def _failing(main: MainNow) -> str:
    if not main.failing:
        return ""
    return f": {main.failing} failing {'test' if main.failing == 1 else 'tests'}"


def _whose(main: MainNow) -> str:
    if main.open and main.alone:
        return f"; nobody works on {main.run_id}: becket runs show {main.run_id} --follow"
    if main.open:
        rests = {"waiting": f" waits: becket runs show {main.run_id}", "queued": " is queued again"}
        return f"; {main.run_id}{rests.get(main.open, ' is at work on it')}"
    if main.ready:
        return f"; a proven repair is ready: becket proposals show {main.run_id}"
    return f"; handed to {line(main.owner, 40)}" if main.owner else ""


def _since(main: MainNow) -> str:
    if not main.last_green:
        return ""
    behind = "" if main.behind is None else f", {main.behind} {'commit' if main.behind == 1 else 'commits'} ago"
    return f" (last green {short(main.last_green)}{behind})"


def ago(at: float | None, now: float) -> str:
    """`3 minutes ago`: when nobody needs the seconds."""
    seconds = max(now - (at or now), 0.0)
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return f"{took(seconds)} ago" if seconds >= 10 else "just now"
