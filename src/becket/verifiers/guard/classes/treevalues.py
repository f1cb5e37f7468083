"""Literals, arithmetic and comparisons: what a change could answer with instead of working."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.verifiers.guard.classes.facts import Facts, Kind, Mark, Size
from becket.verifiers.guard.classes.table import Table
from becket.verifiers.guard.languages.shape import Shape

_SCALING = frozenset("*/%") | {"**", "<<", ">>"}
_EQUAL = frozenset({"==", "===", "!=", "!=="})
_COMPARE = _EQUAL | {"<", "<=", ">", ">="}
_LOGIC = frozenset({"&&", "||", "and", "or", "??"})
TEXTS = frozenset({"string", "string_fragment", "string_content", "heredoc_content"})
TRUTH = {"true": "True", "false": "False", "null": "None", "nil": "None", "undefined": "None", "None": "None"}
_SUFFIX = re.compile(r"(?<=\d)(?:_?[iu](?:8|16|32|64|128|size)|_?f(?:32|64)|[lLfFdDnuU]+)$")


class TreeValues:
    """The part of a reader that looks at values."""

    def __init__(self, table: Table) -> None:
        self.facts = Facts()
        self._table = table
        self._told = 0  # inside of what only says what went wrong

    def visit(self, node: Shape) -> None:
        raise NotImplementedError

    def _below(self, node: Shape) -> None:
        raise NotImplementedError

    def _literal(self, node: Shape) -> None:
        if node.kind not in TEXTS or not node.children:
            self._value_of(node)
        self._below(node)  # a text may hold code

    def _value_of(self, node: Shape) -> None:
        if node.kind in TEXTS:
            if not self._told:
                self._add_value(f"'{node.text}'", node.line)
            return
        text = node.text or "".join(part.text for part in node.walk())
        self._add_value(TRUTH.get(text, _SUFFIX.sub("", text)), node.line)

    def _add_value(self, text: str, line: int) -> None:
        self.facts.add(Kind.value, text, line)
        if text not in ("None", "True", "False"):
            self.facts.add(Kind.size, Size.literal, line)

    def _unary(self, node: Shape) -> None:
        parts = [child for child in node.children if child.text != "-"]
        if len(parts) == 1 and len(node.children) == 2 and parts[0].kind in self._table.kinds("numbers"):
            self._add_value(f"-{_SUFFIX.sub('', parts[0].text)}", node.line)
        else:
            self._below(node)

    def _binary(self, node: Shape) -> None:
        operator = (node.part("operator") or Shape("", "", (), 0)).text
        sides = [child for child in node.children if child.field in ("left", "right")]
        if operator in _LOGIC:
            self.facts.add(Kind.size, Size.branch, node.line)
            if any(TRUTH.get(side.text) in ("True", "False") for side in sides) or self._is_number(sides[0]):
                self.facts.add(Kind.mark, Mark.unreachable, node.line)
        elif operator in _COMPARE:
            for side in sides:
                self._compared_with(side, equal=operator in _EQUAL)
            self._equality(node, sides)
        elif self._computes(node, operator) or self._is_idle(sides, operator):
            self.facts.add(Kind.mark, Mark.arithmetic, node.line)
        for side in sides:
            if operator in _SCALING and side.text in ("2", "2.0", "0.5"):
                self.facts.add(Kind.size, Size.literal, side.line)
            else:
                self.visit(side)

    def _equality(self, node: Shape, sides: list[Shape]) -> None:
        if len(sides) == 2 and sides[0] == sides[1]:
            self.facts.add(Kind.mark, Mark.arithmetic, node.line)

    def _compared_with(self, node: Shape, *, equal: bool) -> None:
        """A special case is made of comparisons with literals, known ones or not; one with a usual one is none."""
        if not (self._is_number(node) or node.kind in ("string", "char_literal", "character_literal", "rune_literal")):
            return
        text = _SUFFIX.sub("", node.text) if self._is_number(node) else f"'{node.text}'"
        weight = int(not self._table.is_trivial(text)) + int(equal and not self._table.is_empty(text))
        for _ in range(weight):
            self.facts.add(Kind.size, Size.equality, node.line)

    def _is_idle(self, sides: list[Shape], operator: str) -> bool:
        """`0 * x`, `x - x`: the result does not depend on what is computed."""
        zero = operator == "*" and any(_SUFFIX.sub("", side.text) in ("0", "0.0") for side in sides)
        return zero or (operator in ("-", "/", "%", "^") and len(sides) == 2 and sides[0] == sides[1])

    def _computes(self, node: Shape, operator: str) -> bool:
        leaves = list(self._leaves(node))
        literal = [leaf for leaf in leaves if self._is_number(leaf) or leaf.kind == "string"]
        return len(literal) > 1 and (len(literal) == len(leaves) or operator in ("+", "-"))

    def _leaves(self, node: Shape) -> Iterator[Shape]:
        if self._table.roles.get(node.kind) == "binary":
            for child in node.children:
                if child.field in ("left", "right"):
                    yield from self._leaves(child)
        else:
            yield node

    def _is_number(self, node: Shape) -> bool:
        return node.kind in self._table.kinds("numbers")
