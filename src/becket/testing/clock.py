"""Time that stands still until told otherwise."""

from __future__ import annotations


class ManualClock:
    """Give it to a store as its clock."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        self._now += seconds
        return self._now

    def set(self, now: float) -> None:
        self._now = now
