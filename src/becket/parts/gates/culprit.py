"""Which of the new commits broke it? Bisection that tolerates flaky answers, by Bayes' rule.

Every answer shifts the probability of each commit instead of halving the range for good, so a wrong answer costs a few
more runs and not the result. The next commit to try is the one whose answer is expected to tell the most.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

from pydantic import Field

from becket.kernel.contract.base import Record

NOBODY = 0.1
"""The chance, before anything is seen, that none of the commits is to blame: a flake, or the machine.

High enough that one red run of the newest commit does not convict it: it is run again before it is named (L14).
"""

HINTS_SHARE = 0.5
"""How much of the first belief a prior may move. The rest stays even, so that no hint alone convicts or clears."""

LEAST_NOISE = 1e-6
"""Nobody is infallible: with a rate of exactly zero, two answers that disagree would leave no possibility at all."""


class ErrorRates(Record):
    """How often an answer is wrong: a good commit that fails, a bad commit that passes."""

    false_fail: float = Field(default=0.05, ge=0, lt=0.5)
    false_pass: float = Field(default=0.01, ge=0, lt=0.5)


class Observation(Record):
    """One run at one commit. `bad` is None where it gave no answer: it does not build there, for example."""

    sha: str
    bad: bool | None


class Suspect(Record):
    sha: str
    probability: float


class Culprit(Record):
    """The first bad commit, and how sure that is."""

    sha: str
    confidence: float
    runs: int  # made by this search, without the observations it was given
    observations: tuple[Observation, ...]


class CulpritUndecided(Record):
    """No commit is probable enough. `suspects` are the most probable ones; `nobody` is the chance that it is none."""

    reason: str
    suspects: tuple[Suspect, ...]
    nobody: float
    runs: int
    observations: tuple[Observation, ...]


IsBad = Callable[[str], Awaitable[bool | None]]


async def search(
    commits: Sequence[str],
    is_bad: IsBad,
    model: ErrorRates,
    confidence: float = 0.97,
    budget: int = 40,
    *,
    prior: Sequence[float] | None = None,
    nobody: float = NOBODY,
    seen: Sequence[Observation] = (),
) -> Culprit | CulpritUndecided:
    """Find the first bad one of `commits`, given oldest first, with at most `budget` runs.

    The commit before the first is taken as good. `prior` weighs the commits, by the files they touch for example.
    `seen` are earlier observations, the red run that started it among them; a search that goes on from the observations
    of one that was interrupted asks what that one would have asked.
    """
    if not 0.5 < confidence < 1 or budget < 0:
        raise ValueError("the confidence lies between one half and one, and the budget is not negative")
    belief = SuspectProbabilities(commits, model, prior, nobody)
    observations = list(seen)
    for observation in observations:
        belief.learn(observation)
    runs = 0
    while True:
        best, probability = belief.best()
        if best is not None and probability >= confidence:
            return Culprit(sha=best, confidence=probability, runs=runs, observations=tuple(observations))
        question = belief.question((1 - confidence) / 100) if probability < confidence and runs < budget else None
        if question is None:
            reason = _reason(belief, confidence, exhausted=runs >= budget)
            return CulpritUndecided(
                reason=reason,
                suspects=belief.suspects(),
                nobody=belief.nobody,
                runs=runs,
                observations=tuple(observations),
            )
        observation = Observation(sha=question, bad=await is_bad(question))
        runs += 1
        observations.append(observation)
        belief.learn(observation)


def _reason(belief: SuspectProbabilities, confidence: float, exhausted: bool) -> str:
    if belief.nobody >= confidence:
        return "none of the commits is to blame: a flaky test or the machine"
    if exhausted:
        return "the runs allowed for the search are used up"
    return "the commits between the suspects give no answer"


class SuspectProbabilities:
    """The probability of each commit to be the first bad one, and of nobody."""

    def __init__(
        self, commits: Sequence[str], model: ErrorRates, prior: Sequence[float] | None = None, nobody: float = NOBODY
    ) -> None:
        if not commits or len(set(commits)) != len(commits):
            raise ValueError("a search needs commits, each of them once")
        weights = [1.0] * len(commits) if prior is None else list(prior)
        if len(weights) != len(commits) or not all(math.isfinite(weight) and weight >= 0 for weight in weights):
            raise ValueError("a prior has one weight for each commit, none of them negative")
        if not 0 <= nobody < 1:
            raise ValueError("the chance of nobody lies between 0 and 1")
        self._commits = list(commits)
        self._at = {sha: position for position, sha in enumerate(self._commits)}
        self._fail_if_good = max(model.false_fail, LEAST_NOISE)
        self._pass_if_bad = max(model.false_pass, LEAST_NOISE)
        total = math.fsum(weights)
        hints = [weight / total for weight in weights] if total > 0 else [1 / len(weights)] * len(weights)
        even = (1 - HINTS_SHARE) / len(weights)
        self._chances = [(HINTS_SHARE * hint + even) * (1 - nobody) for hint in hints] + [nobody]
        self._silent: set[int] = set()

    @property
    def nobody(self) -> float:
        return self._chances[-1]

    def learn(self, observation: Observation) -> None:
        """Take in one run; a commit that gives no answer is not asked again."""
        position = self._at.get(observation.sha)
        if position is None:
            return
        if observation.bad is None:
            self._silent.add(position)
            return
        if_bad = 1 - self._pass_if_bad if observation.bad else self._pass_if_bad
        if_good = self._fail_if_good if observation.bad else 1 - self._fail_if_good
        updated = [
            chance * (if_bad if culprit <= position else if_good) for culprit, chance in enumerate(self._chances)
        ]
        total = math.fsum(updated)
        self._chances = [chance / total for chance in updated]

    def best(self) -> tuple[str | None, float]:
        """The most probable answer; None is nobody. Of equals, the earliest commit."""
        position = max(range(len(self._chances)), key=lambda index: (self._chances[index], -index))
        return (self._commits[position] if position < len(self._commits) else None), self._chances[position]

    def suspects(self, most: int = 5) -> tuple[Suspect, ...]:
        ranked = sorted(range(len(self._commits)), key=lambda index: (-self._chances[index], index))
        return tuple(Suspect(sha=self._commits[index], probability=self._chances[index]) for index in ranked[:most])

    def question(self, least: float) -> str | None:
        """The commit whose answer tells the most, in bits; None if no answer tells more than `least`."""
        certain = _entropy(self._pass_if_bad), _entropy(self._fail_if_good)
        best, most = None, least
        bad = 0.0
        for position, sha in enumerate(self._commits):
            bad = min(1.0, bad + self._chances[position])
            if position in self._silent:
                continue
            says_bad = bad * (1 - self._pass_if_bad) + (1 - bad) * self._fail_if_good
            gain = _entropy(says_bad) - bad * certain[0] - (1 - bad) * certain[1]
            if gain > most:
                best, most = sha, gain
        return best


def _entropy(chance: float) -> float:
    if chance <= 0 or chance >= 1:
        return 0.0
    return -chance * math.log2(chance) - (1 - chance) * math.log2(1 - chance)
