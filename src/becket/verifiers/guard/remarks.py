"""Notes: what no rule can prove wrong. They never stop a change; a person sees the line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from becket.contract.guard import Change, ChangedFile, FailingTest, Note, NoteRule
from becket.verifiers.guard import words
from becket.verifiers.guard.languages import language_of, tongue_for
from becket.verifiers.guard.languages.shape import Shape, Tongue, Unreadable
from becket.verifiers.guard.side import TestSide
from becket.verifiers.guard.text import added_lines, is_binary, shown

_LARGEST = 1_500_000
_MOST = 50
_LINES: tuple[tuple[NoteRule, str, re.Pattern[str]], ...] = (
    (
        NoteRule.nan_returned,
        words.NAN_RETURNED,
        re.compile(
            r"\breturn\b.*(?:\bfloat\(\s*[\"']-?nan|\b(?:math|np|numpy)\.nan\b|\bNaN\b|math\.NaN\(\)|::NAN\b)",
            re.IGNORECASE,
        ),
    ),
    (
        NoteRule.idle_arithmetic,
        words.IDLE_ARITHMETIC,
        # times zero, x - x, x / x
        re.compile(
            r"(?<![\w.])0(?:\.0+)?\s*\*\s*[A-Za-z_(]|[\w)\]]\s*\*\s*0(?:\.0+)?(?![\w.])"
            r"|(?<![\w.])([A-Za-z_]\w*)\s[-/]\s\1(?![\w.(\[])"
        ),
    ),
    (
        NoteRule.error_swallowed,
        words.ERROR_SWALLOWED,
        re.compile(
            r"^\s*except(?:\s+\(?(?:Base)?Exception\)?(?:\s+as\s+\w+)?)?\s*:|\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}|suppress\(\s*(?:Base)?Exception"
        ),
    ),
    (
        NoteRule.check_silenced,
        words.CHECK_SILENCED,
        re.compile(
            r"#\s*(?:noqa|type:\s*ignore|pylint:\s*disable|pyright:\s*ignore)|eslint-disable|@ts-(?:ignore|nocheck|expect-error)|//\s*nolint|#!?\[allow\(|@SuppressWarnings"
        ),
    ),
    (
        NoteRule.test_aware,
        words.TEST_AWARE,
        re.compile(
            r"NODE_ENV\b.*\btest\b|\bAPP_ENV\b.*\btest\b|^\s*(?:import|from)\s+_?pytest\b|\bunder_test\b|\bis_testing\b|[\"']BECKET_[A-Z]|\bTESTING\b"
        ),
    ),
    (
        NoteRule.module_patched,
        words.MODULE_PATCHED,
        re.compile(
            r"\bsys\.modules\[|\bimportlib\.reload\(|\.prototype\.\w+\s*=[^=]|\bos\._exit\(|\bgc\.get_|\bsys\.settrace\("
        ),
    ),
)
_COMPARED = frozenset(
    {"Compare", "match_value", "MatchValue", "pair", "case", "switch_case", "match_pattern", "expression_case"}
)
_OPERATORS = frozenset({"==", "===", "!=", "!=="})
_LITERAL = re.compile(r"^(?:Constant|string|number|\w*_literal|string_fragment)$")
_COMMON = frozenset({"0", "1", "2", "-1", "10", "100", "", "true", "false", "None", "null"})


def remarks(change: Change, side: TestSide, failing: Sequence[FailingTest] = ()) -> tuple[Note, ...]:
    """Notes on the source side of a change. `failing`: the tests that the change is to repair, as base has them."""
    literals = _literals_of(failing)
    found: list[Note] = []
    for file in change.files:
        if file.in_candidate and not file.same and not side.holds(file.path) and file.new_size <= _LARGEST:
            found.extend(_of_file(file, literals))
        if len(found) >= _MOST:
            break
    return tuple(sorted(found[:_MOST], key=lambda note: (note.path, note.line, note.rule)))


def _of_file(file: ChangedFile, literals: frozenset[str]) -> Iterator[Note]:
    new = file.new()
    if is_binary(new):
        if file.in_base:
            yield Note(rule=NoteRule.binary_changed, path=file.path, line=0, message=words.BINARY_CHANGED, shown="")
        return
    if language_of(file.path) is None:
        return
    added = dict(added_lines(file.old(), new))
    for rule, message, pattern in _LINES:
        for number, line in added.items():
            if pattern.search(line):
                yield Note(rule=rule, path=file.path, line=number, message=message, shown=shown(line))
    yield from _special_cases(file, new, added, literals)


def _special_cases(file: ChangedFile, new: bytes, added: dict[int, str], literals: frozenset[str]) -> Iterator[Note]:
    tongue = tongue_for(file.path)
    if not literals or tongue is None or not any(literal in line for line in added.values() for literal in literals):
        return
    try:
        root = tongue.parse(new)
    except (Unreadable, RecursionError):
        return
    told: set[int] = set()
    for shape in root.walk():
        if shape.line in added and shape.line not in told and (found := _compared(shape) & literals):
            told.add(shape.line)
            yield Note(
                rule=NoteRule.suspect_special_case,
                path=file.path,
                line=shape.line,
                message=words.special_case(min(found)),
                shown=shown(added[shape.line]),
            )


def _compared(shape: Shape) -> set[str]:
    """Literals that a value is compared with here."""
    if shape.kind in _COMPARED or any(child.text in _OPERATORS for child in shape.children):
        return {
            _value(part)
            for child in shape.children
            for part in child.walk_outside({"block"})
            if _LITERAL.match(part.kind)
        }
    return set()


def _value(literal: Shape) -> str:
    text = literal.text
    if literal.kind == "Constant":
        text = text.partition(" ")[2]
    return text.strip("\"'`")


def _literals_of(failing: Sequence[FailingTest]) -> frozenset[str]:
    """Values that stand in the failing tests and are not commonplace."""
    found: set[str] = set()
    for test in failing:
        tongue = tongue_for(test.path)
        if tongue is None:
            continue
        try:
            shapes = _shapes_of(test, tongue)
        except (Unreadable, RecursionError):
            continue
        found.update(_value(part) for root in shapes for part in root.walk() if _LITERAL.match(part.kind))
    return frozenset(value for value in found if value not in _COMMON and len(value) >= 2 and len(value) <= 200)


def _shapes_of(test: FailingTest, tongue: Tongue) -> list[Shape]:
    outline = tongue.read(test.content())
    last = re.split(r"::|\.| > |/", test.name)[-1].partition("[")[0] if test.name else ""
    named = [case.shape for case in outline.cases if last and case.name.endswith(last)]
    return named or [case.shape for case in outline.cases]
