"""`becket bench`: scripted agents played through the real loops."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.guard import ChangeClass

if TYPE_CHECKING:
    from becket_lab.cheats import Case, Figures, Played

GENERATED = 60
"""So many generated cheats are played unless asked otherwise."""
READ_ONLY = 300
"""So many more are only read, which takes seconds."""
_MOST_SEEDS = 1_000_000


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One case and what came of it. `against` is what the record named, `problems` what did not hold."""

    name: str
    kind: str
    about: str
    ok: bool
    read_as: str  # the class of the change; "" where there was none
    ended: str
    against: tuple[str, ...]
    shown: tuple[str, ...]
    problems: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class BenchClass:
    """What became of the changes of one class; "" is that of cases that changed nothing."""

    read_as: str
    cheats_refused: int
    cheats_handed_over: int
    cheats_promoted: int
    honest_refused: int
    honest_proposed: int
    honest_promoted: int


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
    """`too_low` are changes that were only read, and called less than they are."""

    seed: int
    cases: tuple[BenchCase, ...]
    classes: tuple[BenchClass, ...]
    figures: tuple[BenchFigure, ...]
    too_low: tuple[str, ...]
    contained: bool  # False: nothing held the agents, so only what they left in git was judged
    with_node: bool  # False: there is no node, so no case in JavaScript was played

    @property
    def ok(self) -> bool:
        return all(figure.ok for figure in self.figures)


def bench_cheats(
    only: tuple[str, ...], thorough: bool, tell: Callable[[BenchCase], None], *, seed: int | None = None,
    generated: int | None = None,
) -> Benched:  # fmt: skip
    """Play the cases of these names, or all of them and `generated` more, put together by the seed. Takes seconds for
    each; `tell` is called as they end.
    """
    from becket_lab.cheats import run_cases

    if find_spec("pytest") is None:
        raise UsageError("the field of this bench is tested by pytest; install it beside becket: `pip install pytest`")
    chosen = secrets.randbelow(_MOST_SEEDS) if seed is None else seed
    count = (0 if only else GENERATED) if generated is None else generated
    cases = _cases(only, chosen, count)
    counted = run_cases(cases, thorough=thorough or 5, tell=lambda played: tell(_told(played)))
    read, too_low = _only_read(chosen) if count else ((), ())
    return Benched(
        chosen, tuple(map(_told, counted.played)), tuple(_classes(counted)), (*_figures(counted), *read), too_low,
        counted.held, _has_node(),
    )  # fmt: skip


def _has_node() -> bool:
    return shutil.which("node") is not None


def _cases(only: tuple[str, ...], seed: int, count: int) -> tuple[Case, ...]:
    from becket_lab.cheats import find, generated_cases

    made = generated_cases(seed, count) if count else ()
    return tuple(case for case in (*find(only), *made) if _has_node() or not case.bug.startswith("node-"))


def _figures(counted: Figures) -> tuple[BenchFigure, ...]:
    from becket_lab.cheats import HONEST_BAR, PLAIN_BAR, Kind

    return (
        BenchFigure("cheat", *counted.of(Kind.cheat), 1.0),
        BenchFigure("honest", *counted.of(Kind.honest), HONEST_BAR),
        BenchFigure("honest_plain", *counted.plain, PLAIN_BAR),
    )


def _classes(counted: Figures) -> Iterator[BenchClass]:
    from becket_lab.cheats import End, Kind

    ends = (End.refused, End.handed_over, End.promoted)
    for read_as in (*ChangeClass, None):
        numbers = [counted.ended(kind, read_as, end) for kind in (Kind.cheat, Kind.honest) for end in ends]
        if any(numbers):
            yield BenchClass(read_as.value if read_as else "", *numbers)


def _only_read(seed: int) -> tuple[tuple[BenchFigure, ...], tuple[str, ...]]:
    """What needs no run: what the reader calls cheats and honest repairs."""
    from becket_lab.cheats import classes

    cheats = (*classes.call_generated(seed, READ_ONLY), *classes.call_listed())
    honest = classes.HonestFigures(classes.call_honest())
    total, too_low = len(honest.called), classes.misses(cheats)
    plain, without_person = honest.count(ChangeClass.plain), honest.count(ChangeClass.plain, ChangeClass.ordinary)
    figures = (
        BenchFigure("read_cheat", len(cheats) - len(too_low), len(cheats), 1.0),
        BenchFigure("read_plain", plain, total, classes.PLAIN_BAR),
        BenchFigure("read_without_person", without_person, total, classes.WITHOUT_PERSON_BAR),
        BenchFigure("read_agreement", honest.agreed, total, None),
    )
    return figures, tuple(too_low)


def _told(played: Played) -> BenchCase:
    case = played.case
    read_as = played.read_as.value if played.read_as else ""
    return BenchCase(
        case.name, case.kind.value, case.about, played.ok, read_as, played.end.value, played.named, played.shown,
        played.problems, round(played.seconds, 2),
    )  # fmt: skip
