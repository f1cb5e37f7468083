"""Gates that are being tried: live on a terminal, plain lines in a pipe, and in the end what to do next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from becket.cli.output import note, say
from becket.cli.plain import Paint, fitted, line, safe, short, took
from becket.cli.shape import Interrupted, in_app, me
from becket.kernel.contract.gate import no_tests_counted
from becket.parts.gates import words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.gate import TriedStep
    from becket.parts.gates.trial import StepTried, Tried

MOST_LINES = 20
LONGEST_BLAME = 80
SAY_EVERY = 30.0
"""Seconds of silence in a pipe."""


def attempt(steps: tuple[str, ...], at: str | None, as_json: bool, folder: Path | None = None) -> Tried:
    """Try them and show how it goes."""
    view = SilentTrial() if as_json else LiveTrial() if sys.stdout.isatty() else PlainTrial()

    async def whole(app: App) -> Tried:
        from becket.parts.gates import trial

        sha = await trial.commit_of(app, at)
        async with trial.as_it_stands(app, sha, wanted=at is None) as judged:
            run = await trial.begin(app, me(app), judged, steps)
            view.begins(sha)
            try:
                stopped = await trial.see(app, me(app), run.run_id, view)
            finally:
                view.clear()
        if stopped:
            raise Interrupted(words.TRIAL_STOPPED.format(run_id=run.run_id))
        tried = await trial.result(app, run.run_id, sha)
        for one in tried.steps:
            view.ended(one.step)
        return tried

    return in_app(whole, sys.stderr, folder)


class SilentTrial:
    """For --json."""

    def begins(self, sha: str) -> None:
        pass

    def ended(self, step: TriedStep) -> None:
        pass

    def at_work(self, name: str, seconds: float, said: str) -> None:
        pass

    def clear(self) -> None:
        pass


class PlainTrial(SilentTrial):
    """A line for each step, and one now and then while a long one runs."""

    def __init__(self) -> None:
        self._shown: set[str] = set()
        self._quiet_until = SAY_EVERY

    def begins(self, sha: str) -> None:
        say(words.TRIAL_BEGINS.format(sha=short(sha)))
        sys.stdout.flush()

    def ended(self, step: TriedStep) -> None:
        if step.name not in self._shown:
            self._shown.add(step.name)
            self._quiet_until = SAY_EVERY
            self.clear()
            say(step_line(step))
            sys.stdout.flush()

    def at_work(self, name: str, seconds: float, said: str) -> None:
        if seconds >= self._quiet_until:
            self._quiet_until = seconds + SAY_EVERY
            say(f"  ...    {name}  {took(seconds)}  {line(said, 100)}")
            sys.stdout.flush()


class LiveTrial(PlainTrial):
    """The step at work in the last line, with its time and what it printed last."""

    def at_work(self, name: str, seconds: float, said: str) -> None:
        text = f"  ...    {name}  {round(seconds)}s  {line(said, 300)}"
        print(f"\r\x1b[2K{fitted(text, shutil.get_terminal_size().columns - 1)}", end="", flush=True)

    def clear(self) -> None:
        print("\r\x1b[2K", end="", flush=True)


def step_line(step: TriedStep) -> str:
    """`  green  fast/unit  132 tests in 3.10s`."""
    paint = Paint()
    color = paint.green("green") if step.green else paint.red("red  ")
    return f"  {color}  {step.name}  {_measure(step)}".rstrip()


def _measure(step: TriedStep) -> str:
    if not step.green:
        return (
            f"{step.trouble.value if step.trouble else ''} after {took(step.seconds)}".strip() if step.seconds else ""
        )
    if not step.gate:
        return f"made in {took(step.seconds)}" if step.seconds else "was made before"
    tests = f"{step.tests_run} test{'s' if step.tests_run != 1 else ''}"
    return f"{tests if step.counts_tests else no_tests_counted(step.exit_code)} in {took(step.seconds)}"


def show_red(tried: Tried) -> None:
    """For each red step: what its log says, what kind of trouble it is, and the key to begin with."""
    if tried.trouble:
        note(words.TRIAL_NONE.format(why=line(tried.trouble, 600)))
    for one in tried.red:
        say()
        say(Paint().bold(words.TRIAL_RED.format(name=one.step.name, trouble=one.step.trouble or "red")))
        for reason in one.step.reasons:
            say(f"  {line(reason, 1000)}") if safe(reason) not in one.said else None
        for text in _excerpt(one):
            say(f"  {line(text, 200)}" if text.strip() else "")
        where = f" (line {one.line})" if one.line else ""
        say(words.TRIAL_CHANGE.format(key=one.key, where=where, advice=line(one.advice, 300)))


def _excerpt(one: StepTried) -> list[str]:
    """The beginning, the end, and between them what blames the machine."""
    lines = safe(one.said).strip().splitlines()
    if len(lines) <= MOST_LINES:
        return lines
    blamed = safe(one.step.problem).partition(": ")[2][:LONGEST_BLAME]
    half = MOST_LINES // 2
    at = next((n for n, text in enumerate(lines) if blamed and blamed in text), 0)
    if not half <= at < len(lines) - half:
        return [*lines[:half], words.TRIAL_CUT, *lines[-half:]]
    begin, stop = max(at - half // 2, 0), at + half // 2
    shown = [*lines[: half // 2], words.TRIAL_CUT, *lines[begin:stop], words.TRIAL_CUT]
    return [*shown, *lines[max(stop, len(lines) - half // 2) :]]


def green_line(tried: Tried) -> str:
    told = ", ".join(f"{one.step.name} {_measure(one.step)}" for one in tried.steps if one.step.gate and one.step.green)
    return words.TRIAL_GREEN.format(sha=short(tried.sha), steps=told)


def document(tried: Tried) -> dict[str, object]:
    """What --json prints."""
    return {**tried.model_dump(mode="json"), "green": tried.green}
