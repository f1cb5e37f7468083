"""Shapes out of Python's own syntax trees, without annotations, docstrings and other strings that do nothing."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from functools import partial

from becket.parts.guard.reading.languages.shape import Shape, UnreadableSource

_LEFT_OUT = frozenset({"ctx", "type_comment", "kind", "returns", "type_ignores", "annotation"})
_DEEPEST = 200


def parse_module(source: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableSource(f"Python cannot parse it: {error}") from error


def parse(source: bytes) -> Shape:
    return shape_of(parse_module(source))


def shape_of(node: ast.AST, depth: int = 0) -> Shape:
    if depth > _DEEPEST:
        raise UnreadableSource("the code is nested too deeply")
    line = getattr(node, "lineno", 0)
    kind = type(node).__name__
    if isinstance(node, ast.Constant):
        return Shape(kind, f"{type(node.value).__name__} {node.value!r}", (), line)
    if isinstance(node, ast.Name):
        return Shape(kind, node.id, (), line, "" if isinstance(node.ctx, ast.Load) else "store")
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node, depth)
    texts, children = _fields(node, depth)
    if isinstance(node, ast.arguments):
        texts.append(f"{len(node.posonlyargs)} {len(node.kwonlyargs)} {len(node.defaults)}")
    return Shape(kind, " ".join(texts), tuple(children), line or (children[0].line if children else 0))


def _fields(node: ast.AST, depth: int) -> tuple[list[str], list[Shape]]:
    """What a node says itself, and what lies below it."""
    texts: list[str] = []
    children: list[Shape] = []
    for name, value in ast.iter_fields(node):
        if name in _LEFT_OUT:
            continue
        if value is None:  # `x[1:]` is not `x[:1]`
            texts.append(f"-{name}")
        elif isinstance(value, ast.AST):
            children.append(shape_of(value, depth + 1))
        elif isinstance(value, list):
            children.extend(_listed(name, value, depth))
        else:
            texts.append(str(value))
    return texts, children


def _listed(name: str, values: list[ast.AST], depth: int) -> list[Shape]:
    if name in {"body", "orelse", "finalbody"}:
        return [block(values, depth)]
    if name == "decorator_list":
        return [Shape("decorator", "", (shape_of(value, depth + 1),), _line(value)) for value in values]
    return [shape_of(value, depth + 1) if isinstance(value, ast.AST) else _word(value) for value in values]


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _word(value: object) -> Shape:
    return Shape("word", str(value), (), 0)


def block(body: list[ast.AST], depth: int = 0, source: str = "") -> Shape:
    """Statements that do something: a string that stands alone is a comment."""
    kept = [node for node in body if not is_text(node)]
    return Shape("block", "", partial(_shapes, kept, depth + 1), _line(kept[0]) if kept else 0, source=source)


def _shapes(nodes: list[ast.AST], depth: int) -> tuple[Shape, ...]:
    return tuple(shape_of(node, depth) for node in nodes)


def deferred(node: ast.AST, source: str) -> Shape:
    """The shape of a statement, built only where its text does not already say that nothing changed."""
    return Shape("deferred", "", lambda: (shape_of(node),), _line(node), source=source)


def is_text(node: ast.AST) -> bool:
    """A string that stands alone is a comment."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _dict(node: ast.AST, depth: int) -> Shape:
    assert isinstance(node, ast.Dict)
    pairs = []
    for key, value in zip(node.keys, node.values, strict=True):
        inside = (shape_of(key, depth + 1),) if key is not None else ()
        pairs.append(Shape("pair", "", (*inside, shape_of(value, depth + 1)), value.lineno))
    return Shape("Dict", "", tuple(pairs), node.lineno)


def _elif(node: ast.AST, depth: int) -> Shape:
    """A chain of `elif` is as deep as it is long; it is taken apart in a loop."""
    assert isinstance(node, ast.If)
    arms: list[Shape] = []
    current = node
    while True:
        arms += [shape_of(current.test, depth + 1), block(list(current.body), depth + 1)]
        if len(current.orelse) == 1 and isinstance(current.orelse[0], ast.If):
            current = current.orelse[0]
            continue
        if current.orelse:
            arms.append(block(list(current.orelse), depth + 1))
        return Shape("If", "", tuple(arms), node.lineno)


def _sum(node: ast.AST, depth: int) -> Shape:
    """`a + b + c` leans to the left; a long one is taken apart in a loop."""
    assert isinstance(node, ast.BinOp)
    operands: list[Shape] = []
    current: ast.expr = node
    while isinstance(current, ast.BinOp):
        operands.append(shape_of(current.right, depth + 1))
        operands.append(Shape(type(current.op).__name__, "", (), current.right.lineno))
        current = current.left
    operands.append(shape_of(current, depth + 1))
    return Shape("BinOp", "", tuple(reversed(operands)), node.lineno)


def _assert(node: ast.AST, depth: int) -> Shape:
    """A message in plain words is no part of the check. Anything else in its place runs when the check fails."""
    assert isinstance(node, ast.Assert)
    said = (shape_of(node.msg, depth + 1),) if node.msg is not None and not _is_plain(node.msg) else ()
    return Shape("Assert", "", (shape_of(node.test, depth + 1), *said), node.lineno)


def _is_plain(message: ast.expr) -> bool:
    kinds = (ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.Name, ast.Load)
    return isinstance(message, ast.Constant | ast.JoinedStr) and all(
        isinstance(part, kinds) for part in ast.walk(message)
    )


_SPECIAL: dict[type[ast.AST], Callable[[ast.AST, int], Shape]] = {
    ast.Assert: _assert,
    ast.BinOp: _sum,
    ast.Dict: _dict,
    ast.If: _elif,
}


def dotted(shape: Shape) -> str:
    """`self.assertEqual` -> itself; `f(x).y` -> `f().y`; empty if it is no name."""
    if shape.kind == "Name":
        return shape.text
    if shape.kind == "Attribute":
        inner = dotted(shape.children[0])
        return f"{inner}.{shape.text}" if inner else ""
    if shape.kind == "Call":
        inner = dotted(shape.children[0])
        return f"{inner}()" if inner else ""
    return dotted(shape.children[0]) if shape.kind in {"Await", "Subscript", "decorator"} else ""


def call_name(shape: Shape) -> str:
    return dotted(shape.children[0]) if shape.kind == "Call" else ""
