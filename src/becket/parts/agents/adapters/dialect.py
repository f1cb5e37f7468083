"""What a driver of a headless program knows of its vendor's language: lines in, events and facts out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.agent import AgentEvent, AgentOutcome, PriceSource, Usage
from becket.kernel.contract.process import ChildResult
from becket.parts.agents.adapters.lines import Vital

NOTHING = Usage()
_FIGURES = ("seconds", "turns", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "usd")


@dataclass
class Heard:
    """All that one child has told so far."""

    session: str | None = None
    model: str = ""
    version: str = ""
    said: str = ""
    ended: bool = False  # its terminal event came
    error: str = ""
    hint: AgentOutcome | None = None
    until: float | None = None
    last_error: str = ""  # an error that it may still recover from
    patience: float = 0.0  # seconds to wait for more, where what it waits for may never come; 0: as long as it likes
    gave_up: bool = False  # they passed
    session_gone: bool = False  # it could not resume, and did nothing
    usage: Usage = NOTHING  # of this child
    total: Usage = NOTHING  # of the session, as the vendor counts
    refusals: list[str] = field(default_factory=list)
    unknown: int = 0


class Dialect(Protocol):
    """One per child. Does nothing but read: the same lines give the same facts after a crash."""

    heard: Heard
    vital: Vital  # where it says too much, only lines that this finds are read, and the last ones

    def take(self, line: str) -> list[AgentEvent]:
        """Called once per line of standard output, in order. Never raises, whatever the line is."""
        ...

    def close(self, result: ChildResult, tail: str) -> None:
        """Called once after the child's end, with the last lines of everything that it printed."""
        ...


def plus(one: Usage, other: Usage) -> Usage:
    """Two children of one call."""
    return _each(one, other, 1)


def minus(total: Usage, before: Usage) -> Usage:
    """What came on top; never negative."""
    return _each(total, before, -1)


def larger(one: Usage, other: Usage) -> Usage:
    """The larger of each figure."""
    update = {name: max(getattr(one, name), getattr(other, name)) for name in _FIGURES}
    return one.model_copy(update=update)


def _each(one: Usage, other: Usage, sign: int) -> Usage:
    update = {name: max(getattr(one, name) + sign * getattr(other, name), 0) for name in _FIGURES}
    told = one.priced if other.priced is PriceSource.unknown else other.priced
    return one.model_copy(update=update | {"priced": told})


def below(tree: Path, path: str) -> str:
    """A path as people know it: from the top of the work tree."""
    return path.removeprefix(f"{tree}/")
