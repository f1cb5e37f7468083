"""A store that fails its n-th call in each of its ways, for every n: nothing is stuck, done twice or lost (property 1).

`make test` and `make test-slow` each take a sample, the same in every run; BECKET_MATRIX=wide takes all of it, and
BECKET_SEED=n another sample. A failure prints the command that plays its case alone.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from functools import cache

import pytest
from faulty_store import Way, pairs
from store_cases import STORIES, case, told

WIDE = os.environ.get("BECKET_MATRIX") == "wide"
SEED = int(os.environ.get("BECKET_SEED", "1"))
QUICK, SLOW, PAIRS = 2, 5, (4, 8)
"""So many calls per way and story; so many pairs per story."""

FOUND = [
    ("heal", "record", 5, Way.full),  # marked as lost by the worker that claimed it again: nobody moved it any more
]
"""States that broke once: by the name of the call and which of them, since numbers shift as the code changes."""


@cache
def calls(story: str) -> int:
    return len(case(story, {}, heals=False).calls)


def held(story: str, plans: Iterable[Mapping[int, Way]]) -> None:
    wrong = []
    for faults in plans:
        played = case(story, faults)
        if played.problems:
            wrong += [
                f"{told(story, faults)}  # {'; '.join(played.struck)}",
                *(f"    {one}" for one in played.problems),
            ]
    assert not wrong, "\n".join(wrong)


def chosen(story: str, way: Way, count: int, *, but: int = 0) -> list[dict[int, Way]]:
    """A sample over the whole length of the story; `but` are those that the quick sample has."""
    numbers = list(range(1, calls(story) + 1))
    random.Random(f"{SEED} {story} {way}").shuffle(numbers)
    return [{number: way} for number in (numbers if WIDE else numbers[but : but + count])]


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("story", STORIES)
def test_one_call_fails(story: str, way: Way) -> None:
    """Whatever fails, what is at work has somebody at work on it, ends honestly, and the next heal works."""
    held(story, chosen(story, way, QUICK) if not WIDE else [])


@pytest.mark.slow
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("story", STORIES)
def test_any_one_call_fails(story: str, way: Way) -> None:
    held(story, chosen(story, way, SLOW, but=QUICK))


@pytest.mark.parametrize("story", STORIES)
def test_two_calls_fail(story: str) -> None:
    """What recovers from the first fault may meet the second."""
    held(story, pairs(SEED, calls(story), PAIRS[0]))


@pytest.mark.slow
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("part", range(10 if WIDE else 1))
@pytest.mark.parametrize("story", STORIES)
def test_any_two_calls_fail(story: str, part: int) -> None:
    held(story, pairs(1000 * SEED + part, calls(story), 100 if WIDE else PAIRS[1]))


@pytest.mark.parametrize(("story", "name", "which", "way"), FOUND)
def test_states_that_were_found_broken(story: str, name: str, which: int, way: Way) -> None:
    numbers = [number for number, one in enumerate(case(story, {}, heals=False).calls, 1) if one == name]
    held(story, [{numbers[which - 1]: way}])


def test_the_same_faults_tell_the_same_story() -> None:
    """A failing case can be played again."""
    one, two = (case("heal", {40: Way.lost, 90: Way.slow_lease}) for _ in range(2))
    assert (one.calls, one.struck, one.ends, one.seconds) == (two.calls, two.struck, two.ends, two.seconds)
    assert one.struck
