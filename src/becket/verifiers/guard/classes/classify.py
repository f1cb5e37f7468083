"""The class of a change: plain, ordinary or powerful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from becket.contract.guard import Change, Reading
from becket.verifiers.guard.side import TestSide


def classify(change: Change, side: TestSide, pure: Mapping[str, Sequence[str]] = {}) -> Reading:
    """Read what the change adds. `pure`: by language, further modules that only compute."""
    return Reading.of(())
