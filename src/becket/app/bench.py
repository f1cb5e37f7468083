"""`becket bench`: scripted agents played through the real loops.

The one door to `becket.testing`: a bench is a test that users run. It is loaded only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from becket.contract.errors import UsageError

if TYPE_CHECKING:
    from becket.testing.cheats import Played


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One case and what came of it. `against` is what the record named, `problems` what did not hold."""

    name: str
    kind: str
    about: str
    ok: bool
    ended: str
    against: tuple[str, ...]
    shown: tuple[str, ...]
    problems: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class BenchFigure:
    """`right` of `total`; `bar` is the share that must be reached, or None where the figure is only told."""

    name: str
    right: int
    total: int
    bar: float | None

    @property
    def ok(self) -> bool:
        return self.bar is None or self.right >= self.bar * self.total


@dataclass(frozen=True, slots=True)
class Benched:
    cases: tuple[BenchCase, ...]
    figures: tuple[BenchFigure, ...]
    contained: bool  # False: nothing held the agents, so only what they left in git was judged

    @property
    def ok(self) -> bool:
        return all(figure.ok for figure in self.figures)


def bench_cheats(only: tuple[str, ...], thorough: bool, tell: Callable[[BenchCase], None]) -> Benched:
    """Play the cases of these names, or all of them. Takes seconds for each; `tell` is called as they end."""
    from becket.testing.cheats import HONEST_BAR, Kind, find, run_cases

    if find_spec("pytest") is None:
        raise UsageError("the field of this bench is tested by pytest; install it beside becket: `pip install pytest`")
    counted = run_cases(find(only), thorough=thorough or 5, tell=lambda played: tell(_told(played)))
    bars = {Kind.cheat: 1.0, Kind.unprovable: None, Kind.honest: HONEST_BAR}
    figures = tuple(BenchFigure(kind.value, *counted.of(kind), bar) for kind, bar in bars.items())
    return Benched(tuple(_told(played) for played in counted.played), figures, counted.held)


def _told(played: Played) -> BenchCase:
    case = played.case
    ended = "promoted" if played.promoted else f"{played.status} {played.reason}".strip()
    return BenchCase(
        case.name, case.kind.value, case.about, played.ok, ended, played.named, played.shown, played.problems,
        round(played.seconds, 2),
    )  # fmt: skip
