"""What every bench prints: a table of figures, each with its bar where it has one, and how sure a figure is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

SURE = 0.9


@dataclass(frozen=True)
class Row:
    """One line of the table. `bar` is what the ratio or figure must not pass; without `ok` nobody can tell."""

    what: str
    figure: str
    against: str = ""
    bar: str = ""
    ok: bool | None = None


def show(rows: Sequence[Row], *, check: bool) -> int:
    """Print them; the exit code is 1 if a bar is missed and `check` asks for that."""
    for row in rows:
        mark = {None: "unsure" if row.bar else "", True: "met", False: "MISSED"}[row.ok]
        print(f"{row.what:48}{row.figure:>18}   {row.against:36}{row.bar:12}{mark}")
    return 1 if check and any(row.ok is False for row in rows) else 0


@dataclass(frozen=True)
class Difference:
    """The median of differences of pairs, and between which two of them the true median lies, nine times in ten.

    The bounds are two of the measured differences, chosen by the binomial distribution: whatever shape the noise has.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Difference:
        pairs = sorted(mine - other for mine, other in zip(ours, theirs, strict=True))
        count, cut = len(pairs), 0
        while 2 * (cut + 1) < count and 1 - 2 * _tail(count, cut + 1) >= SURE:
            cut += 1
        return cls(statistics.median(pairs), pairs[cut], pairs[count - 1 - cut])

    @property
    def noisy(self) -> bool:
        """The noise is larger than the figure."""
        return self.high - self.low > abs(self.median)

    def within(self, bar: float) -> bool | None:
        """None where the noise covers the bar: then these rounds do not tell."""
        return True if self.high <= bar else False if self.low > bar else None


def _tail(count: int, upto: int) -> float:
    return sum(math.comb(count, number) for number in range(upto + 1)) / 2**count
