"""Code in colours, as classes. Hostile code may be made to be slow to read: it is plain after a while."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from becket.app.record.report.elements import text

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

LONGEST_LINE = 400
MOST = 32_000
"""Characters of one text."""

_LEXERS = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascript", "ts": "typescript", "tsx": "typescript", "go": "go", "rs": "rust", "java": "java",
    "kt": "kotlin", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "cs": "csharp", "rb": "ruby",
    "sh": "bash", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "css": "css", "sql": "sql",
}  # fmt: skip
"""By the ending of a file's name. Few, and those that are read in good time."""


def ready(path: str) -> None:
    """Loads what it takes: that is nobody's code, and does not count."""
    if name := _name(path):
        _lexer(name)


def _name(path: str) -> str:
    return _LEXERS.get(PurePath(path).suffix[1:].lower(), "")


def colored(path: str, lines: Sequence[str], until: float) -> list[str]:
    """Each line as HTML; only escaped where it is too long, too much, of no known kind, or not done by `until` of the
    thread's own time.
    """
    plain = [text(line) for line in lines]
    name = _name(path)
    size = sum(map(len, lines))
    if not name or size > MOST or time.thread_time() > until or any(len(line) > LONGEST_LINE for line in lines):
        return plain
    made: list[list[str]] = [[]]
    for kind, value in _tokens(name, "\n".join(lines)):
        if time.thread_time() > until:
            return plain
        first, *rest = value.split("\n")
        made[-1].append(_span(kind, first))
        made.extend([_span(kind, part)] for part in rest)
    found = ["".join(parts) for parts in made]
    return found[: len(plain)] if len(found) >= len(plain) else plain


def _tokens(name: str, code: str) -> Iterator[tuple[str, str]]:
    for _, kind, value in _lexer(name).get_tokens_unprocessed(code):
        yield _kind(str(kind)), value


def _kind(token: str) -> str:
    """Of `Token.Literal.String.Double` and its like, the letter of a class."""
    for part, letter in _KINDS:
        if part in token:
            return letter
    return ""


_KINDS = (
    ("Comment", "c"), ("String", "s"), ("Number", "m"), ("Keyword", "k"), ("Operator.Word", "k"),
    ("Name.Function", "n"), ("Name.Class", "n"), ("Name.Tag", "n"), ("Name.Decorator", "n"), ("Name.Builtin", "b"),
)  # fmt: skip


def _span(kind: str, value: str) -> str:
    shown = text(value)
    return f'<span class="h-{kind}">{shown}</span>' if kind and shown.strip() else shown


@cache
def _lexer(name: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)
