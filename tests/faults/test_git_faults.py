"""The n-th call of git goes wrong, for every n of a heal with promotion. A failure prints how to play it alone."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from functools import cache

import pytest
from git_cases import Way, case, told

WIDE = os.environ.get("BECKET_MATRIX") == "wide"
SEED = int(os.environ.get("BECKET_SEED", "1"))
QUICK, SLOW = 1, 3
"""So many calls per way."""


@cache
def calls() -> int:
    return len(case({}).calls)


def held(plans: Iterable[Mapping[int, Way]]) -> None:
    wrong = []
    for faults in plans:
        played = case(faults)
        if played.problems:
            wrong += [told(faults), *(f"    {one}" for one in played.problems)]
    assert not wrong, "\n".join(wrong)


def chosen(way: Way, count: int, *, but: int = 0) -> list[dict[int, Way]]:
    numbers = list(range(1, calls() + 1))
    random.Random(f"{SEED} {way}").shuffle(numbers)
    return [{number: way} for number in (numbers if WIDE else numbers[but : but + count])]


@pytest.mark.parametrize("way", Way)
def test_one_call_of_git_goes_wrong(way: Way) -> None:
    """Main moves to what was proven, or not at all; refs are whole, no lock is left, and the next heal works."""
    held(chosen(way, QUICK) if not WIDE else [])


@pytest.mark.slow
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("way", Way)
def test_any_call_of_git_goes_wrong(way: Way) -> None:
    held(chosen(way, SLOW, but=QUICK))
