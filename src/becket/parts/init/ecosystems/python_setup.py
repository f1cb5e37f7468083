"""What a setup.py tells `setup()`, read and never run: a value that only a run would make is left out."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import Any


def told_to_setup(text: str) -> dict[str, Any]:
    """The arguments of the call, as far as they are written down: as literals, or as names of such."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an old escape in somebody's file
            return _read(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _read(tree: ast.Module) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name, value in _assigned(tree):
        known.setdefault(name, _value(value, known))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "setup")
    return next((_arguments(call, known) for call in calls), {})


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _arguments(call: ast.Call, known: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in call.keywords:
        value = _value(keyword.value, known)
        found |= {keyword.arg: value} if keyword.arg is not None else value if isinstance(value, dict) else {}
    return found


def _value(node: ast.expr | None, known: dict[str, Any]) -> Any:
    """None: nothing that is written down."""
    value: Any = None
    match node:
        case ast.Constant():
            value = node.value
        case ast.Name():
            value = known.get(node.id)
        case ast.List() | ast.Tuple() | ast.Set():
            value = [one for item in node.elts for one in _items(item, known)]
        case ast.Dict():
            keys = [_value(key, known) for key in node.keys]
            value = {
                key: _value(item, known) for key, item in zip(keys, node.values, strict=True) if isinstance(key, str)
            }
        case ast.Call(func=ast.Name(id="dict"), args=[]):
            value = _arguments(node, known)
        case ast.BinOp(op=ast.Add()):
            left, right = _value(node.left, known), _value(node.right, known)
            value = left + right if type(left) is type(right) and isinstance(left, list | str) else None
    return value


def _items(node: ast.expr, known: dict[str, Any]) -> list[Any]:
    if isinstance(node, ast.Starred):
        value = _value(node.value, known)
        return value if isinstance(value, list) else []
    return [_value(node, known)]
