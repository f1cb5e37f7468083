"""Names what was done to a test that no longer does all it did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from becket.kernel.contract.guard import GuardRule
from becket.parts.guard.reading import words
from becket.parts.guard.reading.languages.shape import Language, Shape

_STRONG = re.compile(
    r"^(?:Eq|Is|assert_?(?:list|dict|count|sequence|tuple|set)?_?equals?|assert_eq!|assertSame|to(?:Be|Equal|StrictEqual)"
    r"|(?:deep|strict|deepStrict)?equals?|is|eql?|isEqualTo|isSameAs|assertArrayEquals|assertIterableEquals|jsonEq"
    r"|toHaveBeenCalledWith|assert_called_once_with|assert_called_with|toMatchInlineSnapshot|toHaveLength)$",
    re.IGNORECASE,
)
_TOLERANCE = re.compile(
    r"approx|almost|close|delta|tolerance|within|epsilon|rtol|atol|\brel\b|\babs\b|places|decimal", re.IGNORECASE
)
_FINER_IS_MORE = re.compile(r"places|decimal|closeto|almost", re.IGNORECASE)
_WIDEST = frozenset({"Exception", "BaseException", "Throwable", "Error", "RuntimeException"})
_NUMBER = re.compile(r"-?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?")
_LITERAL = re.compile(r"Constant|string|literal|^true$|^false$|number|null|nil|None", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Difference:
    rule: GuardRule
    line: int
    message: str


def describe(old: Shape, new: Shape, language: Language, line: int) -> Difference:
    """The first and plainest thing that can be said of a test that changed."""
    for judge in (_skipped, _emptied, _patched, _lost, _guarded, _left_early, _shrunk):
        found = judge(old, new, language)
        if found is not None:
            return Difference(found.rule, found.line or line, found.message)
    return Difference(GuardRule.test_changed, _first_difference(old, new) or line, words.STEPS_CHANGED)


def new_skip(old: Sequence[Shape], new: Sequence[Shape], language: Language) -> Shape | None:
    """A skip that was not there before."""
    known = Counter(part for root in old for part in root.walk() if language.is_skip(part))
    for root in new:
        for part in root.walk():
            if language.is_skip(part):
                if not known[part]:
                    return part
                known[part] -= 1
    return None


def _skipped(old: Shape, new: Shape, language: Language) -> Difference | None:
    found = new_skip([old], [new], language)
    return None if found is None else Difference(GuardRule.test_skipped, found.line, words.SKIPPED)


def _checks(shape: Shape, language: Language) -> Iterator[Shape]:
    if language.is_check(shape):
        yield shape
        return
    for child in shape.children:
        yield from _checks(child, language)


def _emptied(old: Shape, new: Shape, language: Language) -> Difference | None:
    if any(True for _ in _checks(new, language)):
        return None
    if any(True for _ in _checks(old, language)):
        return Difference(GuardRule.test_emptied, 0, words.NO_CHECK_LEFT)
    return Difference(GuardRule.test_emptied, 0, words.NO_STEP_LEFT) if _size(new) * 3 < _size(old) else None


def _size(shape: Shape) -> int:
    return sum(1 for _ in shape.walk())


def _patched(old: Shape, new: Shape, language: Language) -> Difference | None:
    known = {part for part in old.walk() if language.is_patch(part)}
    found = next((part for part in new.walk() if language.is_patch(part) and part not in known), None)
    return None if found is None else Difference(GuardRule.test_weakened, found.line, words.PATCHED)


def _lost(old: Shape, new: Shape, language: Language) -> Difference | None:
    before, after = list(_checks(old, language)), list(_checks(new, language))
    gone = list((Counter(before) - Counter(after)).elements())
    come = list((Counter(after) - Counter(before)).elements())
    if not gone:
        return None
    if len(come) < len(gone):
        return Difference(GuardRule.test_weakened, 0, words.checks_removed(len(gone) - len(come)))
    for was, now in zip(gone, come, strict=False):
        if reason := loosened(was, now, language):
            return Difference(GuardRule.test_weakened, now.line, reason)
    return Difference(GuardRule.test_changed, come[0].line, words.EXPECTATION_CHANGED)


def loosened(old: Shape, new: Shape, language: Language) -> str | None:
    """Why the new check proves less than the old one; None if that cannot be said."""
    if _always_true(new, language):
        return words.ALWAYS_TRUE
    if (_words(new) & _WIDEST) - _words(old):
        return words.WIDER_EXCEPTION
    if _strong(old, language) and not _strong(new, language):
        return words.LOOSER_COMPARISON
    if "keyword:match" in _words(old) - _words(new) or len(_numbers(old)) > len(_numbers(new)) == 0:
        return words.LESS_EXACT
    return _wider_tolerance(old, new)


def _words(shape: Shape) -> set[str]:
    return {part.text for part in shape.walk()} | {f"{part.kind}:{part.text}" for part in shape.walk()}


def _verbs(check: Shape, language: Language) -> Iterator[str]:
    for part in check.walk():
        name = language.name_of_call(part)
        if name:
            yield name.removesuffix("()").rpartition(".")[2]
        elif part.kind in {"Eq", "Is"} or part.text in {"==", "===", "!="}:
            yield "Eq"


def _strong(check: Shape, language: Language) -> bool:
    names = {"None", "nil", "null", "undefined"}
    against_nothing = any(part.text in names or part.text == "NoneType None" for part in check.walk())
    return any(_STRONG.match(verb) for verb in _verbs(check, language)) and not against_nothing


def _always_true(check: Shape, language: Language) -> bool:
    """Nothing but literals, one thing compared with itself, or `... or True`."""
    if any(_has_true_arm(part) or _compares_with_itself(part) for part in check.walk()):
        return True
    if check.kind in {"With", "AsyncWith"}:
        return False
    calls = [name for part in check.walk() if (name := language.name_of_call(part))]
    own = calls[0] if calls and language.is_check(check) and check.kind not in {"Assert", "assert_statement"} else ""
    if any(name != own and not own.startswith(f"{name}()") for name in calls):
        return False
    names = {*re.split(r"[.()!]+", own), "t"}
    leaves = [part for part in check.walk() if not part.children and part.text]
    return any(_LITERAL.search(part.kind) for part in leaves) and all(
        part.text in names or part.kind == part.text or _LITERAL.search(part.kind) for part in leaves
    )


def _has_true_arm(shape: Shape) -> bool:
    return shape.kind in {"BoolOp", "binary_expression"} and any(_is_true(child) for child in shape.children[1:])


def _compares_with_itself(shape: Shape) -> bool:
    if shape.kind not in {"Compare", "binary_expression", "argument_list", "arguments"}:
        return False
    sides = [child for child in shape.children if child.kind not in {"Eq", "==", "==="}]
    return len(sides) == 2 and sides[0] == sides[1]


def _is_true(shape: Shape) -> bool:
    return shape.text in {"bool True", "true"}


def _numbers(shape: Shape) -> list[float]:
    found = (_NUMBER.search(part.text) for part in shape.walk() if _LITERAL.search(part.kind) and part.kind != "string")
    return [_number(match[0]) for match in found if match]


def _number(text: str) -> float:
    try:
        return float(text.replace("_", "").rstrip("."))
    except ValueError:
        return 0.0


def _wider_tolerance(old: Shape, new: Shape) -> str | None:
    names = " ".join(sorted(part.text for part in new.walk()))
    if not _TOLERANCE.search(names):
        return None
    if not _TOLERANCE.search(" ".join(part.text for part in old.walk())):
        return words.TOLERANCE_ADDED
    before, after = _numbers(old), _numbers(new)
    if len(after) > len(before):
        return words.TOLERANCE_WIDER
    finer = bool(_FINER_IS_MORE.search(names))
    pairs = [(was, now) for was, now in zip(before, after, strict=False) if was != now]
    return words.TOLERANCE_WIDER if any((now < was) if finer else (now > was) for was, now in pairs) else None


def _guarded(old: Shape, new: Shape, language: Language) -> Difference | None:
    """The same checks, but under a condition, a loop or a handler that was not there."""
    before = Counter(place for child in old.children for place in _under(child, language, ()))
    for place in (place for child in new.children for place in _under(child, language, ())):
        check, guards = place
        if before[place]:
            before[place] -= 1
        elif guards:
            return Difference(GuardRule.test_weakened, check.line, words.GUARDED)
    return None


def _under(shape: Shape, language: Language, guards: tuple[Shape, ...]) -> Iterator[tuple[Shape, tuple[Shape, ...]]]:
    if language.is_check(shape):
        yield shape, guards
        return
    if shape.kind in language.guards:
        head = tuple(child for child in shape.children if child.kind not in language.blocks)
        guards = (*guards, Shape(shape.kind, shape.text, head, shape.line))
    for child in shape.children:
        yield from _under(child, language, guards)


def _left_early(old: Shape, new: Shape, language: Language) -> Difference | None:
    known = Counter(part for part in old.walk_outside(language.functions) if part.kind in language.exits)
    for part in new.walk_outside(language.functions):
        if part.kind in language.exits or language.is_hard_exit(part):
            if not known[part]:
                return Difference(GuardRule.test_weakened, part.line, words.LEFT_EARLY)
            known[part] -= 1
    return None


def _shrunk(old: Shape, new: Shape, language: Language) -> Difference | None:
    """Rows of a table are gone."""
    before = [part for part in old.walk() if part.kind in language.tables]
    after = [part for part in new.walk() if part.kind in language.tables]
    for was, now in zip(before, after, strict=False):
        if len(now.children) < len(was.children) and set(now.children) <= set(was.children):
            return Difference(
                GuardRule.test_weakened, now.line, words.rows_removed(len(was.children) - len(now.children))
            )
    return None


def _first_difference(old: Shape, new: Shape) -> int:
    """The line in `new` where the two part."""
    while True:
        if old.kind != new.kind or old.text != new.text or len(old.children) != len(new.children):
            return new.line
        pair = next(((a, b) for a, b in zip(old.children, new.children, strict=True) if a != b), None)
        if pair is None:
            return new.line
        old, new = pair
