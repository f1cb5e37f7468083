"""What tests stand on: imports, helpers, fixtures, constants and set-up in a test file may grow, but not change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from becket.kernel.contract.guard import GuardRule
from becket.parts.guard.reading import words
from becket.parts.guard.reading.growth import has_only_grown, tables_in
from becket.parts.guard.reading.languages.shape import Language, Outline, PartKind, Shape, SupportPart, names_in
from becket.parts.guard.reading.languages.treesitter import dotted
from becket.parts.guard.reading.moves import absolute_origin
from becket.parts.guard.reading.weakening import Difference, new_skip

_Key = tuple[PartKind, str, str]
_NAMED = frozenset({PartKind.helper, PartKind.fixture, PartKind.constant, PartKind.holder})
_FREE_TO_GO = frozenset({PartKind.helper, PartKind.constant})
_ENDS_OR_CROWDS_OUT = re.compile(rb"(?i)exit|halt|os\.kill|\bonly\b|\bfit\b|fdescribe|fcontext")
_CROWDS_OUT = re.compile(r"(?:^|\.)only(?:$|\.)|^(?:fit|fdescribe|fcontext)(?:$|\.)")
_WILD = re.compile(r"\*$|asterisk")
_MAIN = re.compile(r"__name__|require\.main|import\.meta\.main")


def compare_support(old: Outline, new: Outline, language: Language, paths: tuple[str, str]) -> Iterator[Difference]:
    """All that is wrong with how a test file changed outside its tests. `paths`: the old and the new one."""
    yield from _imports(old, new, paths)
    yield from _wildcards(old, new, language)
    yield from _Parts(old, new, language).differences()


def judge_new_file(new: Outline, language: Language, source: bytes) -> Iterator[Difference]:
    """A new file proves nothing, and may not reach into other tests when it is loaded."""
    for part in new.parts:
        if part.kind in {PartKind.statement, PartKind.constant} and not _is_main(part.shape):
            yield from _reaching(part.shape, new, language)
        elif part.kind is PartKind.setup and _reaches_beyond_the_file(part, language):
            yield Difference(GuardRule.test_support_changed, part.shape.line, words.setup_added(part.name))
    yield from judge_new_tests(new.shapes(), language, source)


def judge_new_tests(shapes: Sequence[Shape], language: Language, source: bytes) -> Iterator[Difference]:
    """A new test may not end the run, nor crowd the others out of it."""
    for root in shapes if _ENDS_OR_CROWDS_OUT.search(source) else ():
        for shape in root.walk():
            if language.is_hard_exit(shape):
                yield Difference(GuardRule.early_exit, shape.line, words.EXITS)
            elif language.is_skip(shape) and _CROWDS_OUT.search(shape.text or _flat(shape)):
                yield Difference(GuardRule.test_skipped, shape.line, words.CROWDS_OUT)


def _flat(shape: Shape) -> str:
    return ".".join(part.text for part in shape.walk_outside(frozenset({"arguments", "function"})) if part.text)


def _reaches_beyond_the_file(part: SupportPart, language: Language) -> bool:
    if language.name == "Go":
        return part.name in {"TestMain", "init"}
    return language.name == "Python" and part.name in {"pytest_plugins", "load_tests"}


def _reaching(shape: Shape, outline: Outline, language: Language) -> Iterator[Difference]:
    """JavaScript's runners load each file apart: there only what it imports from the project itself is shared."""
    own = {entry.name for entry in outline.imports if entry.origin.startswith(".")}
    apart = language.name in {"JavaScript", "TypeScript"}
    for found in shape.walk_outside(language.functions):
        if not language.is_patch(found) or (apart and not _assigns_to(found, own)):
            continue
        yield Difference(GuardRule.test_weakened, found.line, words.PATCHED_AT_LOAD)
        return


def _assigns_to(shape: Shape, names: set[str]) -> bool:
    left = shape.part("left")
    return left is not None and dotted(left).partition(".")[0] in names


def _is_main(shape: Shape) -> bool:
    return any(_MAIN.search(part.text) for part in shape.walk_outside(frozenset({"block", "statement_block"})))


def _imports(old: Outline, new: Outline, paths: tuple[str, str]) -> Iterator[Difference]:
    before: dict[str, set[str]] = defaultdict(set)
    for entry in old.imports:
        before[entry.name].add(absolute_origin(paths[0], entry.origin))
    defined = {part.name for part in old.parts if not part.scope}
    for entry in new.imports:
        known = before.get(entry.name)
        moved = known and absolute_origin(paths[1], entry.origin) not in known
        if moved or (not known and entry.name in defined):
            yield Difference(GuardRule.test_support_changed, entry.line, words.import_changed(entry.name))


def _wildcards(old: Outline, new: Outline, language: Language) -> Iterator[Difference]:
    """Whatever a new `import *` brings may hide what the tests used: in Python at once, elsewhere where that went."""
    known = {entry.origin for entry in old.imports}
    gone = known - {entry.origin for entry in new.imports}
    for entry in new.imports if gone or language.name == "Python" else ():
        if entry.origin not in known and entry.name == entry.origin and _WILD.search(entry.origin):
            yield Difference(GuardRule.test_support_changed, entry.line, words.import_changed(entry.origin))


class _Parts:
    def __init__(self, old: Outline, new: Outline, language: Language) -> None:
        self._old, self._new, self._tongue = old, new, language
        self._before, self._after = _by_key(old.parts), _by_key(new.parts)
        self._tested = {case.scope for case in old.cases}

    def differences(self) -> Iterator[Difference]:
        for key in dict.fromkeys((*self._before, *self._after)):
            before, after = list(self._before.get(key, ())), list(self._after.get(key, ()))
            for part in list(before):
                if part in after:
                    before.remove(part)
                    after.remove(part)
            yield from self._unequal(key, before, after)

    def _unequal(self, key: _Key, before: list[Shape], after: list[Shape]) -> Iterator[Difference]:
        kind, scope, name = key
        skip = new_skip(before, after, self._tongue)
        if skip is not None and not before and kind is PartKind.constant and _only_names_a_mark(after):
            skip = None  # a test that was there before and gets the mark changes by it
        if skip is not None and (before or scope in self._tested or self._covers_old_tests(scope, name)):
            yield Difference(GuardRule.test_skipped, skip.line, words.SKIPPED)
            return
        if kind in _NAMED and before and after:
            if not (len(before) == len(after) == 1 and self._grown(before[0], after[0])):
                yield Difference(GuardRule.test_support_changed, after[0].line, words.support_changed(kind, name))
            return
        for shape in after:
            yield from self._added(kind, scope, name, shape)
        for shape in before:
            yield from self._removed(kind, scope, name, shape)

    def _grown(self, before: Shape, after: Shape) -> bool:
        """A table that tests go through row by row may get more rows."""
        bound = self._tongue.bound_names(before)
        iterated = tables_in(self._old.shapes(), self._tongue)
        return bool(set(bound) & iterated) and has_only_grown(before, after, self._tongue, iterated)

    def _covers_old_tests(self, scope: str, name: str) -> bool:
        """Is there an old test in the place that this part is about?"""
        return any(case.scope in {scope, name} for case in self._old.cases)

    def _added(self, kind: PartKind, scope: str, name: str, shape: Shape) -> Iterator[Difference]:
        if kind in _NAMED:
            yield from self._named_added(kind, scope, name, shape)
        elif kind is PartKind.setup:
            if self._reaches_old_tests(scope):
                yield Difference(GuardRule.test_support_changed, shape.line, words.setup_added(name))
        elif kind is PartKind.pragma:
            yield Difference(GuardRule.test_support_changed, shape.line, words.pragma_changed(name))
        elif not _is_main(shape) and self._reaches_old_tests(scope):
            yield Difference(GuardRule.test_support_changed, shape.line, words.STATEMENT_ADDED)

    def _reaches_old_tests(self, scope: str) -> bool:
        return any(not scope or case.scope == scope or case.scope.startswith(scope) for case in self._old.cases) or (
            not scope and not self._old.cases
        )

    def _named_added(self, kind: PartKind, scope: str, name: str, shape: Shape) -> Iterator[Difference]:
        names = set(name.split(","))
        if self._hides(kind, scope, names):
            yield Difference(GuardRule.test_support_changed, shape.line, words.redefined(name))
        elif names & {case.name for case in self._old.cases}:
            yield Difference(GuardRule.test_deleted, shape.line, words.redefined(name))
        elif kind is PartKind.constant:
            yield from _reaching(shape, self._old, self._tongue)

    def _hides(self, kind: PartKind, scope: str, names: set[str]) -> bool:
        """Would old tests now find this instead of what they found before?"""
        if not scope and names & self._old.names():
            return True
        if scope and any(part.scope == scope and part.name in names for part in self._old.parts):
            return True
        if scope and kind is not PartKind.fixture and names & self._inherited(scope):
            return True
        return self._asked_for(names) if kind is PartKind.fixture else bool(names & self._borrowed)

    @cached_property
    def _borrowed(self) -> set[str]:
        """Names that old tests use and neither bind nor import by name: built in, or imported with all else."""
        found = {name for root in self._old.shapes() for name in names_in(root)}
        return found - self._old.names() - {name for part in self._old.parts for name in part.name.split(",")}

    def _inherited(self, scope: str) -> set[str]:
        """Attributes that old tests of a class use."""
        mine = [case.shape for case in self._old.cases if case.scope == scope]
        return {part.text for root in mine for part in root.walk() if part.kind == "Attribute"}

    def _asked_for(self, names: set[str]) -> bool:
        """Does a test that was there before take a parameter of this name?"""
        return any(part.kind == "arg" and part.text in names for case in self._old.cases for part in case.shape.walk())

    def _removed(self, kind: PartKind, scope: str, name: str, shape: Shape) -> Iterator[Difference]:
        if kind is PartKind.holder:
            if shape.text == "file":
                yield Difference(GuardRule.test_deleted, shape.line, words.test_gone(name))
            return  # its tests are looked for one by one
        if kind in _FREE_TO_GO and not scope and not set(name.split(",")) & self._new.mentioned():
            return
        if scope and not any(part.kind is PartKind.holder and part.name == scope for part in self._new.parts):
            return  # gone with its holder
        yield Difference(GuardRule.test_support_changed, shape.line, words.support_removed(kind, name))


def _only_names_a_mark(shapes: Sequence[Shape]) -> bool:
    """`later = pytest.mark.skipif(...)` skips nothing; `later = pytest.importorskip(...)` does at once."""
    calls = [part for shape in shapes for part in shape.walk() if part.kind == "Call"]
    return all(any(inner.text == "mark" for inner in call.children[0].walk()) for call in calls if _may_skip(call))


def _may_skip(call: Shape) -> bool:
    return any(part.text in {"pytest", "unittest", "skip", "importorskip", "exit"} for part in call.children[0].walk())


def _by_key(parts: Sequence[SupportPart]) -> dict[_Key, list[Shape]]:
    found: dict[_Key, list[Shape]] = defaultdict(list)
    for part in parts:
        found[part.key].append(part.shape)
    return found
