"""What a piece of source does, counted: the names it uses, the attributes, the values, the things it holds.

Names of locals, order and formatting are no facts, so that a change of these is no change of what code can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class Kind(StrEnum):
    """What a fact is about."""

    name = "name"  # something from outside the file, resolved: `os.environ.get`, `len`
    own = "own"  # something that the file defines at its top
    attribute = "attribute"  # of an object nobody can name
    store = "store"  # an attribute or item that is written: `self.total`, `CACHE[]`, `json.loads`
    imports = "imports"  # a module, or a name of one
    value = "value"  # a literal
    mark = "mark"  # a construct that matters by itself
    outside = "outside"  # a statement outside all functions, by its digest
    check = "check"  # a raise, an assertion, a validating call: to take one away is no plain change
    size = "size"  # how much there is
    line = "line"  # one statement, with its locals renamed


class Mark(StrEnum):
    """Constructs that say something about a change, whatever stands in them."""

    new_function = "new-function"
    nested_function = "nested-function"
    new_class = "new-class"
    decorator = "decorator"
    state = "state"  # `global`, `nonlocal`, a default that can be changed
    generator = "generator"
    catch = "catch"
    catch_all = "catch-all"
    leaves_finally = "leaves-finally"
    dynamic = "dynamic"  # a name that is put together at run time
    computed_call = "computed-call"
    hook = "hook"  # equality, hashing, attributes, class creation
    arithmetic = "arithmetic"  # a value computed of nothing but literals
    named_literal = "named-literal"
    not_a_number = "not-a-number"
    unreachable = "unreachable"
    before_check = "before-check"
    narrower = "narrower"  # a refusal that asks for more than before
    native = "native"
    directive = "directive"  # a comment or attribute that a compiler obeys
    unreadable_macro = "macro"
    runs_at_load = "runs-at-load"


class Size(StrEnum):
    statement = "statement"
    branch = "branch"
    literal = "literal"
    equality = "equality"  # with a literal
    returned = "return"  # of something that is not nothing


Fact = tuple[Kind, str]
EARLY_RETURN = "early return"


@dataclass(slots=True)
class Facts:
    """A multiset of facts, and the lines on which each stands."""

    counts: Counter[Fact] = field(default_factory=Counter)
    lines: dict[Fact, list[int]] = field(default_factory=dict)

    def add(self, kind: Kind, value: str, line: int) -> None:
        fact = (kind, value)
        self.counts[fact] += 1
        self.lines.setdefault(fact, []).append(line)

    def beyond(self, other: Facts) -> Counter[Fact]:
        """What is here and not there."""
        return self.counts - other.counts


def mark_returns_before_checks(facts: Facts) -> Facts:
    """A return that comes before a check may pass it by."""
    checks = [lines[-1] for (kind, what), lines in facts.lines.items() if kind is Kind.check and what != EARLY_RETURN]
    for line in facts.lines.get((Kind.size, Size.returned), ()):
        if checks and line < max(checks):
            facts.add(Kind.mark, Mark.before_check, line)
    return facts


@dataclass(slots=True)
class Unit:
    """A function or method, or what stands outside all of them. Its facts are counted when they are asked for."""

    name: str
    line: int
    source: str  # its text: the same text has the same facts
    read: Callable[[], Facts]
    is_hook: bool = False
    meaning: Callable[[], str] = str  # what it does, with locals renamed: asked only of hooks
    parts: tuple[str, ...] = ()  # the text of each statement outside all functions; empty for a function
    _facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = self.read()
        return self._facts


@dataclass
class SourceFile:
    """One version of a source file: the units that may differ, and all else where it is asked for."""

    units: Mapping[str, Unit]
    define: Callable[[], frozenset[str]] = frozenset  # names bound at its top, and members of its classes
    rest: Callable[[], Counter[Fact]] = Counter  # the facts of what is the same in both versions
    was_broken: bool = False  # it could not be parsed; its units are those of the repaired file, by its words

    @cached_property
    def known(self) -> Counter[Fact]:
        """All that the file uses anywhere."""
        found = Counter(self.rest())
        for unit in self.units.values():
            found.update(unit.facts.counts)
        return found

    @cached_property
    def defined(self) -> frozenset[str]:
        return self.define()

    def values(self, kind: Kind) -> Iterator[str]:
        return (value for of, value in self.known if of is kind)


def restored(unit: Unit, before: Unit | None, proven: SourceFile) -> Facts:
    """The facts that a unit brings back: those of the proven one, if each of its statements stood there or stands in
    the parent to the letter. A mixture within a function is neither.
    """
    then = proven.units.get(unit.name)
    if then is None:
        return NO_FACTS
    was = before.parts if before is not None else ()
    whole = {*then.parts, *was}.issuperset(unit.parts) if unit.parts else unit.source == then.source
    return then.facts if whole else NO_FACTS


NO_FILE = SourceFile({})
NO_FACTS = Facts()
