"""Time limits of steps count only the time in which this process ran; what it was suspended for is given back."""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol

BEAT = 1.0
STALL = 4.0
"""Seconds without a beat, beyond the one that was due, that count as standing still: stopped by a signal, not busy."""


class HasTimeLimit(Protocol):
    """What has a time limit: the context of a step."""

    timer: asyncio.Timeout | None
    ends_at: float | None
    stood_still: float


_at_work: ContextVar[HasTimeLimit | None] = ContextVar("step at work", default=None)


class StepHeartbeat:
    """Beats while a step is at work, as a callback and not as a task: when a stopped process goes on, the beat that is
    overdue comes before the time limit that is overdue too, and moves it.
    """

    def __init__(self, context: HasTimeLimit, beat: float = BEAT, stall: float = STALL) -> None:
        self._context = context
        self._every = beat
        self._stall = stall
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._next: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._token = _at_work.set(self._context)
        self._plan()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _at_work.reset(self._token)
        if self._next is not None:
            self._next.cancel()

    def _plan(self) -> None:
        self._last = self._loop.time()
        self._next = self._loop.call_at(self._last + self._every, self._beat)

    def _beat(self) -> None:
        late = self._loop.time() - self._last - self._every
        if late >= self._stall:
            _give_back(self._context, late)
        self._plan()


def give_back_here(seconds: float) -> None:
    """To the step that is at work here, if one is: it could do nothing meanwhile."""
    if (context := _at_work.get()) is not None:
        _give_back(context, seconds)


def _give_back(context: HasTimeLimit, seconds: float) -> None:
    context.stood_still += seconds
    context.ends_at = None if context.ends_at is None else context.ends_at + seconds
    timer = context.timer
    if timer is not None and (when := timer.when()) is not None:
        with contextlib.suppress(RuntimeError):  # it is expiring already
            timer.reschedule(when + seconds)
