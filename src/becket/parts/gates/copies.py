"""Is a hold-out check a check of its own, or a failing test under another name?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

FRAMEWORKS = {
    "Python": r"\b(?:pytest|unittest|doctest|nose2?|hypothesis)\b",
    "JavaScript": r"\bnode:test\b|['\"](?:jest|@jest/\w+|vitest|mocha|chai|ava|tape|jasmine)['\"]|\bdescribe\s*\(",
    "TypeScript": r"\bnode:test\b|['\"](?:jest|@jest/\w+|vitest|mocha|chai|ava|tape|jasmine)['\"]|\bdescribe\s*\(",
    "Go": r"\"testing(?:/\w+)?\"|\"github\.com/stretchr/testify",
}
"""By language: how a check gives away that it uses a test framework."""

GRAM, VALUES = 3, 2
MOSTLY = 0.5
_COMMENT = re.compile(r"/\*.*?\*/|(?:^|(?<=\s))(?:#|//)[^\n]*", re.DOTALL)
_IMPORT = re.compile(
    r"^\s*(?:import\b[^\n]*|from\s+\S+\s+import\b[^\n]*|(?:const|let|var)\b[^\n]*\brequire\([^\n]*|package\s+\w+)$",
    re.MULTILINE,
)
_EXIT = re.compile(r"\bexit\(\s*\d+\s*\)|\bSystemExit\(\s*\d+\s*\)", re.IGNORECASE)
_TOKEN = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|\d[\w.]*|\w+")
_PATH = re.compile(r"[\w./-]+")
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
_USUAL = """
    assert assertEqual assertEquals assertTrue assertFalse const def deepEqual deepStrictEqual describe else equal
    exit expect func function if it let main main__ name not ok Ok print process raise return self strictEqual sys
    SystemExit test toBe toEqual True true var os Exit panic throw new Error is AssertionError
"""
_ANYWHERE = frozenset(_USUAL.split())
"""Words that checks and tests share because of what they are."""


def why_not(text: str, framework: str, failing: Sequence[str], side: Collection[str]) -> str:
    """Why this check counts for nothing, or nothing. `failing` are the texts of the files with the failing tests,
    `side` the paths of the test side.
    """
    code = _COMMENT.sub(" ", text)
    if re.search(framework, code):
        return "it uses a test framework"
    if (named := next(_names(code, side), None)) is not None:
        return f"it uses {named}, which belongs to the tests"
    if share(text, failing) >= MOSTLY:
        return "it is mostly a copy of a failing test"
    return ""


def share(text: str, others: Sequence[str]) -> float:
    """How much of it stands in one of the others: by runs of words and values, or of values alone, whatever the names
    around them are. Layout and comments do not count.
    """
    return max((_part(_words(text), _words(other)) for other in others), default=0.0)


def _part(own: list[str], other: list[str]) -> float:
    values = [[word for word in words if _is_value(word)] for words in (own, other)]
    return max(_shared(own, other, GRAM), _shared(values[0], values[1], VALUES))


def _shared(own: list[str], other: list[str], length: int) -> float:
    grams, known = _grams(own, length), set(_grams(other, length))
    return sum(gram in known for gram in grams) / len(grams) if grams else 0.0


def _grams(words: list[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]


def _words(text: str) -> list[str]:
    code = _EXIT.sub("", _IMPORT.sub("", _COMMENT.sub(" ", text)))
    return [word for token in _TOKEN.findall(code) if (word := _plain(token)) not in _ANYWHERE]


def _is_value(word: str) -> bool:
    return word[0] == '"' or word[0].isdigit()


def _plain(token: str) -> str:
    return f'"{token[1:-1]}"' if token[0] in "\"'" else token


def _names(code: str, side: Collection[str]) -> Iterator[str]:
    """Files of the test side that the code names: by path, by file name, or as a module that it imports."""
    words = {word.removeprefix("./").removeprefix("../") for word in _PATH.findall(code)}
    imported = set(_IMPORTED.findall(code))
    for path in side:
        pure = PurePosixPath(path)
        modules = {pure.stem, ".".join(pure.with_suffix("").parts)}
        if path in words or pure.name in words or modules & imported:
            yield path
