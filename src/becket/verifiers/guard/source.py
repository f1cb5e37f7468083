"""Cheats in source that are hardly ever anything else: code that knows it is tested, equals all, or just ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from becket.contract.guard import Change, ChangedFile, GuardRule, Refusal
from becket.verifiers.guard import detection, equality, tampering, words
from becket.verifiers.guard.languages import language_of, tongue_for
from becket.verifiers.guard.languages.shape import Shape, Tongue, Unreadable
from becket.verifiers.guard.paths import refused
from becket.verifiers.guard.side import TestSide
from becket.verifiers.guard.text import added_lines, is_binary

_LARGEST_PARSED = 1_500_000
_WORTH_PARSING = re.compile("|".join((detection.HINTS, equality.HINTS, tampering.HINTS)))
_PROGRAM = re.compile(
    r"(?:^|/)(?:__main__\.py|bin/|scripts?/|tools?/|cmd/|manage\.py|setup\.py)|(?:^|/)(?:main|cli)\.[cm]?[jt]s$"
)
_Search = Callable[[Shape, Tongue], Iterator[Shape]]
_RULES: tuple[tuple[GuardRule, str, _Search], ...] = (
    (GuardRule.always_equal, words.ALWAYS_EQUAL, equality.always_equal),
    (GuardRule.test_tool_patched, words.TOOL_PATCHED, tampering.tools_patched),
    (GuardRule.early_exit, words.EXITS_WHEN_DONE, tampering.exits_when_done),
)
_RULES_OF_MODULES = (*_RULES, (GuardRule.early_exit, words.EXITS_AT_LOAD, tampering.exits_at_load))


def judge_source(change: Change, side: TestSide) -> Iterator[Refusal]:
    for file in change.files:
        if not file.in_candidate or file.same or side.holds(file.path) or language_of(file.path) is None:
            continue
        if file.new_size > _LARGEST_PARSED:
            continue
        new = file.new()
        if not is_binary(new):
            yield from _judge(file, new)


def _judge(file: ChangedFile, new: bytes) -> Iterator[Refusal]:
    added = dict(added_lines(file.old(), new))
    if not _WORTH_PARSING.search("\n".join(added.values())):
        return
    tongue = tongue_for(file.path)
    if tongue is None:
        return
    try:
        root = tongue.parse(new)
    except (Unreadable, RecursionError):
        return
    code = {shape.line for shape in root.walk()}
    for number in detection.lines_that_detect(language_of(file.path) or "", added, code):
        yield refused(GuardRule.test_detected, file.path, words.TEST_DETECTED, number)
    is_program = new.startswith(b"#!") or _PROGRAM.search(file.path)
    for rule, message, search in _RULES if is_program else _RULES_OF_MODULES:
        for shape in search(root, tongue):
            if any(number in added for number in range(shape.line, _last_line(shape) + 1)):
                yield refused(rule, file.path, message, shape.line)


def _last_line(shape: Shape) -> int:
    return max(part.line for part in shape.walk())
