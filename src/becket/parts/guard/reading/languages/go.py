"""Go: the testing package, testify and examples."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from becket.parts.guard.reading.languages import treesitter
from becket.parts.guard.reading.languages.shape import (
    Import,
    Language,
    Outline,
    PartKind,
    Shape,
    SourceTest,
    SupportPart,
    says_success,
)
from becket.parts.guard.reading.languages.treesitter import bare, call_name, dotted

_TEST = re.compile(r"^(?:Test|Benchmark|Fuzz|Example)(?![a-z])")
_BUILD = re.compile(r"^//\s*(?:go:build|\+build)\b")
_OUTPUT = re.compile(r"^//\s*(?:unordered )?output:", re.IGNORECASE)
_FAILS = re.compile(r"^(?:\w*[tT]|tb|tt|s|suite)(?:\.T\(\))?\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)$|^panic$")
_CHECK = re.compile(
    r"^(?:assert|require|is|qt|s|suite|[a-z]\w*\.(?:Assert|Require)\(\))\.[A-Z]\w*$|^(?:assert|require|check)[A-Z]?\w*$"
)
_SKIP = re.compile(r"\.(?:Skip|Skipf|SkipNow)$")
_PATCH = re.compile(r"^(?:gomonkey|monkey|mpatch|supermonkey|bou\.ke)\.\w+")
_HARD_EXIT = re.compile(r"^(?:os|syscall)\.Exit$")


def parse(source: bytes) -> Shape:
    return treesitter.parse("go", source).root


def read(source: bytes) -> Outline:
    parsed = treesitter.parse("go", source)
    cases: list[SourceTest] = []
    parts = list(_pragmas(parsed.lines))
    imports: list[Import] = []
    for item in parsed.root.children:
        if item.kind == "import_declaration":
            imports.extend(_imported(item))
        elif item.kind in {"function_declaration", "method_declaration"}:
            _function(item, cases, parts)
        else:
            parts.append(_declared(item))
    return Outline(tuple(cases), tuple(parts), tuple(imports), parsed.broken)


def _pragmas(lines: Sequence[str]) -> Iterator[SupportPart]:
    for number, line in enumerate(lines, 1):
        if line.startswith("package "):
            return
        if _BUILD.match(line):
            shape = Shape("build", " ".join(line.split()), (), number)
            yield SupportPart(PartKind.pragma, shape.text, "", shape)


def _imported(item: Shape) -> Iterator[Import]:
    for spec in item.walk():
        if spec.kind == "import_spec":
            path = spec.part("path")
            name = spec.part("name")
            origin = path.text if path is not None else ""
            yield Import(name.text if name is not None else origin.rpartition("/")[2], origin, spec.line)


def _function(item: Shape, cases: list[SourceTest], parts: list[SupportPart]) -> None:
    name = dotted(item.part("name"))
    receiver = item.part("receiver")
    scope = next((part.text for part in receiver.walk() if part.kind == "type_identifier"), "") if receiver else ""
    shape = Shape(item.kind, "", item.without("name"), item.line)
    if (
        name == "TestMain"
        or (name == "init" and not scope)
        or (scope and re.match(r"Set[uU]p|TearDown|(?:Before|After)Test", name))
    ):
        parts.append(SupportPart(PartKind.setup, name, scope, shape))
    elif _TEST.match(name):
        expected = tuple(_output(item)) if name.startswith("Example") else ()
        whole = Shape(item.kind, "", (*shape.children, *expected), item.line)
        cases.append(SourceTest(f"{scope}.{name}" if scope else name, whole, item.line, scope))
    else:
        parts.append(SupportPart(PartKind.helper, name, scope, shape))


def _output(item: Shape) -> Iterator[Shape]:
    """What an example must print stands in its last comment."""
    lines = [line.strip() for line in item.source.splitlines()]
    starts = [number for number, line in enumerate(lines) if _OUTPUT.match(line)]
    if starts:
        first = starts[-1]
        said = takewhile(lambda line: line.startswith("//"), lines[first:])
        text = "\n".join(" ".join(line.lstrip("/ ").split()) for line in said)
        yield Shape("output", text.removesuffix("\n").lower(), (), item.line + first)


def _declared(item: Shape) -> SupportPart:
    names = [dotted(spec.part("name")) for spec in item.walk() if spec.kind in {"var_spec", "const_spec", "type_spec"}]
    if item.kind == "package_clause":
        return SupportPart(PartKind.pragma, "package", "", item)
    if item.kind in {"var_declaration", "const_declaration"}:
        return SupportPart(PartKind.constant, ",".join(names), "", item)
    if item.kind == "type_declaration":
        return SupportPart(PartKind.helper, ",".join(names), "", item)
    return SupportPart(PartKind.statement, "", "", item)


def _is_check(shape: Shape) -> bool:
    if shape.kind == "output":
        return True
    if shape.kind == "if_statement":
        inside = [child for child in shape.children if child.field in {"consequence", "alternative"}]
        return any(_FAILS.search(call_name(call)) for part in inside for call in part.walk())
    name = call_name(bare(shape)) if shape.kind == "expression_statement" else ""
    return bool(name) and bool(_CHECK.search(name) or _FAILS.search(name))


def _is_patch(shape: Shape) -> bool:
    if shape.kind == "assignment_statement":
        left = shape.part("left")
        return left is not None and any(part.kind == "selector_expression" for part in left.children)
    return bool(_PATCH.search(call_name(shape)))


def _bound_names(shape: Shape) -> Collection[str]:
    if shape.kind == "short_var_declaration":
        left = shape.part("left")
        return [part.text for part in left.walk() if part.kind == "identifier"] if left is not None else []
    if shape.kind == "var_declaration":
        return [dotted(spec.part("name")) for spec in shape.walk() if spec.kind == "var_spec"]
    return []


GO = Language(
    name="Go",
    read=read,
    parse=parse,
    name_of_call=call_name,
    is_check=_is_check,
    is_skip=lambda shape: bool(_SKIP.search(call_name(shape))) or shape.kind == "build",
    is_patch=_is_patch,
    is_hard_exit=lambda shape: bool(_HARD_EXIT.search(call_name(shape))) and says_success(shape),
    bound_names=_bound_names,
    blocks=frozenset({"statement_list"}),
    tables=frozenset({"literal_value"}),
    loops=frozenset({"for_statement"}),
    guards=frozenset(
        {"if_statement", "for_statement", "func_literal", "expression_switch_statement", "defer_statement"}
    ),
    exits=frozenset({"return_statement", "break_statement", "continue_statement", "goto_statement"}),
    functions=frozenset({"func_literal", "function_declaration", "method_declaration"}),
    is_table_call=lambda shape: call_name(shape).endswith((".Add", "f.Add")),
)
