"""Time that stands still until told otherwise."""

from __future__ import annotations


class ManualClock:
    """Give it to a store as its clock; for one that leaps, give `worked` and `real` to the store's `Steady` too."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._worked = 0.0
        self._slept = 0.0

    def __call__(self) -> float:
        return self._now

    def worked(self) -> float:
        """The time that passed at work."""
        return self._worked

    def real(self) -> float:
        return self._worked + self._slept

    def advance(self, seconds: float) -> float:
        self._now += seconds
        self._worked += seconds
        return self._now

    def set(self, now: float) -> None:
        self.advance(now - self._now)

    def jump(self, seconds: float) -> None:
        """Somebody sets the clock; no time passes."""
        self._now += seconds

    def suspend(self, seconds: float) -> None:
        """Time passes, and nobody is at work."""
        self._now += seconds
        self._slept += seconds
