"""Facts of every language that has a grammar: one reader, driven by the language's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial

from becket.parts.guard.reading.classes.facts import (
    NO_FILE,
    CodeUnit,
    Construct,
    Fact,
    FactKind,
    Facts,
    FileOutline,
    LocatedCode,
    SourceFile,
    mark_returns_before_checks,
)
from becket.parts.guard.reading.classes.imports import imports_of
from becket.parts.guard.reading.classes.table import Table
from becket.parts.guard.reading.classes.treefacts import TreeReader
from becket.parts.guard.reading.classes.treescope import bound, bound_in_order, name_node, words_of
from becket.parts.guard.reading.languages import treesitter
from becket.parts.guard.reading.languages.shape import Shape, UnreadableSource


def read_tree(
    grammar: str, table: Table, old: bytes | None, new: bytes, *, whole: bool = False
) -> tuple[SourceFile, SourceFile]:
    """Both versions. What is the same before and after the change is counted only where it is asked for.

    What is the same may be beyond the grammar (macros of C), unless the `whole` must be read to know the language.
    """
    parsed = treesitter.parse(grammar, new, table.kinds("leaves"))
    after = parsed.root
    if old is None:
        if parsed.broken:
            raise UnreadableSource("it does not parse")
        return NO_FILE, TreeModule(after, after.children, table).file()
    was = treesitter.parse(grammar, old, table.kinds("leaves"))
    before = was.root
    head, tail = _same(before.children, after.children)
    if (was.broken or parsed.broken) and (whole or _is_broken(before, after)):
        raise UnreadableSource("it does not parse")
    old_file = TreeModule(before, before.children[head : len(before.children) - tail], table).file()
    new_file = TreeModule(after, after.children[head : len(after.children) - tail], table).file()
    for root, made in ((before, old_file), (after, new_file)):  # names mean what they mean in that version
        same = (*root.children[:head], *root.children[len(root.children) - tail :])
        made.rest = cache(partial(_facts_of, root, same, table))
    return old_file, new_file


def _is_broken(old: Shape, new: Shape) -> bool:
    """Is something that differs beyond the grammar? What is the same says the same, whatever it says."""
    head, tail = _same(old.children, new.children)
    before = old.children[head : len(old.children) - tail]
    after = new.children[head : len(new.children) - tail]
    if "ERROR" in (old.kind, new.kind):
        return True
    if [each.kind for each in before] == [each.kind for each in after] and all(
        each.children for each in (*before, *after)
    ):
        return any(_is_broken(one, other) for one, other in zip(before, after, strict=True))
    return any(part.kind == "ERROR" for each in (*before, *after) for part in each.walk())


def _same(old: tuple[Shape, ...], new: tuple[Shape, ...]) -> tuple[int, int]:
    """How many statements at the beginning and at the end are the same text."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if not _is_same(old[at], new[at])), most)
    tail = next((at for at in range(most - head) if not _is_same(old[-1 - at], new[-1 - at])), most - head)
    return head, tail


def _is_same(one: Shape, other: Shape) -> bool:
    return (one.kind, one.source, one.text) == (other.kind, other.source, other.text)


def _facts_of(root: Shape, body: tuple[Shape, ...], table: Table) -> Counter[Fact]:
    return TreeModule(root, body, table).file().known


class TreeModule:
    """One file: what its names mean, and its units. `body` is what may differ, `root` is all of it."""

    def __init__(self, root: Shape, body: tuple[Shape, ...], table: Table) -> None:
        self.table = table
        self._root, self._body = root, Shape(root.kind, "", body, root.line)
        self._units: dict[str, CodeUnit] = {}
        self.imports: Mapping[str, str] = {each.name: each.full for each in imports_of(root, table.name) if each.name}
        self.names = frozenset(name for node in self._top() for name in bound(node, table, deep=False))

    def _top(self) -> Iterator[Shape]:
        for node in self._root.children:
            yield from (node.children if node.kind in self.table.kinds("wrappers") else (node,))

    def file(self) -> SourceFile:
        self._take(self._body, "")
        text = "\n".join(child.source or child.text for child in self._body.children)
        self._units["(module)"] = CodeUnit("(module)", 0, text, self._outside)
        return SourceFile(self._units, self._defined, lay_out=self._outline)

    def _defined(self) -> frozenset[str]:
        return self.names | {part for name in self._whole() for part in name.split(".")}

    def _whole(self) -> Mapping[str, CodeUnit]:
        """The functions of all of it."""
        whole = TreeModule(self._root, self._root.children, self.table)
        whole._take(whole._root, "")
        return whole._units

    def _outline(self) -> FileOutline:
        stands: list[LocatedCode] = []
        names: Counter[str] = Counter()
        for place, part in self._parts(self._root, ""):
            if part.kind in self.table.kinds("functions"):
                name = self._name(part, place)
                stands.append(LocatedCode(place, name, is_function=True))
                names[name] += 1
            else:
                stands.append(LocatedCode(place, _without_functions(part, self.table)))
                names.update({f"{place}.{each}".lstrip("."): 1 for each in bound(part, self.table, deep=False)})
        units = self._whole()
        doubled = {name for name in units if f"{name} (2)" in units}
        return FileOutline(tuple(stands), frozenset(doubled.union(name for name, count in names.items() if count > 1)))

    def _take(self, node: Shape, place: str) -> None:
        """Every outermost function becomes a unit, named by what holds it."""
        for child in node.children:
            if child.kind in self.table.kinds("functions"):
                self._function(child, place)
            else:
                self._take(child, _place(child, place, self.table))

    def _function(self, node: Shape, place: str) -> None:
        own = self._own(node)
        name = self._name(node, place)
        of = (node.part("object") or Shape("", "", (), 0)).text  # `def String.new`
        words, kinds = (*place.split("."), *own.split("."), of), self.table.kinds
        hook = node.kind in kinds("hook_kinds") or any(map(self.table.hooks, words))
        sealed = not kinds("sealed").isdisjoint(words)
        number, unique = 1, name
        while unique in self._units:
            number += 1
            unique = f"{name} ({number})"
        read = partial(self._facts, node, is_hook=hook, is_sealed=sealed)
        meaning = partial(_meaning, node, self.table)
        self._units[unique] = CodeUnit(unique, node.line, node.source, read, hook, sealed, meaning)

    def _name(self, node: Shape, place: str) -> str:
        return ".".join(filter(None, (place, _receiver(node), self._own(node)))) or "(function)"

    def _own(self, node: Shape) -> str:
        name = name_node(node)
        return (treesitter.dotted(name) or name.text or words_of(name)) if name is not node else ""

    def _facts(self, node: Shape, *, is_hook: bool, is_sealed: bool) -> Facts:
        reader = TreeReader(self)
        if is_hook or any(child.kind in ("get", "set") for child in node.children):
            reader.facts.add(FactKind.mark, Construct.hook, node.line)
        if is_sealed and not is_hook:
            reader.facts.add(FactKind.mark, Construct.sealed, node.line)
        loads = self.table.kinds("runs_at_load")
        if name_node(node).text in loads or any(f"{node.kind}:{child.text}" in loads for child in node.children):
            reader.facts.add(FactKind.mark, Construct.runs_at_load, node.line)
        reader.function(node)
        return mark_returns_before_checks(reader.facts)

    def _outside(self) -> Facts:
        reader = TreeReader(self)
        for each in imports_of(self._body, self.table.name):
            reader.facts.add(FactKind.imports, each.told, each.line)
        for node in self._body.children:
            if node.kind not in self.table.kinds("imports"):
                for _, part in self._parts_of(node, ""):
                    if part.kind not in self.table.kinds("functions"):
                        reader.facts.add(FactKind.outside, _without_functions(part, self.table), part.line)
            reader.visit(node)
        return reader.facts

    def _parts(self, node: Shape, place: str) -> Iterator[tuple[str, Shape]]:
        for child in node.children:
            yield from self._parts_of(child, place)

    def _parts_of(self, node: Shape, place: str) -> Iterator[tuple[str, Shape]]:
        """Statements and functions, and what holds them. A class is as many as it has members; another statement is
        one.
        """
        if node.kind in self.table.kinds("wrappers"):
            yield from self._parts(node, place)
        elif node.kind in self.table.kinds("classes"):
            yield place, Shape("head", "", tuple(each for each in node.children if each.field != "body"), node.line)
            body = node.part("body")
            yield from self._parts(body, _place(node, place, self.table)) if body is not None else ()
        elif node.children or node.text.isalnum():
            yield place, node


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
        named = node.part("name")
        return f"f {named.text}" if named is not None else "f"
    if not node.children:
        return f"{node.kind}:{node.text}"
    return f"({node.kind} {' '.join(_without_functions(child, table) for child in node.children)})"


def _meaning(node: Shape, table: Table) -> str:
    """What a function does, whatever its locals are called."""
    names = {name: f"<{number}>" for number, name in enumerate(bound_in_order(node, table))}
    body = node.part("body") or node
    return " ".join(f"{part.kind}:{names.get(part.text, part.text)}" for part in body.walk())
