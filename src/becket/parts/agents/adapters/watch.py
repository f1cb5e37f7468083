"""What one call does, as it happens: told, written down, counted and held to its limits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallFiles, Limits, Usage
from becket.kernel.contract.calls import overshot
from becket.parts.agents.adapters.prices import priced
from becket.parts.agents.section import Price

TEXT_LIMIT = 4_000
"""Characters of one event's text. All of it is in the raw transcript."""

_LOOKED_AT = 4 * TEXT_LIMIT
_SAID_LIMIT = 4_000
SAID_LOOKED_AT = 8 * _SAID_LIMIT
"""Letters of an agent's last words that are looked through; a key has fewer."""

SIGN_OF_LIFE, OF_ALL = 1.0, 0.05
"""Seconds of silence, and the part of all its time, after which the time alone is written down, for whoever reads the
file after a crash of ours.
"""

MOST_EVENTS, MOST_WRITTEN = 20_000, 16_000_000
"""Beyond so many, or so many characters of them, only the end is told."""

_TOO_MUCH = "it does too much to be told: the rest is in the transcript"


class Watch:
    """One per call. `passed` says in words which limits are passed; the driver then ends the child.

    Time is not held here but by `ChildSpec.timeout`.
    """

    def __init__(
        self,
        limits: Limits,
        files: CallFiles,
        heard: Callable[[AgentEvent], None] | None = None,
        price: Price | None = None,
        *,
        redact: Callable[[str], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._heard = heard
        self._redact = redact
        self._clock = clock
        self._began = clock()
        self._finished = False
        self._ended: float | None = None
        self._taken, self._written, self._told_all = 0, 0, False
        self._written_at = 0.0
        self.price = price  # may be set later: some agents name their model only when they begin
        self._usage = Usage()
        files.folder.mkdir(parents=True, exist_ok=True)
        self._file = files.events.open("w", encoding="utf-8", buffering=1)

    @property
    def seconds(self) -> float:
        """Since it began, and no more after its end: what is reported of a call is what its last event said."""
        return self._clock() - self._began if self._ended is None else self._ended

    @property
    def usage(self) -> Usage:
        """Of the call so far, with its time and its money."""
        return priced(self._usage, self.price).model_copy(update={"seconds": round(self.seconds, 3)})

    @property
    def passed(self) -> tuple[str, ...]:
        """Turns, tokens and money beyond the limits, in words; empty while all is well."""
        return overshot(self.usage.model_copy(update={"seconds": 0.0}), self._limits)

    def tally(self, usage: Usage) -> None:
        """What the call has used so far: not what came on top."""
        self._usage = usage
        at = round(self.seconds, 3)
        if not self._finished and at - self._written_at >= max(SIGN_OF_LIFE, OF_ALL * at):
            self._write(at, f'{{"at":{at}}}')

    def take(self, event: AgentEvent) -> None:
        """Count, stamp, write and tell one event. Its usage, if it has one, is of the call so far."""
        if event.usage is not None:
            self._usage = event.usage
        if event.kind is not AgentEventKind.end:
            if self._told_all:
                return
            self._taken += 1
            if self._taken >= MOST_EVENTS or self._written >= MOST_WRITTEN:
                self._told_all = True
                event = AgentEvent(kind=AgentEventKind.error, text=_TOO_MUCH)
        at = round(self.seconds, 3)
        update = {"at": at, "text": self._shown(event.text)}
        stamped = event.model_copy(update=update | ({"usage": self.usage} if event.usage is not None else {}))
        if not self._finished:
            self._write(at, stamped.model_dump_json(exclude_defaults=True))
        if self._heard is not None:
            self._heard(stamped)

    def _write(self, at: float, line: str) -> None:
        with contextlib.suppress(OSError):  # a full disk ends what can be told of a call, never the call
            self._written += self._file.write(f"{line}\n")
            self._written_at = at

    def finish(self, text: str = "") -> None:
        """The end event, once, whatever comes after; `text` is what went wrong."""
        if self._finished:
            return
        self._ended = self.seconds
        try:
            self.take(AgentEvent(kind=AgentEventKind.end, text=text, usage=self._usage))
        finally:
            self._finished = True
            with contextlib.suppress(OSError):
                self._file.close()

    def last_words(self, said: str) -> str:
        """The end of what the agent said last, with its secrets taken out before it is cut."""
        return self._redact(_writable(said[-SAID_LOOKED_AT:]))[-_SAID_LIMIT:]

    def _shown(self, text: str) -> str:
        """Without secrets (L25), and none of them cut in half: whoever attaches may not know them."""
        return _short(self._redact(_writable(text[:_LOOKED_AT]))) if text else ""


def _writable(text: str) -> str:
    """A lone surrogate is valid in JSON, and cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 3]}..."
