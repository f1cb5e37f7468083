"""Globs over repository paths, as in a .gitignore file. The crossing proof uses the same ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<any>(?:(?<=^)|(?<=/))\*\*/)|(?P<below>/\*\*$)|(?P<star>\*+)|(?P<one>\?)|(?P<set>\[!?\]?[^\]]*\])"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|(?P<char>.)",
    re.DOTALL,
)
_PLAIN = {"any": r"(?:[^/]+/)*", "below": r"/.+", "star": r"[^/]*", "one": r"[^/]"}


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Does one of the patterns name this path, or a folder above it?"""
    return bool(patterns) and _compiled(tuple(patterns)).match(path) is not None


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_translated(pattern)})" for pattern in patterns), re.DOTALL)


def _translated(pattern: str) -> str:
    body = pattern.removeprefix("./").rstrip("/")
    anchored = "/" in body
    body = body.removeprefix("/")
    lead = "" if anchored else r"(?:[^/]+/)*"
    return rf"\A{lead}{_body(body)}(?:/.*)?\Z"


def _body(pattern: str) -> str:
    braces = closes(pattern)
    depth = 0
    made: list[str] = []
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup or "char", token[0]
        if kind in _PLAIN:
            made.append(_PLAIN[kind])
        elif kind == "set":
            made.append(_set(text))
        elif braces and kind == "open":
            depth += 1
            made.append("(?:")
        elif braces and kind == "close":
            depth -= 1
            made.append(")")
        elif kind == "comma" and depth:
            made.append("|")
        else:
            made.append(re.escape(text))
    return "".join(made)


def closes(pattern: str) -> bool:
    """Has every `{` its `}`?"""
    depth = 0
    for char in pattern:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return False
    return depth == 0


def _set(text: str) -> str:
    negated = text.startswith("[!")
    inner = text[2:-1] if negated else text[1:-1]
    if not inner:
        return re.escape(text)
    safe = inner.replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
    made = f"[{'^' if negated else ''}{safe}]"
    try:
        re.compile(made)
    except re.error:
        return re.escape(text)
    return f"(?!/){made}"
