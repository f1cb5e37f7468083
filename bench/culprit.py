"""Culprit search: runs and rightness against plain bisection and retry-three bisection, at stated rates of flakiness.

Every method meets the same commits, the same culprit and noise of the same rates; nothing is measured in seconds.
The head was red twice before the search begins (a failure counts as the code's only after a rerun), and no method pays
for that: bisection takes the head as bad, Becket gets the two observations.
`--quick` takes fewer trials; `--check` exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

from becket.parts.gates.culprit import Culprit, ErrorRates, Observation, search

SIZES = (4, 8, 16, 32, 64)
FALSE_FAIL = (0.0, 0.05, 0.10, 0.20)
FALSE_PASS = (0.0, 0.05)
BUDGET = 100
BAR_AT = 0.10
"""The bar is on the sum over all sizes, for each false-pass rate; lines that miss it alone are named as well."""


@dataclass
class World:
    """A branch whose commits are bad from the culprit on, and a gate that is wrong at the stated rates."""

    size: int
    culprit: int
    noise: ErrorRates
    chance: random.Random
    runs: int = 0

    def run(self, position: int) -> bool:
        self.runs += 1
        wrong = self.noise.false_pass if position >= self.culprit else self.noise.false_fail
        return (position >= self.culprit) != (self.chance.random() < wrong)


@dataclass(frozen=True)
class Score:
    right: float
    runs: float
    most: int


def plain(world: World, model: ErrorRates) -> int | None:
    """One run for each commit asked."""
    return bisect(world, world.run)


def retry_three(world: World, model: ErrorRates) -> int | None:
    """A commit is bad if it fails three times in a row; one pass makes it good."""
    return bisect(world, lambda position: all(world.run(position) for _ in range(3)))


def best_of_three(world: World, model: ErrorRates) -> int | None:
    """Two equal answers out of at most three."""

    def vote(position: int) -> bool:
        answers = [world.run(position), world.run(position)]
        return answers[0] if answers[0] == answers[1] else world.run(position)

    return bisect(world, vote)


def bisect(world: World, is_bad: Callable[[int], bool]) -> int:
    good, bad = -1, world.size - 1  # the head is known to be red
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_bad(middle):
            bad = middle
        else:
            good = middle
    return bad


async def becket(world: World, model: ErrorRates) -> int | None:
    async def is_bad(sha: str) -> bool:
        return world.run(int(sha))

    commits = [str(position) for position in range(world.size)]
    red_head = Observation(sha=commits[-1], bad=True)
    found = await search(commits, is_bad, model, budget=BUDGET, seen=[red_head, red_head])
    return int(found.sha) if isinstance(found, Culprit) else None


METHODS = {"becket": becket, "plain": plain, "retry-three": retry_three, "best-of-three": best_of_three}


async def score(method: str, size: int, noise: ErrorRates, trials: int, model: ErrorRates | None = None) -> Score:
    right, runs = 0, []
    for trial in range(trials):
        chance = random.Random(f"{size} {trial} {noise}")
        world = World(size, chance.randrange(size), noise, chance)
        answer = METHODS[method](world, model or noise)
        found = await answer if asyncio.iscoroutine(answer) else answer
        right += found == world.culprit
        runs.append(world.runs)
    return Score(right / trials, statistics.fmean(runs), max(runs))


async def table(trials: int) -> list[str]:
    """Prints the figures; returns the bars that were missed."""
    missed, dearer = [], []
    totals: dict[float, list[float]] = {false_pass: [0.0, 0.0] for false_pass in FALSE_PASS}
    print(f"{trials} trials a line; right in %, runs as mean (most); the ratio is becket's runs to retry-three's\n")
    print(
        "false-fail false-pass commits |      becket        |       plain        |    retry-three     "
        "|   best-of-three    | ratio"
    )
    for false_pass in FALSE_PASS:
        for false_fail in FALSE_FAIL:
            noise = ErrorRates(false_fail=false_fail, false_pass=false_pass)
            for size in SIZES:
                scores = {name: await score(name, size, noise, trials) for name in METHODS}
                ours, theirs = scores["becket"], scores["retry-three"]
                ratio = ours.runs / theirs.runs
                shown = " | ".join(f"{s.right:6.1%} {s.runs:5.1f} ({s.most:3d})" for s in scores.values())
                print(f"{false_fail:10.0%} {false_pass:10.0%} {size:7d} | {shown} | {ratio:5.2f}")
                if false_fail == BAR_AT:
                    totals[false_pass] = [totals[false_pass][0] + ours.runs, totals[false_pass][1] + theirs.runs]
                    if ours.right < 0.95:
                        missed.append(f"{size} commits, false-pass {false_pass:.0%}: right only {ours.right:.1%}")
                    if ratio >= 1:
                        dearer.append(
                            f"{size} commits, false-pass {false_pass:.0%}: {ratio:.2f} (right {theirs.right:.1%})"
                        )
    print()
    for false_pass, (ours_total, theirs_total) in totals.items():
        ratio = ours_total / theirs_total
        print(f"{BAR_AT:.0%} false-fail, {false_pass:.0%} false-pass, all sizes: {ratio:.2f} of retry-three's runs")
        if ratio >= 1:
            missed.append(f"false-pass {false_pass:.0%}: {ratio:.2f} of retry-three's runs")
    print("single lines there that take more runs than retry-three:", "; ".join(dearer) or "none")
    return missed


async def misjudged(trials: int) -> None:
    """What a wrong idea of the noise costs, at 16 commits."""
    print("\nthe rates it is told are not the true ones, 16 commits")
    for told, true in ((0.05, 0.10), (0.05, 0.20), (0.10, 0.0), (0.10, 0.20), (0.20, 0.05)):
        noise, model = ErrorRates(false_fail=true, false_pass=0.0), ErrorRates(false_fail=told, false_pass=0.01)
        found = await score("becket", 16, noise, trials, model)
        print(f"  told {told:4.0%}, true {true:4.0%}: right {found.right:6.1%}, runs {found.runs:4.1f} ({found.most})")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 trials instead of 1,000")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is missed")
    arguments = parser.parse_args()
    trials = 100 if arguments.quick else 1000
    missed = await table(trials)
    await misjudged(trials)
    print(
        f"\nbar: at {BAR_AT:.0%} false-fail right >= 95% at every size, and fewer runs than retry-three in sum:",
        "; ".join(missed) or "held",
    )
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
