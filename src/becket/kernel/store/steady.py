"""The store's time without surprises: a leap of the clock is held back until what is due was moved along with it.

A leap is a difference between the store's clock and this machine's time at work, which stands still while the machine
is suspended, that is too large for the usual corrections. Until somebody adopts it, time goes on as if it had not been.
"""

from __future__ import annotations

import time

from becket.kernel.contract.store import Leap
from becket.kernel.store.tx import Clock

LEAP = 30.0
"""Seconds; smaller corrections of a clock are simply followed."""


def since_boot() -> float:
    """With the time in which the machine was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyClock:
    """`read` is given every time the clock is read, and says which time it is."""

    def __init__(self, at_work: Clock = time.monotonic, real: Clock = since_boot) -> None:
        self.at_work = at_work
        self._real = real
        self._offset: float | None = None  # of the clock against the time at work
        self._asleep = 0.0
        self._raw = 0.0
        self._holds = False
        self._since: float | None = None  # when a leap was noticed

    def read(self, raw: float) -> float:
        now = self.at_work()
        self._raw = raw
        if self._offset is None or not self._holds or abs(raw - self._offset - now) < LEAP:
            self._follow(now)
            return raw
        self._since = self._offset + now if self._since is None else self._since
        return self._offset + now

    def hold(self) -> None:
        """From now on leaps are held back: there is an engine here that adopts them."""
        self._holds = True

    def leap(self) -> Leap | None:
        """What is held back. The part in which the machine slept is real time, and the rest is the clock's own."""
        if self._since is None or self._offset is None:
            return None
        now = self.at_work()
        by, slept = self._raw - self._offset - now, self._real() - now - self._asleep
        slept = min(slept, by) if slept >= 1.0 and by > 0 else 0.0
        jump = by - slept
        return Leap(jump=jump if abs(jump) >= 1.0 else 0.0, slept=slept, since=self._since, at=self._offset + now)

    def adopt(self) -> None:
        self._follow(self.at_work())

    def _follow(self, now: float) -> None:
        self._offset, self._asleep, self._since = self._raw - now, self._real() - now, None
