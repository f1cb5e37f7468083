"""What an agent does, one line per event: live in a terminal, plain in a pipe. Its words are untrusted (L24)."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from becket.cli.plain import UNTOLD, Paint, fitted, line, money, took
from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallState, PriceSource, Usage

PIPE_WIDTH = 400
MARGIN = 20
"""The columns before what is said: the time and the verb."""

_SAYS = {
    AgentEventKind.thinking: "thinks",
    AgentEventKind.message: "says",
    AgentEventKind.tool_call: "runs",
    AgentEventKind.edit: "edits",
    AgentEventKind.usage: "used",
    AgentEventKind.error: "error",
    AgentEventKind.end: "ends",
}
_OF_EDIT = {CallState.done: "edited", CallState.failed: "failed", CallState.refused: "refused"}
_OF_STATE = {CallState.done: "ran", CallState.failed: "failed", CallState.refused: "refused"}


class EventLines:
    """Prints events to a stream. One per call that is watched."""

    def __init__(self, out: TextIO | None = None, width: int | None = None) -> None:
        self._out = out or sys.stdout
        self._paint = Paint(self._out)
        self._width = width
        self._used = ""
        self._error = ""

    def tell(self, event: AgentEvent) -> None:
        verb, text = _verb(event), _text(event)
        if event.kind is AgentEventKind.usage:
            if text == self._used:
                return
            self._used = text
        if event.kind is AgentEventKind.error:
            if text == self._error:  # vendors say it once when it happens, and once more when they give up
                return
            self._error = text
        if not text and event.kind is not AgentEventKind.end:
            return
        room = max(self._room() - MARGIN, 20)
        print(f"{took(event.at):>8}  {self._painted(event, verb)} {fitted(text, room)}".rstrip(), file=self._out)
        self._out.flush()

    def _room(self) -> int:
        if self._width is not None:
            return self._width
        return shutil.get_terminal_size().columns if self._out.isatty() else PIPE_WIDTH

    def _painted(self, event: AgentEvent, verb: str) -> str:
        padded = verb.ljust(MARGIN - 11)
        if event.kind is AgentEventKind.error or event.state in (CallState.failed, CallState.refused):
            return self._paint.red(padded)
        if event.kind in (AgentEventKind.thinking, AgentEventKind.usage):
            return self._paint.dim(padded)
        if event.kind is AgentEventKind.edit:
            return self._paint.green(padded)
        return self._paint.cyan(padded) if event.by else self._paint.bold(padded)


def _verb(event: AgentEvent) -> str:
    if event.by:
        return "is told"
    if event.kind is AgentEventKind.tool_call and event.state is not None:
        return _OF_STATE.get(event.state, _SAYS[event.kind])
    if event.kind is AgentEventKind.edit and event.state is not None:
        return _OF_EDIT.get(event.state, _SAYS[event.kind])
    return _SAYS[event.kind]


def _text(event: AgentEvent) -> str:
    if event.by:
        return line(f"{event.text} ({event.by})", PIPE_WIDTH)
    if event.usage is not None and event.kind in (AgentEventKind.usage, AgentEventKind.end):
        said = line(event.text, PIPE_WIDTH)
        return f"{said}  {used_words(event.usage)}" if said else used_words(event.usage)
    parts = [event.tool, " ".join(event.paths) if event.kind is AgentEventKind.edit else "", event.text]
    return "  ".join(shown for part in parts if (shown := line(part, PIPE_WIDTH)))


def used_words(usage: Usage) -> str:
    """`3 turns, 12,400 tokens (8,000 cached), $0.0410`."""
    if usage.priced is PriceSource.unknown and not usage.tokens and not usage.turns:
        return UNTOLD
    turns = f"{usage.turns} {'turn' if usage.turns == 1 else 'turns'}, " if usage.turns else ""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{turns}{usage.tokens:,} tokens{cached}, {money(usage.usd, usage.priced is not PriceSource.unknown)}"
