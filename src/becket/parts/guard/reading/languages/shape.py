"""What a source file looks like to the guard: shapes without formatting and comments, and an outline of its tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum


class UnreadableSource(Exception):
    """The file cannot be parsed, or is too deep to be compared; it is compared as text instead."""


Expand = Callable[[], tuple["Shape", ...]]


class Shape:
    """A node of a syntax tree. Two shapes are equal if the code does the same, however it is written.

    What lies below is built when it is asked for: most of a changed file did not change, and its text says so.
    """

    __slots__ = ("_children", "_digest", "_expand", "field", "kind", "line", "source", "text")

    def __init__(
        self, kind: str, text: str, children: tuple[Shape, ...] | Expand, line: int, field: str = "", source: str = ""
    ) -> None:
        self.kind = kind
        self.text = text
        self.line = line
        self.field = field  # the role below its parent; no part of what it is
        self.source = source  # the text it was read from; empty if that alone does not say what it is
        self._digest: int | None = None
        self._children: tuple[Shape, ...] | None = None
        self._expand: Expand | None = None
        if isinstance(children, tuple):
            self._children = children
        else:
            self._expand = children

    @property
    def children(self) -> tuple[Shape, ...]:
        if self._children is None:
            self._children = self._expand() if self._expand is not None else ()
            self._expand = None
        return self._children

    @property
    def digest(self) -> int:
        if self._digest is None:
            self._digest = hash((self.kind, self.text, *[child.digest for child in self.children]))
        return self._digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape) or self.kind != other.kind or self.text != other.text:
            return False
        if self.source and self.source == other.source:
            return True
        mine, others = self.children, other.children
        return len(mine) == len(others) and all(a == b for a, b in zip(mine, others, strict=True))

    def __hash__(self) -> int:
        return self.digest

    def __repr__(self) -> str:
        inner = "".join(f" {child!r}" for child in self.children)
        return f"({self.kind}{':' + self.text if self.text else ''}{inner})"

    def walk(self) -> Iterator[Shape]:
        """This shape and all below it, in reading order."""
        stack = [self]
        while stack:
            shape = stack.pop()
            yield shape
            stack.extend(reversed(shape.children))

    def walk_outside(self, kinds: Collection[str]) -> Iterator[Shape]:
        """The same, without what lies below the given kinds."""
        stack = [self]
        while stack:
            shape = stack.pop()
            yield shape
            if shape is self or shape.kind not in kinds:
                stack.extend(reversed(shape.children))

    def part(self, field: str) -> Shape | None:
        """The child with this role."""
        return next((child for child in self.children if child.field == field), None)

    def without(self, *fields: str) -> tuple[Shape, ...]:
        return tuple(child for child in self.children if child.field not in fields)


_BINDING = frozenset({"pattern", "left", "parameter", "parameters", "store"})
_NAMES = frozenset({"Name", "identifier", "arg", "shorthand_property_identifier_pattern"})


def names_in(root: Shape) -> set[str]:
    """Names that code uses without binding them itself: what it finds around it."""
    used: set[str] = set()
    bound: set[str] = set()
    called: set[str] = set()
    for shape in root.walk():
        if shape.field in _BINDING or (shape.field == "name" and shape.kind in _NAMES) or shape.kind == "arg":
            bound.update(part.text for part in shape.walk() if part.kind in _NAMES)
        if shape.kind in _NAMES:
            used.add(shape.text)
        elif shape.kind == "method_invocation" and shape.part("object") is None:
            called.update(child.text for child in shape.children if child.field == "name")
    return (used - bound) | called


_SUCCESS = frozenset({"int 0", "0", "NoneType None", "bool False", "undefined", "null"})


def says_success(call: Shape) -> bool:
    """The call of an exit has no argument, or one that stands for success."""
    arguments = call.part("arguments")
    inside = arguments.children if arguments is not None else call.children[1:]
    return not inside or inside[0].text in _SUCCESS


class PartKind(StrEnum):
    """What stands in a test file besides tests."""

    helper = "helper"  # a function or class that does nothing unless it is called
    fixture = "fixture"  # given to the tests that ask for it by name
    constant = "constant"
    setup = "setup"  # runs around tests that do not ask for it
    statement = "statement"  # runs when the file is loaded
    holder = "holder"  # the head of a class, module or `describe` that holds tests
    pragma = "pragma"  # decides whether or as what the file is compiled


@dataclass(frozen=True, slots=True)
class SupportPart:
    kind: PartKind
    name: str
    scope: str  # the holder it stands in; empty at the top
    shape: Shape

    @property
    def key(self) -> tuple[PartKind, str, str]:
        return (self.kind, self.scope, self.name)


@dataclass(frozen=True, slots=True)
class SourceTest:
    """One test. Its shape holds marks, parameters and body, but not its name."""

    name: str
    shape: Shape
    line: int
    scope: str = ""
    runs: bool = True  # by its name and place, a runner would take it


@dataclass(frozen=True, slots=True)
class Import:
    name: str  # what the file calls it
    origin: str
    line: int


@dataclass(frozen=True, slots=True)
class Outline:
    cases: tuple[SourceTest, ...] = ()
    parts: tuple[SupportPart, ...] = ()
    imports: tuple[Import, ...] = ()
    broken: bool = False  # parsed in spite of errors

    def shapes(self) -> list[Shape]:
        return [case.shape for case in self.cases] + [part.shape for part in self.parts]

    def names(self) -> set[str]:
        """Every name that the file binds at its top."""
        return {part.name for part in self.parts if not part.scope} | {entry.name for entry in self.imports}

    def mentioned(self) -> set[str]:
        """Every name that stands in its tests and parts."""
        return {shape.text for root in self.shapes() for shape in root.walk() if shape.text}


Reader = Callable[[bytes], Outline]


@dataclass(frozen=True, slots=True)
class Language:
    """One language: how it is read, and what its constructs mean for a test."""

    name: str
    read: Reader
    parse: Callable[[bytes], Shape]
    name_of_call: Callable[[Shape], str]  # dotted name of what a call, macro or mark names; empty for other shapes
    is_check: Callable[[Shape], bool]  # the statement can make its test fail
    is_skip: Callable[[Shape], bool]  # takes a test out of the run
    is_patch: Callable[[Shape], bool]  # replaces code under test
    is_hard_exit: Callable[[Shape], bool]  # ends the whole process, and makes it look like success
    bound_names: Callable[[Shape], Collection[str]]  # by a statement that does nothing but bind names
    blocks: frozenset[str]  # sequences of statements
    tables: frozenset[str]  # literals that hold rows
    loops: frozenset[str]
    guards: frozenset[str]  # kinds under which a check may not run, or may fail unseen
    exits: frozenset[str]  # kinds that leave a block early
    functions: frozenset[str]
    is_table_call: Callable[[Shape], bool]  # hands rows to a test
    embedded: Reader | None = None  # tests that stand inside source
    may_have_changed: Callable[[bytes, bytes], bool] = lambda old, new: False  # cheaply: could those tests differ?
