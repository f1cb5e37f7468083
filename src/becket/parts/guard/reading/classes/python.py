"""Facts of Python source, by Python's own parser."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from becket.parts.guard.reading.classes.facts import (
    NO_FILE,
    CodeUnit,
    Construct,
    Fact,
    FactKind,
    Facts,
    FileOutline,
    LocatedCode,
    SourceFile,
    mark_returns_before_checks,
)
from becket.parts.guard.reading.classes.pyfacts import Reader
from becket.parts.guard.reading.classes.pyscope import (
    FUNCTIONS,
    Function,
    Scope,
    blocks,
    bound,
    holds_functions,
    imported,
    joined,
    scope_of,
)
from becket.parts.guard.reading.classes.table import PYTHON
from becket.parts.guard.reading.languages.pyshape import is_text, parse_module
from becket.parts.guard.reading.languages.shape import UnreadableSource

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def read_python(old: bytes | None, new: bytes) -> tuple[SourceFile, SourceFile]:
    """Both versions. What stands before and after the change is parsed once, and counted only where it is asked for."""
    after = _decoded(new)
    tree = parse_module(after.encode())
    lines = after.split("\n")
    if old is None:
        return NO_FILE, _Module(tree.body, tree.body, lines).file()
    before = _decoded(old)
    change = _changed(tree.body, before.split("\n"), lines)
    if change is None:
        whole = parse_module(before.encode())
        return _Module(whole.body, whole.body, before.split("\n")).file(), _Module(tree.body, tree.body, lines).file()
    same, come = [*tree.body[: change.first], *tree.body[change.last :]], tree.body[change.first : change.last]
    around = scope_of(same)
    old_file = _Module(change.old, [*same, *change.old], before.split("\n"), around | scope_of(change.old)).file()
    new_file = _Module(come, tree.body, lines, around | scope_of(come)).file()
    old_file.rest = cache(partial(_facts_of, same, [*same, *change.old], lines))  # names mean what they meant
    new_file.rest = cache(partial(_facts_of, same, tree.body, lines))
    return old_file, new_file


def _facts_of(body: list[ast.stmt], whole: list[ast.stmt], lines: list[str]) -> Counter[Fact]:
    return _Module(body, whole, lines).file().known


@dataclass(frozen=True, slots=True)
class _Changed:
    """The statements of the new file from `first` up to `last` stand in the place of those of the old one."""

    first: int
    last: int
    old: list[ast.stmt]


def _changed(body: list[ast.stmt], old: list[str], new: list[str]) -> _Changed | None:
    """Which statements differ. None where that cannot be told from whole lines.

    What is outside is whole statements and the same text; if the old text in between is whole statements as well, the
    old file is what it would be parsed as.
    """
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    spans = [
        (min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]), node.end_lineno or 0)
        for node in body
    ]
    touched = [at for at, (begin, end) in enumerate(spans) if end > head and begin <= len(new) - tail]
    first = touched[0] if touched else next((at for at, (begin, _) in enumerate(spans) if begin > head), len(body))
    last = touched[-1] + 1 if touched else first
    begin = min(spans[first][0] if touched else head + 1, head + 1)
    end = max(spans[last - 1][1] if touched else 0, len(new) - tail)
    if any(a <= end and b >= begin for a, b in (*spans[:first], *spans[last:])):
        return None
    try:
        part = parse_module("\n".join(old[begin - 1 : end + len(old) - len(new)]).encode())
    except UnreadableSource:
        return None
    return _Changed(first, last, [ast.increment_lineno(node, begin - 1) for node in part.body])


def _decoded(source: bytes) -> str:
    """Python obeys a coding cookie; what we show people is UTF-8. The two must be one."""
    for line in source.split(b"\n", 2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8", b"ascii", b"us-ascii"):
            raise UnreadableSource("its encoding is not UTF-8")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableSource("it is not UTF-8") from error
    text = text.replace("\r\n", "\n")
    if any(each in text for each in "\0\r\v"):
        raise UnreadableSource("it holds control characters")
    return text


class _Module:
    """One file: what its names mean, and its units. `body` is what may differ, `whole` is all of it."""

    def __init__(
        self, body: list[ast.stmt], whole: list[ast.stmt], lines: list[str], scope: Scope | None = None
    ) -> None:
        self._body, self._whole, self._lines = body, whole, lines
        self._scope = scope or scope_of(whole)
        self._units: dict[str, CodeUnit] = {}
        self._outside: dict[str, list[ast.stmt]] = {}

    def file(self) -> SourceFile:
        self._take(self._body, "")
        for place, body in self._outside.items():
            read = partial(self._outside_facts, body, place)
            self._enter(CodeUnit(place or "(module)", 0, "\n".join(map(self._text, body)), read))
        return SourceFile(self._units, partial(_defined, self._whole), lay_out=partial(_outline, self._whole))

    def _take(self, body: list[ast.stmt], place: str) -> None:
        kept = self._outside.setdefault(place, [])
        for node in body:
            if isinstance(node, FUNCTIONS):
                self._function(node, place)
            elif isinstance(node, ast.ClassDef):
                kept.append(_head(node))
                self._take(node.body, f"{place}{node.name}.")
            elif holds_functions(node):
                kept.append(node)
                for block in blocks(node):
                    self._take([each for each in block if isinstance(each, (*FUNCTIONS, ast.ClassDef))], place)
            else:
                kept.append(node)

    def _function(self, node: Function, place: str) -> None:
        hook = PYTHON.hooks(node.name)
        unit = CodeUnit(
            f"{place}{node.name}", node.lineno, self._text(node), partial(self._function_facts, node, place),
            hook, meaning=partial(_meaning, node),
        )  # fmt: skip
        self._enter(unit)

    def _enter(self, unit: CodeUnit) -> None:
        """A name that is defined twice is two units: the second one hides the first."""
        number, name = 1, unit.name
        while name in self._units:
            number += 1
            name = f"{unit.name} ({number})"
        self._units[name] = unit

    def _text(self, node: ast.stmt) -> str:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        return "\n".join(self._lines[first - 1 : node.end_lineno])

    def _function_facts(self, node: Function, place: str) -> Facts:
        reader = Reader(self._scope)
        for mark in node.decorator_list:
            reader.facts.add(FactKind.mark, Construct.decorator, mark.lineno)
        if PYTHON.hooks(node.name):
            reader.facts.add(FactKind.mark, Construct.hook, node.lineno)
        reader.function(node)
        return mark_returns_before_checks(reader.facts)

    def _outside_facts(self, body: list[ast.stmt], place: str) -> Facts:
        reader = Reader(self._scope)
        if place:
            reader.push(Scope(bound(body), is_class=True))
        for node in body:
            if is_text(node):
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for _, target in imported(node) if place else ():  # taken from the class, it cannot be followed
                    reader.facts.add(FactKind.name, joined(target), node.lineno)
            else:
                reader.facts.add(FactKind.outside, _digest(node), node.lineno)
            reader.outside(node)
            for name in bound([node]) if place else ():
                if PYTHON.hooks(name):
                    reader.facts.add(FactKind.mark, Construct.hook, node.lineno)
        return reader.facts


def _defined(body: list[ast.stmt]) -> frozenset[str]:
    """Names bound at the top, functions and classes wherever they stand, and attributes that are written."""
    found = set(bound(body))
    for node in body:
        for part in ast.walk(node):
            if isinstance(part, (*FUNCTIONS, ast.ClassDef)):
                found.add(part.name)
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                found.add(part.attr)
            if isinstance(part, ast.ClassDef):
                found |= bound(part.body)
    return frozenset(found)


def _outline(body: list[ast.stmt]) -> FileOutline:
    names: Counter[str] = Counter()
    stands = tuple(_stands(body, "", names))
    return FileOutline(stands, frozenset(name for name, count in names.items() if count > 1))


def _stands(body: list[ast.stmt], place: str, names: Counter[str]) -> Iterator[LocatedCode]:
    """In order; counts how often each name is bound where it stands."""
    for node in body:
        names.update(f"{place}{name}" for name in bound([node]))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(f"{place}{name}" for name, _ in imported(node))
        if isinstance(node, FUNCTIONS):
            yield LocatedCode(place, node.name, is_function=True)
            continue
        yield LocatedCode(place, ast.dump(_head(node) if isinstance(node, ast.ClassDef) else node))
        if isinstance(node, ast.ClassDef):
            yield from _stands(node.body, f"{place}{node.name}.", names)


def _head(node: ast.ClassDef) -> ast.ClassDef:
    """A class without what stands in it."""
    made = ast.ClassDef(node.name, node.bases, node.keywords, [ast.Pass(lineno=node.lineno)], node.decorator_list)
    ast.copy_location(made, node)
    made.end_lineno = node.body[0].lineno - 1 if node.body and node.body[0].lineno > node.lineno else node.lineno
    return made


def _digest(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]


def _meaning(node: Function) -> str:
    """What a function does, whatever its locals are called and its text says."""
    local = sorted(scope_of(node.body, node.args).names)
    text = ast.dump(ast.Module([each for each in node.body if not is_text(each)], []))
    order = sorted((text.find(f"'{name}'"), name) for name in local)
    for number, (_, name) in enumerate(order):
        text = re.sub(rf"(?<=id=)'{re.escape(name)}'|(?<=arg=)'{re.escape(name)}'", f"<{number}>", text)
    return text
