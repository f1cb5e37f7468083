"""Simulated time: what takes an hour there takes no time here, and what happens meanwhile happens in its order."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from becket.testing.clock import ManualClock

Deed = Callable[[], Awaitable[None]]


@dataclass
class SimulatedTime:
    """One thing at a time. Whoever works calls `spend`; what is planned for that while is done on the way."""

    clock: ManualClock
    moved: Deed | None = None  # called whenever the clock has moved: the worker's heartbeat
    _planned: list[tuple[float, int, Deed]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def plan(self, at: float, deed: Deed) -> None:
        heapq.heappush(self._planned, (at, next(self._numbers), deed))

    @property
    def next_at(self) -> float | None:
        return self._planned[0][0] if self._planned else None

    async def spend(self, seconds: float) -> None:
        await self.until(self.clock() + seconds)

    async def until(self, at: float) -> None:
        """Let time pass. What is planned may plan more, and may set the clock: that takes no time."""
        end = self.clock.worked() + at - self.clock()
        while self._planned and self._planned[0][0] - self.clock() <= end - self.clock.worked():
            due, _, deed = heapq.heappop(self._planned)
            await self._pass(due - self.clock())
            await deed()
        await self._pass(end - self.clock.worked())

    def jump(self, seconds: float) -> None:
        """The clock is set. What the world does, it does as long from now as before."""
        self.clock.jump(seconds)
        self._planned = [(at + seconds, number, deed) for at, number, deed in self._planned]

    async def sleep(self, seconds: float) -> None:
        """For tasks that stand beside the work, such as the debounce's timers."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wake() -> None:
            if not woken.done():
                woken.set_result(None)
            await breathe()

        self.plan(self.clock() + seconds, wake)
        await woken

    async def _pass(self, seconds: float) -> None:
        self.clock.advance(max(seconds, 0.0))
        if self.moved is not None:
            await self.moved()


async def breathe() -> None:
    """Let the tasks that can go on do so, until they sleep again."""
    for _ in range(5):
        await asyncio.sleep(0)
