"""An event loop whose time jumps: real tasks, real timers, and an hour takes as long as what happens in it.

While somebody waits for a descriptor (a child process, a socket of a database) time stands still, unless `stuck` says
that nothing will come: then it jumps to the next timer, as it does when nobody waits for anything outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

BEGINNING = 1_800_000_000.0
REAL_PATIENCE = 5.0
"""Somebody may hold a child open and wait for something else: after so long time goes on."""

_GLANCE = 0.02


class VirtualLoop(asyncio.SelectorEventLoop):
    """For one `asyncio.Runner`. Work for threads is done on the spot: nothing here depends on which was faster."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.stuck: Callable[[], bool] = lambda: False
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.passed

    def clock(self) -> float:
        """The wall's time here."""
        return BEGINNING + self.passed

    def block(self, seconds: float) -> None:
        """The whole process stands still for so long, as in a call that does not come back."""
        self.passed += seconds

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        """A doorbell may ring, and nobody waits until it does."""
        if getattr(callback, "__name__", "") == "_rung":
            return
        super().add_reader(fd, callback, *args)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        waits_for_outside = len(self.get_map()) > 1  # one is the loop's own
        until = time.monotonic() + REAL_PATIENCE
        while waits_for_outside and not found and not self._loop.stuck() and time.monotonic() < until:
            found = super().select(_GLANCE)
        if not found:
            assert timeout is not None, "every task waits for something that nobody will do"
            self._loop.passed += timeout
        return found


def play(story: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        with _children_by_descriptor(loop):
            return runner.run(story(loop))


@contextlib.contextmanager
def _children_by_descriptor(loop: VirtualLoop) -> Iterator[None]:
    """As from Python 3.12 on by itself: a thread that waits for a child could not be seen by the loop."""
    if sys.version_info >= (3, 12):
        yield
        return
    policy = asyncio.get_event_loop_policy()
    before, watcher = policy.get_child_watcher(), asyncio.PidfdChildWatcher()
    watcher.attach_loop(loop)
    policy.set_child_watcher(watcher)
    try:
        yield
    finally:
        watcher.close()
        policy.set_child_watcher(before)


class LoopClock:
    """In the place of a `ManualClock`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def __call__(self) -> float:
        return self._loop.clock()

    def worked(self) -> float:
        return self._loop.passed

    def real(self) -> float:
        return self._loop.passed


class LoopTime:
    """The loop's time in the place of `SimulatedTime`: whoever works sleeps in it. `pace` makes work shorter."""

    def __init__(self, loop: VirtualLoop, pace: float = 1.0) -> None:
        self.clock = LoopClock(loop)
        self._pace = pace

    async def spend(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._pace)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
