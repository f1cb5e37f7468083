"""Doctests: the examples of each docstring are one test."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator

from becket.parts.guard.reading.languages.pyshape import parse_module
from becket.parts.guard.reading.languages.shape import Outline, Shape, SourceTest, UnreadableSource

_OWNERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ENDS = frozenset({b"", b'"""', b"'''"})
_PARSER = doctest.DocTestParser()


def may_have_changed(old: bytes, new: bytes) -> bool:
    """By the lines alone: from each prompt to the next empty line, or the end of the docstring."""
    return b">>>" in old and _lines(old) != _lines(new)


def _lines(source: bytes) -> list[bytes]:
    found: list[bytes] = []
    inside = False
    for line in source.split(b"\n"):
        bare = line.strip()
        inside = bare not in _ENDS and (inside or bare.startswith(b">>>"))
        if inside:
            found.append(bare)
    return found


def read_doctests(source: bytes) -> Outline:
    return Outline(cases=tuple(doctest_cases(parse_module(source))))


def doctest_cases(module: ast.Module) -> Iterator[SourceTest]:
    stack: list[tuple[str, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]] = [("module", module)]
    while stack:
        name, owner = stack.pop()
        case = _case(name, owner)
        if case is not None:
            yield case
        prefix = "" if isinstance(owner, ast.Module) else f"{name}."
        stack.extend((f"{prefix}{node.name}", node) for node in owner.body if isinstance(node, _OWNERS))


def _case(name: str, owner: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> SourceTest | None:
    text = ast.get_docstring(owner, clean=False)
    if text is None or ">>>" not in text:
        return None
    first = owner.body[0].lineno
    try:
        found = _PARSER.get_examples(text)
    except ValueError as error:
        raise UnreadableSource(f"its doctests cannot be parsed: {error}") from error
    examples = tuple(
        Shape("example", f"{example.source.strip()}\n{example.want.strip()}", (), first + example.lineno)
        for example in found
    )
    return SourceTest(f"{name} (doctest)", Shape("block", "", examples, first), first) if examples else None
