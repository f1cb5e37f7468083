"""What a source file imports, by language: the name it gives it, and what that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from becket.parts.guard.reading.classes.treescope import words_of
from becket.parts.guard.reading.languages.shape import Shape
from becket.parts.guard.reading.languages.treesitter import call_name, dotted


@dataclass(frozen=True, slots=True)
class Imported:
    name: str  # in the file; empty where it names nothing
    module: str
    member: str  # `*` for all of them, empty for the module itself
    line: int

    @property
    def full(self) -> str:
        return f"{self.module}.{self.member}" if self.member else self.module

    @property
    def told(self) -> str:
        return f"{self.module}:{self.member}" if self.member else self.module


def imports_of(root: Shape, language: str) -> Iterator[Imported]:
    reader = _READERS.get(language)
    return reader(root) if reader is not None else iter(())


def _javascript(root: Shape) -> Iterator[Imported]:
    for node in root.children:
        if node.kind in ("import_statement", "export_statement") and node.part("source") is not None:
            yield from _import_statement(node)
        elif node.kind in ("lexical_declaration", "variable_declaration"):
            for each in node.children:
                value = each.part("value") if each.kind == "variable_declarator" else None
                if value is not None:
                    yield from _required(each, value)


def _import_statement(node: Shape) -> Iterator[Imported]:
    source = node.part("source")
    module = source.text.removeprefix("node:") if source is not None else ""
    found = False
    for child in node.walk():
        if child.kind in ("import_specifier", "export_specifier"):
            name = (child.part("name") or child).text
            alias = child.part("alias")
            yield Imported(alias.text if alias is not None else name, module, name, child.line)
            found = True
        elif child.kind == "namespace_import":
            yield Imported(child.children[-1].text, module, "", child.line)
            found = True
        elif child.kind == "import_clause" and child.children[0].kind == "identifier":
            yield Imported(child.children[0].text, module, "", child.line)
            found = True
    if not found:
        yield Imported("", module, "", node.line)


def _required(declarator: Shape, value: Shape) -> Iterator[Imported]:
    """`const { a: b } = require("m").c`."""
    path: list[str] = []
    while value.kind == "member_expression":
        path.insert(0, dotted(value.part("property")))
        inner = value.part("object")
        if inner is None:
            return
        value = inner
    arguments = value.part("arguments")
    if call_name(value) != "require" or arguments is None or len(arguments.children) != 1:
        return
    module, target = arguments.children[0].text.removeprefix("node:"), declarator.part("name")
    if arguments.children[0].kind != "string" or target is None:
        return
    member = ".".join(path)
    if target.kind == "identifier":
        yield Imported(target.text, module, member, declarator.line)
        return
    for part in target.children:
        key, bound = part.part("key"), part.part("value")
        if part.kind == "shorthand_property_identifier_pattern":
            yield Imported(part.text, module, ".".join(filter(None, (member, part.text))), part.line)
        elif key is not None and bound is not None:
            yield Imported(bound.text, module, ".".join(filter(None, (member, key.text))), part.line)


def _go(root: Shape) -> Iterator[Imported]:
    for node in root.children:
        for spec in node.walk() if node.kind == "import_declaration" else ():
            path = spec.part("path") if spec.kind == "import_spec" else None
            if path is None:
                continue
            alias = spec.part("name")
            last = path.text.rpartition("/")[2]
            if alias is not None and alias.kind == "dot":
                yield Imported("", path.text, "*", spec.line)
            else:
                yield Imported(alias.text if alias is not None else last, path.text, "", spec.line)


def _rust(root: Shape) -> Iterator[Imported]:
    for node in root.walk():
        if node.kind == "use_declaration":
            argument = node.part("argument")
            if argument is not None:
                yield from _use(argument, "", node.line)
        elif node.kind in ("mod_item", "foreign_mod_item", "extern_crate_declaration"):
            name = (node.part("name") or node).text
            if node.part("body") is None:
                yield Imported(name, "crate", name, node.line)


def _use(node: Shape, prefix: str, line: int) -> Iterator[Imported]:
    path = node.part("path")
    here = ".".join(filter(None, (prefix, dotted(path) if path is not None else "")))
    if node.kind == "scoped_use_list":
        inner = node.part("list")
        for child in inner.children if inner is not None else ():
            yield from _use(child, here, line)
    elif node.kind == "use_list":
        for child in node.children:
            yield from _use(child, prefix, line)
    elif node.kind == "use_as_clause":
        yield _split((node.part("alias") or node).text, here, line)
    elif node.kind == "use_wildcard":
        inside = [dotted(child) for child in node.children if dotted(child)]
        yield Imported("", ".".join(filter(None, (prefix, *inside))), "*", line)
    elif node.kind == "self":
        yield _split(prefix.rpartition(".")[2], prefix, line)
    else:
        full = ".".join(filter(None, (prefix, dotted(node))))
        yield _split(full.rpartition(".")[2], full, line)


def _split(name: str, full: str, line: int) -> Imported:
    module, _, member = full.rpartition(".")
    return Imported(name, module or full, member if module else "", line)


def _java(root: Shape) -> Iterator[Imported]:
    for node in root.children:
        if node.kind != "import_declaration":
            continue
        path = next((dotted(child) for child in node.children if "identifier" in child.kind), "")
        if any(child.kind == "asterisk" for child in node.children):
            yield Imported("", path, "*", node.line)
        else:
            yield _split(path.rpartition(".")[2], path, node.line)


_HOLD_INCLUDES = frozenset({"namespace_definition", "declaration_list", "linkage_specification"}) | {
    "class_specifier", "struct_specifier", "field_declaration_list",
}  # fmt: skip


def _c(root: Shape) -> Iterator[Imported]:
    for node in root.children:
        path = node.part("path")
        if node.kind == "preproc_include" and path is not None:
            yield Imported("", path.text.strip("<>"), "", node.line)
        elif node.kind == "namespace_alias_definition":
            full = words_of(node.children[-1])
            yield _split((node.part("name") or node).text, full, node.line)
        elif node.kind.startswith("preproc_") or node.kind in _HOLD_INCLUDES:
            yield from _c(node)


def _csharp(root: Shape) -> Iterator[Imported]:
    for node in root.children:
        if node.kind == "using_directive":
            alias = node.part("name")
            path = words_of(next(each for each in reversed(node.children) if each is not alias))
            yield Imported(alias.text if alias is not None else "", path, "", node.line)
        elif node.kind in ("namespace_declaration", "declaration_list"):
            yield from _csharp(node)


def _php(root: Shape) -> Iterator[Imported]:
    for node in root.children:
        if node.kind == "namespace_use_declaration":
            prefix = words_of(
                next((each for each in node.children if each.kind == "namespace_name"), Shape("", "", (), 0))
            )
            for clause in node.walk():
                if clause.kind == "namespace_use_clause":
                    yield _use_clause(clause, prefix)
        elif node.kind in ("namespace_definition", "compound_statement"):
            yield from _php(node)


def _use_clause(clause: Shape, prefix: str) -> Imported:
    alias = clause.part("alias")
    own = next(each.text for each in clause.children if each is not alias and each.kind in ("name", "qualified_name"))
    full = ".".join(filter(None, (prefix, own)))
    return _split(alias.text if alias is not None else full.rpartition(".")[2], full, clause.line)


_READERS: dict[str, Callable[[Shape], Iterator[Imported]]] = {
    "JavaScript": _javascript,
    "Go": _go,
    "Rust": _rust,
    "Java": _java,
    "C": _c,
    "C++": _c,
    "C#": _csharp,
    "PHP": _php,
}
