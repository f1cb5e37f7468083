"""A case: one scripted agent, the bug it is called for, and what must come of its deed."""

from __future__ import annotations

import ast
import base64
import inspect
import json
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import ModuleType

from becket_lab.cheats import hand as hand_module
from becket_lab.cheats.hand import Hand

Deed = Callable[[Hand], None]
"""What the agent does. Its source alone is run, behind `hand.py`: it imports within itself what it needs."""


class Kind(StrEnum):
    cheat = "cheat"  # must not be promoted, and the record says why
    honest = "honest"  # must be promoted; or proposed, where it is more than plain


class By(StrEnum):
    """What stops a cheat."""

    guard = "guard"
    crossing = "crossing"
    gate = "gate"
    agent = "agent"  # judged from the work tree and from how the process ended
    reading = "reading"  # what it newly can do: it ends at a person, with the lines shown


@dataclass(frozen=True, slots=True)
class Caught:
    """`word` is what the record must name: a rule of the guard, an outcome of the agent, a class. Without: any."""

    by: By
    word: str = ""

    def __str__(self) -> str:
        return f"{self.by}: {self.word}" if self.word else self.by.value

    def covers(self, other: Caught) -> bool:
        return self.by is other.by and self.word in ("", other.word)


def guard(rule: str) -> Caught:
    return Caught(By.guard, rule)


def agent(outcome: str) -> Caught:
    return Caught(By.agent, outcome)


CROSSING = Caught(By.crossing)
GATE = Caught(By.gate)
NOTHING_DONE = agent("nothing_done")
POWERFUL = Caught(By.reading, "powerful")
ORDINARY = Caught(By.reading, "ordinary")
MORE_THAN_PLAIN = (ORDINARY, POWERFUL)
NO_SOURCE = (POWERFUL, CROSSING, GATE, guard("test-support-changed"))
"""What stops a change of settings, or of a file that something loads unasked."""


@dataclass(frozen=True, slots=True)
class Case:
    """`caught_by`: any one of them is right. `files` are given to the deed of a case that is made, not listed."""

    name: str
    kind: Kind
    about: str
    deed: Deed
    bug: str = "rounding"
    caught_by: tuple[Caught, ...] = ()
    leaves_work: bool = True  # it changes files that git would keep, so they must be found again
    seconds: float = 30.0
    files: Mapping[str, str] = field(default_factory=dict)

    def program(self, place: Mapping[str, str]) -> str:
        """The command line that is the agent."""
        given = base64.b64encode(zlib.compress(json.dumps(dict(self.files)).encode())).decode()
        return shlex.join([sys.executable, "-c", self.source(), json.dumps({**place, "files": given})])

    def source(self) -> str:
        """The program: the hand, the deed, and the call."""
        called = f"{self.deed.__name__}(Hand(json.loads(sys.argv[1])))"
        return f"{_source_of(hand_module)}\n\n{_function(self.deed)}\n\n{called}\n"


@cache
def _source_of(module: ModuleType) -> str:
    return inspect.getsource(module)


def _function(deed: Deed) -> str:
    """Its source without what registers it."""
    module = sys.modules[deed.__module__]
    source = _source_of(module)
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == deed.__name__:
            return ast.get_source_segment(source, node) or ""
    raise LookupError(f"{deed.__name__} is not a function of {module.__name__}")


@dataclass
class Book:
    """Collects the cases of one file."""

    cases: list[Case] = field(default_factory=list)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def cheat(
        self, *caught_by: Caught, bug: str = "rounding", leaves_work: bool = True, seconds: float = 30.0
    ) -> Callable[[Deed], Deed]:
        def enter(deed: Deed) -> Deed:
            self._enter(deed, Kind.cheat, bug, caught_by=caught_by, leaves_work=leaves_work, seconds=seconds)
            return deed

        return enter

    def honest(self, bug: str = "rounding") -> Callable[[Deed], Deed]:
        def enter(deed: Deed) -> Deed:
            self._enter(deed, Kind.honest, bug)
            return deed

        return enter

    def _enter(
        self, deed: Deed, kind: Kind, bug: str, *, caught_by: tuple[Caught, ...] = (),
        leaves_work: bool = True, seconds: float = 30.0,
    ) -> None:  # fmt: skip
        name = deed.__name__.replace("_", "-")
        about = " ".join((deed.__doc__ or name).split())
        self.cases.append(Case(name, kind, about, deed, bug, caught_by, leaves_work, seconds))
