"""Debounce: many events of one key become few; the newest is acted on and never lost (L2)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from becket.kernel.contract.spec import Edge

log = logging.getLogger("becket.triggers")

MOST_WINDOWS = 10
"""A trailing edge waits for quiet this many windows at most: a branch that never rests must not starve its loop."""
LONGEST_RETRY = 60.0

Key = tuple[str, str]
Act = Callable[[Key, str], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class _Window:
    """The time during which moves of one key are collected."""

    length: float
    edge: Edge
    newest: str | None = None
    first_at: float = 0.0  # when the collected moves began
    last_at: float = 0.0
    failures: int = 0
    timer: asyncio.Task[None] | None = None

    def collect(self, value: str, at: float) -> None:
        if self.newest is None:
            self.first_at = at
        self.newest, self.last_at = value, at

    def put_back(self, value: str, at: float) -> None:
        """An act on `value` came to nothing; a newer value outranks it."""
        self.failures += 1
        if self.newest is None:
            self.collect(value, at)

    def take(self) -> str | None:
        value, self.newest = self.newest, None
        return value

    def wait(self, now: float) -> float:
        """How long from now until the collected moves are acted on."""
        if self.failures:
            return min(LONGEST_RETRY, max(self.length, 1.0) * float(2 ** min(self.failures - 1, 10)))
        if self.edge is Edge.leading:
            return self.length
        if self.newest is None:
            return 0.0
        return min(self.last_at + self.length, self.first_at + MOST_WINDOWS * self.length) - now


class Debounce:
    """One timer per key. leading: act at once, then on the newest at the end of each window that saw a move.
    trailing: act on the newest once it was quiet for a window.

    An act that fails or is cancelled is repeated with the newest value. What a killed process had collected is gone;
    the caller's cursor shows it at the next look.
    """

    def __init__(self, act: Act, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._act = act
        self._clock = clock
        self._sleep = sleep
        self._open: dict[Key, _Window] = {}
        self._closed = False

    def busy(self, key: Key) -> bool:
        """Is a window open, so that a move is collected and not acted on at once?"""
        return key in self._open

    async def push(self, key: Key, value: str, length: float, edge: Edge) -> None:
        """The newest value of a key. Returns after the act where that happens at once."""
        now = self._clock()
        if (window := self._open.get(key)) is not None:
            window.collect(value, now)
            return
        window = self._open[key] = _Window(length, edge)
        if edge is Edge.trailing:
            window.collect(value, now)
            self._start(key, window)
            return
        try:
            await self._act(key, value)
        except BaseException:
            window.put_back(value, self._clock())
            raise
        finally:
            self._start(key, window)

    def drop(self, key: Key) -> None:
        """Forget what was collected for a key: there is nothing left to act on."""
        if (window := self._open.get(key)) is not None:
            window.take()

    async def close(self) -> None:
        """Stop every timer and act no more."""
        self._closed = True
        timers = [window.timer for window in self._open.values() if window.timer is not None]
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)
        self._open.clear()

    def _start(self, key: Key, window: _Window) -> None:
        if not self._closed:
            window.timer = asyncio.create_task(self._serve(key, window), name=f"debounce {' '.join(key)}")

    async def _serve(self, key: Key, window: _Window) -> None:
        try:
            while True:
                while (left := window.wait(self._clock())) > 0:
                    await self._sleep(left)
                    if window.edge is Edge.leading or window.failures:
                        break
                value = window.take()
                if value is None:
                    return
                await self._try(key, window, value)
        finally:
            # No await since the last `take`: a move either was taken there or opens a window of its own.
            if self._open.get(key) is window:
                del self._open[key]

    async def _try(self, key: Key, window: _Window, value: str) -> None:
        try:
            await self._act(key, value)
            window.failures = 0
        except Exception as error:  # the store may be away for a while; the move is not forgotten
            log.warning("%s: %s; it will be tried again", " ".join(key), error)
            window.put_back(value, self._clock())
