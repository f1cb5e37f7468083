"""`becket agent run`: start the call, show it live, then the diff and the honest outcome."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from becket.cli import words as cli_words
from becket.cli.agent_lines import EventLines, used_words
from becket.cli.output import emit, note, say
from becket.cli.plain import Paint, clock, line, safe, short, took
from becket.cli.shape import Interrupted, in_app, me
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.parts.agents import words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.kernel.contract.agent import AgentEvent
    from becket.kernel.contract.calls import AgentCall
    from becket.kernel.contract.git import TreeState
    from becket.parts.agents.desk import CallResult

MOST_DIFF_LINES = 200
MOST_SAID_LINES = 12
MOST_PATHS = 5
DIFF_BYTES = 400_000


def call(name: str, brief: str, folder: Path | None, apply: bool, as_json: bool) -> int:
    """Returns the exit code."""
    view = SilentCall() if as_json else LiveCall()

    async def whole(app: App) -> tuple[CallResult, bool, tuple[str, ...], str]:
        from becket.app.driving import others_queued
        from becket.app.foreground import shown
        from becket.parts.agents import desk

        caller, tree = me(app), await desk.standing(app)
        base = _base(app, tree, apply)
        run = await desk.begin(app, caller, name, brief, base)
        view.begins(run.run_id, name, base, tree)
        stopped = await desk.see_call(app, caller, run.run_id, view.tell)
        called = await desk.result(app, run.run_id, base)
        if stopped:
            raise Interrupted(_stopped(called.run))
        await shown(app, caller, run.run_id)
        if count := await others_queued(app, (run.run_id,)):
            note(cli_words.others(count))
        applied = apply and called.changed
        if applied:
            await desk.apply(app, called)
        return called, applied, (*tree.changed, *tree.untracked), desk.patch_start(app, called, DIFF_BYTES)

    # What the loop says at its end is shown here in full.
    called, applied, unseen, patch = in_app(whole, io.StringIO(), folder)
    if as_json:
        emit(document(called, applied, unseen))
    else:
        show(called, patch, applied, apply)
    return int(not called.changed)


def _stopped(run: Run) -> str:
    """What came of a Ctrl-C: the run may have ended by itself in that moment."""
    if run.status not in ENDED:
        return words.AGENT_STILL.format(run_id=run.run_id)
    text = words.AGENT_STOPPED if run.status is RunStatus.cancelled else cli_words.ENDED_ALREADY
    return text.format(run_id=run.run_id, status=cli_words.STATUS[run.status.value])


def _base(app: App, tree: TreeState, apply: bool) -> str:
    if tree.head is None:
        raise UsageError(words.AGENT_NO_COMMIT.format(root=app.state.root))
    if apply and not tree.clean:
        raise UsageError(words.AGENT_DIRTY.format(root=app.state.root, paths=uncommitted(tree)))
    return tree.head


def uncommitted(tree: TreeState) -> str:
    """The paths of a work tree that are not committed, in a few words."""
    paths = [*tree.changed, *tree.untracked]
    shown = ", ".join(line(path, 60) for path in paths[:MOST_PATHS])
    return f"{shown} and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else shown


class SilentCall:
    """For --json."""

    def begins(self, run_id: str, name: str, base: str, tree: TreeState) -> None:
        pass

    def tell(self, call: AgentCall, event: AgentEvent) -> None:
        pass


class LiveCall:
    """A line for each event; which agent speaks is said whenever another one begins to."""

    def __init__(self) -> None:
        self._lines: dict[str, EventLines] = {}
        self._speaks = ""

    def begins(self, run_id: str, name: str, base: str, tree: TreeState) -> None:
        say(words.AGENT_BEGINS.format(run_id=run_id, agent=line(name, 60), sha=short(base)))
        if not tree.clean:
            note(words.AGENT_UNSEEN.format(sha=short(base), paths=uncommitted(tree)))
        sys.stdout.flush()

    def tell(self, call: AgentCall, event: AgentEvent) -> None:
        if call.call_id != self._speaks:
            if self._speaks or call.call_id in self._lines:
                say(Paint().bold(line(f"{call.agent} ({call.driver})")))
            self._speaks = call.call_id
        self._lines.setdefault(call.call_id, EventLines()).tell(event)


def show(called: CallResult, patch: str, applied: bool, wanted: bool) -> None:
    """Diff, the agent's last words, what each call used, and the outcome as the runtime judges it."""
    _show_diff(patch)
    if called.patch is not None:
        say(words.AGENT_PATCH.format(path=called.patch))
    if called.said.strip():
        say()
        say(Paint().dim(words.AGENT_SAID))
        lines = safe(called.said).strip().splitlines()
        for text in lines[-MOST_SAID_LINES:]:
            say(f"  {line(text, 200)}")
    say()
    for each in called.calls:
        say(call_words(each))
    say(outcome_words(called))
    if called.outcome is AgentOutcome.limit_reached:
        say(words.AGENT_UNFINISHED.format(run_id=called.run.run_id))
    if called.sha:
        say(words.AGENT_CANDIDATE.format(sha=short(called.sha), run_id=called.run.run_id))
    if applied:
        say(words.AGENT_APPLIED)
    elif wanted:
        note(words.AGENT_NOT_APPLIED.format(outcome=_name(called)))


def _show_diff(patch: str) -> None:
    from becket.app.record.report.diff import lines_of

    lines = list(lines_of(safe(patch).rstrip("\n"))) if patch else []
    paint = Paint()
    colours = {"add": paint.green, "remove": paint.red, "hunk": paint.cyan, "file": paint.bold, "about": paint.dim}
    if lines:
        say()
    for item in lines[:MOST_DIFF_LINES]:
        text = safe(item.text)
        say(colours[item.kind](text) if item.kind in colours else text)
    if len(lines) > MOST_DIFF_LINES:
        say(paint.dim(words.AGENT_DIFF_CUT.format(count=len(lines) - MOST_DIFF_LINES)))


def call_words(call: AgentCall) -> str:
    """`fixer: changed in 12.0s, 3 turns, 12,400 tokens, $0.0410`."""
    if call.end is None:
        return f"{line(call.agent, 60)}: {cli_words.CALL_OPEN}"
    usage = call.end.usage
    over = f"; {cli_words.CALL_OVER.format(what=', '.join(call.end.over))}" if call.end.over else ""
    said = words.AGENT_USED.format(
        agent=line(call.agent, 60), outcome=call.end.outcome.value.replace("_", " "), took=took(usage.seconds),
        used=used_words(usage),
    )  # fmt: skip
    return said + over


def outcome_words(called: CallResult) -> str:
    paint = Paint()
    name = paint.green(_name(called)) if called.changed else paint.yellow(_name(called))
    said = words.AGENT_OUTCOME.format(outcome=name, reason=line(called.reason, 400)) + _back(called)
    if not called.over:
        said += "\n" + words.AGENT_RESTS.format(run_id=called.run.run_id)
    return said


def _back(called: CallResult) -> str:
    """When its quota is back, where somebody told, or that nobody did."""
    until = next((call.end.until for call in reversed(called.calls) if call.end is not None and call.end.until), None)
    if until is not None and not called.changed:
        return f" ({words.AGENT_WAITS.format(at=clock(until))})"
    return f" ({words.AGENT_WAITS_UNTOLD})" if called.outcome is AgentOutcome.quota_wait else ""


def _name(called: CallResult) -> str:
    if called.outcome is not None:
        return called.outcome.value.replace("_", " ")
    return words.AGENT_NO_OUTCOME if called.calls else words.AGENT_NOT_CALLED


def document(called: CallResult, applied: bool, unseen: tuple[str, ...]) -> dict[str, object]:
    """What --json prints."""
    return {
        "run": called.run.model_dump(mode="json"),
        "base": called.base,
        "outcome": called.outcome.value if called.outcome is not None else None,
        "reason": called.reason,
        "said": called.said,
        "sha": called.sha or None,
        "patch": str(called.patch) if called.patch is not None else None,
        "applied": applied,
        "unseen": list(unseen),
        "calls": [each.model_dump(mode="json") for each in called.calls],
    }
