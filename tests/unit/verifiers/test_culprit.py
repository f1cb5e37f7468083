"""The culprit search: right in spite of flakes, deterministic, resumable, and honest when it cannot tell."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from becket.parts.gates.culprit import Culprit, CulpritUndecided, ErrorRates, Observation, SuspectProbabilities, search

FLAKY = ErrorRates(false_fail=0.10, false_pass=0.0)


def commits(count: int) -> list[str]:
    return [f"c{position}" for position in range(count)]


def gate(culprit: int, noise: ErrorRates, seed: int) -> Callable[[str], object]:
    """A gate that is bad from the culprit on and wrong at the stated rates."""
    chance = random.Random(seed)

    async def is_bad(sha: str) -> bool:
        bad = int(sha[1:]) >= culprit
        return bad != (chance.random() < (noise.false_pass if bad else noise.false_fail))

    return is_bad


def scripted(answers: dict[str, bool | None], asked: list[str] | None = None) -> Callable[[str], object]:
    async def is_bad(sha: str) -> bool | None:
        if asked is not None:
            asked.append(sha)
        return answers[sha]

    return is_bad


def find(names: Sequence[str], is_bad: object, model: ErrorRates = FLAKY, **more: object) -> Culprit | CulpritUndecided:
    return asyncio.run(search(names, is_bad, model, **more))  # type: ignore[arg-type]


def red_head(names: Sequence[str]) -> Observation:
    return Observation(sha=names[-1], bad=True)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 64])
def test_without_noise_it_is_plain_bisection(count: int) -> None:
    names = commits(count)
    for culprit in range(count):
        found = find(
            names, gate(culprit, ErrorRates(false_fail=0, false_pass=0), 1), ErrorRates(false_fail=0, false_pass=0)
        )
        assert isinstance(found, Culprit)
        assert found.sha == names[culprit]
        assert found.runs <= max(1, (count - 1).bit_length() + 1)


def test_it_is_right_in_spite_of_flakes() -> None:
    """The bar: at 10% false failures at least 95% right; a larger trial is in bench/culprit.py."""
    names = commits(16)
    chance = random.Random(3)
    right = 0
    for seed in range(200):
        culprit = chance.randrange(16)
        found = find(names, gate(culprit, FLAKY, seed), seen=[red_head(names)])
        right += isinstance(found, Culprit) and found.sha == names[culprit]
    assert right >= 190


def test_its_confidence_is_what_it_says() -> None:
    noise = ErrorRates(false_fail=0.2, false_pass=0.05)
    names = commits(8)
    chance = random.Random(4)
    claimed, right = [], 0
    for seed in range(300):
        culprit = chance.randrange(8)
        found = find(names, gate(culprit, noise, seed), noise, seen=[red_head(names)], budget=100)
        assert isinstance(found, Culprit)
        claimed.append(found.confidence)
        right += found.sha == names[culprit]
    assert right / 300 >= sum(claimed) / 300 - 0.03


def test_the_same_answers_give_the_same_search() -> None:
    names = commits(20)
    one, two = (find(names, gate(7, FLAKY, 11), seen=[red_head(names)]) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("seed", range(12))
def test_an_interrupted_search_goes_on_where_it_was(seed: int) -> None:
    names = commits(24)
    culprit = seed * 2
    whole = find(names, gate(culprit, FLAKY, seed), seen=[red_head(names)])
    assert isinstance(whole, Culprit)
    answers = iter(whole.observations[1:])

    async def replay(sha: str) -> bool | None:
        following = next(answers)
        assert following.sha == sha
        return following.bad

    first = find(names, replay, seen=[red_head(names)], budget=2)
    rest = find(names, replay, seen=first.observations)
    assert isinstance(rest, Culprit)
    assert (rest.sha, rest.confidence, rest.observations) == (whole.sha, whole.confidence, whole.observations)
    assert first.runs + rest.runs == whole.runs


def test_a_spent_budget_is_undecided_with_its_suspects() -> None:
    names = commits(64)
    found = find(names, gate(20, FLAKY, 5), budget=2, seen=[red_head(names)])
    assert isinstance(found, CulpritUndecided)
    assert found.runs == 2
    assert "used up" in found.reason
    assert len(found.suspects) == 5
    assert len(found.observations) == 3


def test_no_budget_asks_nothing() -> None:
    found = find(commits(4), scripted({}), budget=0)
    assert isinstance(found, CulpritUndecided)
    assert found.runs == 0


def test_nobody_is_to_blame_when_every_commit_passes() -> None:
    """L14: the red run was a flake; no innocent commit is named for it."""
    names = commits(8)
    found = find(names, scripted(dict.fromkeys(names, False)), seen=[red_head(names)], budget=100)
    assert isinstance(found, CulpritUndecided)
    assert "none of the commits" in found.reason
    assert found.nobody >= 0.97


def test_a_commit_without_an_answer_is_asked_once_and_the_search_goes_on() -> None:
    names = commits(9)
    answers: dict[str, bool | None] = {name: int(name[1:]) >= 6 for name in names}
    answers["c4"] = None
    asked: list[str] = []
    found = find(names, scripted(answers, asked), seen=[red_head(names)])
    assert isinstance(found, Culprit)
    assert found.sha == "c6"
    assert asked.count("c4") <= 1


def test_commits_that_cannot_be_told_apart_are_undecided() -> None:
    names = commits(5)
    answers: dict[str, bool | None] = {"c0": False, "c1": False, "c2": None, "c3": None, "c4": True}
    found = find(names, scripted(answers), seen=[red_head(names)], budget=100)
    assert isinstance(found, CulpritUndecided)
    assert {suspect.sha for suspect in found.suspects[:3]} == {"c2", "c3", "c4"}
    assert found.runs < 20


def test_a_prior_saves_runs_and_cannot_clear_a_commit() -> None:
    names = commits(32)
    weights = [0.0] * 32
    weights[9] = 1.0
    quiet = ErrorRates(false_fail=0.01, false_pass=0.01)
    hinted = find(names, gate(9, quiet, 1), quiet, prior=weights, seen=[red_head(names)])
    plain = find(names, gate(9, quiet, 1), quiet, seen=[red_head(names)])
    assert isinstance(hinted, Culprit)
    assert hinted.sha == "c9"
    assert hinted.runs < plain.runs
    misled = find(names, gate(20, quiet, 1), quiet, prior=weights, seen=[red_head(names)], budget=60)
    assert isinstance(misled, Culprit)
    assert misled.sha == "c20"


def test_no_hint_alone_convicts() -> None:
    names = commits(32)
    weights = [0.0] * 31 + [1.0]
    found = find(names, scripted({}), prior=weights, seen=[red_head(names)], budget=0)
    assert isinstance(found, CulpritUndecided)


def test_the_newest_commit_is_run_again_before_one_red_run_convicts_it() -> None:
    """L14."""
    names = commits(8)
    answers: dict[str, bool | None] = {name: name == "c7" for name in names}
    asked: list[str] = []
    found = find(names, scripted(answers, asked), seen=[red_head(names)])
    assert isinstance(found, Culprit)
    assert found.sha == "c7"
    assert "c7" in asked


def test_observations_of_other_commits_are_left_alone() -> None:
    names = commits(4)
    found = find(names, gate(2, FLAKY, 2), seen=[Observation(sha="elsewhere", bad=True), red_head(names)])
    assert isinstance(found, Culprit)
    assert found.observations[0].sha == "elsewhere"


def test_answers_that_contradict_a_claim_of_no_noise_leave_a_belief() -> None:
    belief = SuspectProbabilities(commits(3), ErrorRates(false_fail=0, false_pass=0))
    for bad in (True, False, True, False):
        belief.learn(Observation(sha="c1", bad=bad))
    assert sum(suspect.probability for suspect in belief.suspects()) + belief.nobody == pytest.approx(1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": []},
        {"names": ["a", "a"]},
        {"prior": [1.0]},
        {"prior": [1.0, -1.0]},
        {"prior": [1.0, float("nan")]},
        {"confidence": 1.0},
        {"confidence": 0.4},
        {"budget": -1},
        {"nobody": 1.0},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    names = wrong.pop("names", ["a", "b"])
    with pytest.raises(ValueError, match=r"search needs|prior has|confidence lies|chance of nobody"):
        find(names, scripted({}), **wrong)  # type: ignore[arg-type]


def test_a_rate_of_one_half_is_no_information_and_refused() -> None:
    with pytest.raises(ValueError):
        ErrorRates(false_fail=0.5)
