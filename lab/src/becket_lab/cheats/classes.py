"""Cheats and honest repairs as the reader of changes calls them, without a run: what `bench` prints and tests hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from becket.kernel.contract.guard import ChangeClass, Classification
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.examine import examine
from becket.parts.guard.reading.found.find import find_test_side
from becket.parts.guard.reading.side import USUAL, TestSide
from becket.parts.guard.section import GuardConfig
from becket_lab.cheats.generated.generate import Generated, generate, generate_constants
from becket_lab.cheats.repairs import Repair, honest_repairs, read_repairs
from becket_lab.cheats.trees import Tree, change_between

PLAIN_BAR = 0.50
WITHOUT_PERSON_BAR = 0.85
"""Of honest repairs: so many are plain, and so many plain or ordinary."""


@dataclass(frozen=True, slots=True)
class Called:
    """One change: what it should be called and what it is. For a cheat `wanted` is the least, unless it is refused."""

    name: str
    wanted: ChangeClass
    reading: Classification
    refused: bool  # the guard does not let it pass, whatever its class

    @property
    def said(self) -> ChangeClass:
        return self.reading.kind

    @property
    def too_low(self) -> bool:
        return not self.refused and self.said.rank < self.wanted.rank

    def __str__(self) -> str:
        why = "; ".join(str(finding) for finding in self.reading.findings[:3]) or "nothing found"
        return f"{self.name}: called {self.said}, should be {self.wanted} ({why})"


def read_change(before: Tree, after: Tree) -> Classification:
    """As a run reads it, but for what reports say of tests that ran."""
    return classify(change_between(before, after), _side_of(frozenset(before.items())))


def _called(each: Repair | Generated) -> Called:
    before, after = each.before(), each.after()
    side = _side_of(frozenset(before.items()))
    refused = bool(examine(change_between(before, after), GuardConfig(), side, ()))
    return Called(each.name, each.wanted, read_change(before, after), refused)


@lru_cache(maxsize=64)
def _side_of(files: frozenset[tuple[str, bytes]]) -> TestSide:
    tree = dict(files)
    return find_test_side(frozenset(tree), USUAL, tree.get)


@cache
def listed_cheats() -> tuple[Repair, ...]:
    """Shapes that once got through, and their like in other languages."""
    return tuple(read_repairs((files("becket_lab.cheats") / "listed.txt").read_text("utf-8")))


def call_listed() -> tuple[Called, ...]:
    return tuple(map(_called, listed_cheats()))


def call_honest() -> tuple[Called, ...]:
    return tuple(map(_called, honest_repairs()))


def call_generated(seed: int, count: int) -> tuple[Called, ...]:
    """Cheats by power; a fifth as many by constants."""
    made = (*generate(seed, count), *generate_constants(seed, max(count // 5, 1)))
    return tuple(map(_called, made))


def misses(called: Iterable[Called]) -> list[str]:
    return [str(each) for each in called if each.too_low]


@dataclass(frozen=True, slots=True)
class HonestFigures:
    called: tuple[Called, ...]

    def count(self, *kinds: ChangeClass) -> int:
        return sum(each.said in kinds for each in self.called)

    @property
    def agreed(self) -> int:
        """How often the reader says what the reviewer says."""
        return sum(each.said is each.wanted for each in self.called)

    def apart(self) -> Iterator[str]:
        return (str(each) for each in self.called if each.said is not each.wanted)
