"""What a piece of source does, counted: the names it uses, the attributes, the values, the things it holds.

Names of locals, order and formatting are no facts, so that a change of these is no change of what code can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class FactKind(StrEnum):
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


class Construct(StrEnum):
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
    sealed = "sealed"  # a function of the language or of a test framework
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


Fact = tuple[FactKind, str]
EARLY_RETURN = "early return"


@dataclass(slots=True)
class Facts:
    """A multiset of facts, and the lines on which each stands."""

    counts: Counter[Fact] = field(default_factory=Counter)
    lines: dict[Fact, list[int]] = field(default_factory=dict)

    def add(self, kind: FactKind, value: str, line: int) -> None:
        fact = (kind, value)
        self.counts[fact] += 1
        self.lines.setdefault(fact, []).append(line)

    def beyond(self, other: Facts) -> Counter[Fact]:
        """What is here and not there."""
        return self.counts - other.counts


def mark_returns_before_checks(facts: Facts) -> Facts:
    """A return that comes before a check may pass it by."""
    checks = [
        lines[-1] for (kind, what), lines in facts.lines.items() if kind is FactKind.check and what != EARLY_RETURN
    ]
    for line in facts.lines.get((FactKind.size, Size.returned), ()):
        if checks and line < max(checks):
            facts.add(FactKind.mark, Construct.before_check, line)
    return facts


@dataclass(slots=True)
class CodeUnit:
    """A function or method, or what stands outside all of them. Its facts are counted when they are asked for."""

    name: str
    line: int
    source: str  # its text: the same text has the same facts
    read: Callable[[], Facts]
    is_hook: bool = False
    is_sealed: bool = False  # it belongs to the language or to a test framework
    meaning: Callable[[], str] = str  # what it does, with locals renamed: asked only of hooks
    _facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            self._facts = self.read()
        return self._facts


@dataclass(frozen=True, slots=True)
class LocatedCode:
    """One statement outside functions, or a function, where it stands in the file."""

    place: str  # the class that holds it; empty for the module
    what: str  # what it says; of a function only its name
    is_function: bool = False


@dataclass(frozen=True, slots=True)
class FileOutline:
    """All that stands outside functions in the whole file, and where its functions stand, in order."""

    stands: tuple[LocatedCode, ...] = ()
    doubled: frozenset[str] = frozenset()  # functions whose name is bound twice: which one counts, their order says

    def common(self, other: FileOutline, *, statements: bool) -> tuple[LocatedCode, ...]:
        """The functions that the other has too, and the statements if asked for."""
        there = set(other.stands)
        return tuple(each for each in self.stands if (each in there if each.is_function else statements))


@dataclass
class SourceFile:
    """One version of a source file: the units that may differ, and all else where it is asked for."""

    units: Mapping[str, CodeUnit]
    define: Callable[[], frozenset[str]] = frozenset  # names bound at its top, and members of its classes
    rest: Callable[[], Counter[Fact]] = Counter  # the facts of what is the same in both versions
    was_broken: bool = False  # it could not be parsed; its units are those of the repaired file, by its words
    lay_out: Callable[[], FileOutline] = FileOutline

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

    @cached_property
    def outline(self) -> FileOutline:
        return self.lay_out()

    def values(self, kind: FactKind) -> Iterator[str]:
        return (value for of, value in self.known if of is kind)


@dataclass(frozen=True, slots=True)
class Restoration:
    """What a change of one file brings back to the letter from its last proven version. A mixture is nothing of it:
    what stands outside functions is, as one sequence, the proven file's or the parent's, and functions stand in the
    order that they had there.
    """

    proven: SourceFile
    as_proven: bool = False  # all that stands outside functions
    as_before: bool = False
    doubled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, old: SourceFile, new: SourceFile, proven: SourceFile) -> Restoration:
        if proven is NO_FILE:
            return cls(proven)
        was, now, then = old.outline, new.outline, proven.outline
        in_order = now.common(then, statements=False) == then.common(now, statements=False)
        return cls(
            proven,
            as_proven=in_order and now.common(then, statements=True) == then.common(now, statements=True),
            as_before=in_order and now.common(was, statements=True) == was.common(now, statements=True),
            doubled=was.doubled | now.doubled | then.doubled,
        )

    def facts(self, unit: CodeUnit) -> Facts:
        """Those that a unit has back."""
        then = self.proven.units.get(unit.name)
        if then is None or not (self.as_proven or (self.as_before and unit.line)):
            return NO_FACTS
        if unit.line and (unit.source != then.source or unit.name in self.doubled):
            return NO_FACTS
        return then.facts


NO_FILE = SourceFile({})
NO_FACTS = Facts()
