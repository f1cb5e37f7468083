"""Which names a piece of source binds, in every language that has a grammar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from becket.parts.guard.reading.classes.table import Table
from becket.parts.guard.reading.languages import treesitter
from becket.parts.guard.reading.languages.shape import Shape


@dataclass(frozen=True, slots=True)
class TreeScope:
    parameters: frozenset[str]  # they hide whatever has their name
    names: frozenset[str] = field(default=frozenset())  # bound somewhere within: they hide no import and no power


def bound_in_order(node: Shape, table: Table) -> list[str]:
    return list(dict.fromkeys(bound(node, table, deep=True)))


def bound(node: Shape, table: Table, *, deep: bool) -> Iterator[str]:
    """Names that are bound in a piece of source: by declarations, parameters and patterns."""
    fields = table.binders.get(node.kind)
    if fields is not None:
        for child in node.children:
            if not fields or child.field in fields:
                yield from [child.text] if child.kind == "type_identifier" else pattern_names(child, table)
    if node.kind in table.kinds("functions") and not deep:
        if (name := name_node(node)).kind in table.kinds("bindable"):
            yield name.text
        return
    for child in node.children:
        yield from bound(child, table, deep=deep)


def pattern_names(node: Shape, table: Table) -> Iterator[str]:
    """Names that a pattern binds; defaults and types in it bind nothing."""
    if node.kind in table.kinds("types") or node.kind in table.members or node.kind in table.kinds("indexes"):
        return
    if node.kind in table.kinds("bindable"):
        yield node.text
        return
    for role in ("declarator", "left", "value", "pattern", "name"):
        if node.part(role) is not None and node.kind in table.kinds("patterns"):
            for child in node.children:
                if child.field == role:
                    yield from pattern_names(child, table)
            return
    for child in node.children:
        yield from pattern_names(child, table)


def parameter_names(node: Shape, table: Table) -> Iterator[str]:
    if node.kind in table.kinds("bindable"):
        yield node.text
        return
    yield from pattern_names(node, table)


def heads(node: Shape) -> Iterator[Shape]:
    """A node and the declarators in it: C writes a function's name and parameters inside those."""
    inner: Shape | None = node
    while inner is not None:
        yield inner
        below = inner.part("declarator")
        if below is None and inner.kind.endswith("_declarator"):
            below = next(
                (each for each in reversed(inner.children) if each.kind.endswith(("identifier", "_declarator"))), None
            )
        inner = below


def name_node(node: Shape) -> Shape:
    """What names a declaration; the node itself where nothing does."""
    return node.part("name") or node.part("operator") or [*heads(node)][-1]


def words_of(node: Shape) -> str:
    return treesitter.dotted(node) or ".".join(part.text for part in node.walk() if part.text.isidentifier())
