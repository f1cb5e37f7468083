"""Facts of every language that has a grammar: one reader, driven by the language's table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from becket.verifiers.guard.classes.facts import NO_FILE, Facts, Kind, Mark, SourceFile, Unit
from becket.verifiers.guard.classes.imports import imports_of
from becket.verifiers.guard.classes.table import Table
from becket.verifiers.guard.classes.treefacts import TreeReader
from becket.verifiers.guard.classes.treescope import bound, bound_in_order, words_of
from becket.verifiers.guard.languages import treesitter
from becket.verifiers.guard.languages.shape import Shape, Unreadable


def read_tree(grammar: str, table: Table, old: bytes | None, new: bytes) -> tuple[SourceFile, SourceFile]:
    after = _read(grammar, table, new)
    return (NO_FILE if old is None else _read(grammar, table, old)), after


def _read(grammar: str, table: Table, source: bytes) -> SourceFile:
    parsed = treesitter.parse(grammar, source)
    if parsed.broken:
        raise Unreadable("it does not parse")
    return TreeModule(parsed.root, table).file()


class TreeModule:
    def __init__(self, root: Shape, table: Table) -> None:
        self.table = table
        self._root = root
        self._units: dict[str, Unit] = {}
        self._members: set[str] = set()
        found = [*imports_of(root, table.name)]
        self.imports: Mapping[str, str] = {each.name: each.full for each in found if each.name}
        self._imported = found
        self.names = frozenset(name for node in self._top() for name in bound(node, table, deep=False))

    def _top(self) -> Iterator[Shape]:
        for node in self._root.children:
            yield from (node.children if node.kind in self.table.kinds("wrappers") else (node,))

    def file(self) -> SourceFile:
        self._take(self._root, "")
        read = partial(self._outside, self._root)
        self._units["(module)"] = Unit("(module)", 0, _without_functions(self._root, self.table), read)
        return SourceFile(self._units, lambda: self.names | self._members)

    def _take(self, node: Shape, place: str) -> None:
        """Every outermost function becomes a unit, named by what holds it."""
        for child in node.children:
            if child.kind in self.table.kinds("functions"):
                self._function(child, place)
            else:
                self._take(child, _place(child, place, self.table))

    def _function(self, node: Shape, place: str) -> None:
        own = treesitter.dotted(node.part("name")) or (node.part("name") or node).text
        name = ".".join(filter(None, (place, _receiver(node), own))) or "(function)"
        self._members.update(name.split("."))
        hook = self.table.hooks(own) or any(self.table.hooks(part) for part in place.split("."))
        number, unique = 1, name
        while unique in self._units:
            number += 1
            unique = f"{name} ({number})"
        read = partial(self._facts, node, is_hook=hook)
        self._units[unique] = Unit(unique, node.line, node.source, read, hook, partial(_meaning, node, self.table))

    def _facts(self, node: Shape, *, is_hook: bool) -> Facts:
        reader = TreeReader(self)
        if is_hook or any(child.kind in ("get", "set") for child in node.children):
            reader.facts.add(Kind.mark, Mark.hook, node.line)
        if (node.part("name") or node).text in self.table.kinds("runs_at_load"):
            reader.facts.add(Kind.mark, Mark.runs_at_load, node.line)
        reader.function(node)
        return reader.facts

    def _outside(self, root: Shape) -> Facts:
        reader = TreeReader(self)
        for each in self._imported:
            reader.facts.add(Kind.imports, each.told, each.line)
        for node in root.children:
            if node.kind not in self.table.kinds("imports"):
                for part in self._outside_parts(node):
                    reader.facts.add(Kind.outside, _without_functions(part, self.table), part.line)
            reader.outside(node)
        return reader.facts

    def _outside_parts(self, node: Shape) -> Iterator[Shape]:
        """A class is as many statements as it has members; another statement is one."""
        if node.kind in self.table.kinds("wrappers"):
            for child in node.children:
                yield from self._outside_parts(child)
        elif node.kind in self.table.kinds("classes"):
            yield Shape("head", "", tuple(each for each in node.children if each.field != "body"), node.line)
            body = node.part("body")
            for child in body.children if body is not None else ():
                yield from self._outside_parts(child)
        elif node.kind not in self.table.kinds("functions") and (node.children or node.text.isalnum()):
            yield node


def _receiver(node: Shape) -> str:
    """`func (t *T) M`: the type that a method belongs to."""
    receiver = node.part("receiver")
    return next((part.text for part in receiver.walk() if part.kind == "type_identifier"), "") if receiver else ""


def _place(node: Shape, place: str, table: Table) -> str:
    """What holds a function: a class, a variable, a key, a call with its first words."""
    named = node.part("name") or node.part("key") or node.part("property") or node.part("left")
    if node.kind in table.kinds("holders"):
        both = [node.part("trait"), node.part("type") if named is None else named]
        return ".".join(filter(None, (place, *(words_of(part) for part in both if part is not None))))
    if node.kind in table.kinds("calls"):
        first = next((part.text for part in node.walk() if part.kind == "string"), "")
        return ".".join(filter(None, (place, f"{treesitter.call_name(node)}({first})")))
    return place


def _without_functions(node: Shape, table: Table) -> str:
    if node.kind in table.kinds("functions"):
        return "f"
    if not node.children:
        return f"{node.kind}:{node.text}"
    return f"({node.kind} {' '.join(_without_functions(child, table) for child in node.children)})"


def _meaning(node: Shape, table: Table) -> str:
    """What a function does, whatever its locals are called."""
    names = {name: f"<{number}>" for number, name in enumerate(bound_in_order(node, table))}
    body = node.part("body") or node
    return " ".join(f"{part.kind}:{names.get(part.text, part.text)}" for part in body.walk())
