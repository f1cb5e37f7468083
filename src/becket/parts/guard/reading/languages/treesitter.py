"""Shapes out of tree-sitter's trees. The parsers are loaded when the first file of their language is read."""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING

from becket.parts.guard.reading.languages.shape import Shape, UnreadableSource

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_PUNCTUATION = frozenset(";,(){}[]\"'`")
_ESCAPED_QUOTE = re.compile(r"\\([\"'`])")
_QUOTED = frozenset(
    {"string", "template_string", "interpreted_string_literal", "raw_string_literal", "string_literal", "char_literal"}
    | {"encapsed_string"}
)
_TEXT = re.compile("content|fragment|escape|character|delimiter|start$|end$")
_UNWRAPPED = frozenset({"parenthesized_expression", "parenthesized_statements", "condition_clause"})
_SEPARATORS = re.compile(r"\\(?!u[0-9a-fA-F]{4})|::")
_WRAPPED_BODIES = frozenset({"if_statement", "else_clause", "for_statement", "for_in_statement", "while_statement"})
_TOKENS = "token_tree"
_DEEPEST = 400


@dataclass(frozen=True, slots=True)
class Parsed:
    root: Shape
    lines: tuple[str, ...]
    broken: bool


@lru_cache(maxsize=16)
def _parser(grammar: str) -> Parser:
    """`go` is `tree_sitter_go.language`, `typescript.tsx` is `tree_sitter_typescript.language_tsx`."""
    from tree_sitter import Language, Parser

    module, _, dialect = grammar.partition(".")
    function = f"language_{dialect}" if dialect else "language"
    return Parser(Language(getattr(importlib.import_module(f"tree_sitter_{module}"), function)()))


def parse(grammar: str, source: bytes, leaves: frozenset[str] = frozenset()) -> Parsed:
    """`leaves`: kinds of nodes that are one word, whatever the grammar makes of them."""
    root = _parser(grammar).parse(source).root_node
    lines = source.split(b"\n")
    starts = list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))
    shape = _Builder(starts, leaves, broken=root.has_error).shape(root, "", 0)
    assert shape is not None
    text = tuple(line.decode("utf-8", "replace").rstrip("\r") for line in lines)
    return Parsed(shape, text, root.has_error)


class _Builder:
    """Turns nodes into shapes.

    Lines are counted from byte offsets: reading `row` off a point of tree-sitter 0.26.0 corrupts memory
    (tree-sitter/py-tree-sitter, pull request 466).
    """

    __slots__ = ("_broken", "_leaves", "_starts")

    def __init__(self, starts: list[int], leaves: frozenset[str], *, broken: bool) -> None:
        self._starts, self._leaves, self._broken = starts, leaves, broken

    def shape(self, node: Node, field: str, depth: int) -> Shape | None:
        """None for what does not count: comments, punctuation, empty statements."""
        kind, line = node.type, self._line(node)
        if self._broken and node.is_missing:
            return Shape("ERROR", "", (), line, field)
        return self._counted(node, kind, line, field, depth) if _counts(node, kind) else None

    def _counted(self, node: Node, kind: str, line: int, field: str, depth: int) -> Shape:
        if depth > _DEEPEST:
            raise UnreadableSource("the code is nested too deeply")
        if kind in _QUOTED and all(_TEXT.search(child.type) for child in node.named_children):
            return Shape("string", _ESCAPED_QUOTE.sub(r"\1", _text(node)[1:-1]), (), line, field)
        if kind in self._leaves or not node.child_count:
            return Shape(kind, _word(_text(node)) if kind in self._leaves else _text(node), (), line, field)
        if kind in _UNWRAPPED and len(inside := self._children(node, depth)) == 1:
            only = inside[0]
            return Shape(only.kind, only.text, only.children, only.line, field, source=only.source)
        expand = partial(self._tokens if kind == _TOKENS else self._children, node, depth)
        return Shape(kind, "", expand, line, field, source=_text(node))

    def _line(self, node: Node) -> int:
        return bisect_right(self._starts, node.start_byte)

    def _children(self, node: Node, depth: int) -> tuple[Shape, ...]:
        made: list[Shape] = []
        cursor = node.walk()
        more = cursor.goto_first_child()
        while more:
            child = cursor.node
            shape = self.shape(child, cursor.field_name or "", depth + 1) if child is not None else None
            if shape is not None:
                made.append(_braced(node.type, shape))
            more = cursor.goto_next_sibling()
        return tuple(made)

    def _tokens(self, node: Node, depth: int) -> tuple[Shape, ...]:
        """Inside a macro a comma may separate what an operator would join; only the last one is formatting."""
        made = []
        for child in node.children:
            if child.type == ",":
                made.append(Shape(",", "", (), self._line(child)))
            elif (shape := self.shape(child, "", depth + 1)) is not None:
                made.append(shape)
        if made and made[-1].kind == ",":
            made.pop()
        return tuple(made)


def _counts(node: Node, kind: str) -> bool:
    if node.is_named:
        return "comment" not in kind and kind != "empty_statement"
    return kind not in _PUNCTUATION and bool(kind.strip())


def _braced(parent: str, shape: Shape) -> Shape:
    """`if (x) return;` is `if (x) { return; }`."""
    body = shape.field in {"consequence", "body"} or (parent == "else_clause" and shape.kind.endswith("_statement"))
    if (
        parent not in _WRAPPED_BODIES
        or not body
        or not shape.kind.endswith("_statement")
        or shape.kind.startswith("if")
    ):
        return shape
    return Shape("statement_block", "", (shape,), shape.line, shape.field)


def _word(text: str) -> str:
    """`\\A\\B` and `A::B` are `A.B`, `@A` is `A`."""
    return _SEPARATORS.sub(".", "".join(text.split())).lstrip(".@")


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


_NAMES = frozenset(
    {
        "identifier",
        "property_identifier",
        "private_property_identifier",
        "field_identifier",
        "type_identifier",
        "package_identifier",
        "primitive_type",
        "this",
        "self",
        "super",
        "crate",
        "import",
        "metavariable",
    }
)


def dotted(shape: Shape | None) -> str:
    """`expect(a).not.toBe` -> `expect().not.toBe`, `process::exit` -> `process.exit`; empty if it is no name."""
    if shape is None:
        return ""
    if shape.kind in _NAMES:
        return shape.text
    maker = _DOTTED.get(shape.kind)
    return maker(shape) if maker else ""


def _joined(*fields: str) -> Callable[[Shape], str]:
    def make(shape: Shape) -> str:
        names = [dotted(shape.part(field)) for field in fields if shape.part(field) is not None]
        return ".".join(names) if any(names) else ""

    return make


def _called(shape: Shape) -> str:
    name = dotted(shape.part("function"))
    return f"{name}()" if name else ""


def _invoked(shape: Shape) -> str:
    return f"{_joined('object', 'name')(shape)}()"


def _first(shape: Shape) -> str:
    named = [child for child in shape.children if child.kind not in {"await", "@", "?", "!", "new"}]
    return dotted(named[0]) if named else ""


_DOTTED: dict[str, Callable[[Shape], str]] = {
    "member_expression": _joined("object", "property"),
    "selector_expression": _joined("operand", "field"),
    "field_expression": _joined("value", "field"),
    "field_access": _joined("object", "field"),
    "scoped_identifier": _joined("path", "scope", "name"),
    "scoped_type_identifier": _joined("path", "scope", "name"),
    "call_expression": _called,
    "method_invocation": _invoked,
    "macro_invocation": lambda shape: f"{dotted(shape.part('macro'))}!",
    "generic_function": _joined("function"),
    "await_expression": _first,
    "try_expression": _first,
    "non_null_expression": _first,
    "subscript_expression": _joined("object"),
    "index_expression": _joined("operand"),
    "new_expression": _joined("constructor"),
}


def call_name(shape: Shape) -> str:
    """The dotted name of what a call or macro calls; empty for any other shape."""
    if shape.kind in {"call_expression", "method_invocation"}:
        return dotted(shape).removesuffix("()")
    return dotted(shape) if shape.kind == "macro_invocation" else ""


_WRAPPERS = frozenset({"expression_statement", "await_expression", "return_statement", "try_expression"})


def bare(statement: Shape) -> Shape:
    """What an expression statement, `await` or `return` is about."""
    while statement.kind in _WRAPPERS:
        inner = [child for child in statement.children if child.kind not in {"await", "return", "?"}]
        if len(inner) != 1:
            break
        statement = inner[0]
    return statement
