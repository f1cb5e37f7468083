"""Java: JUnit 3 to 5 and TestNG."""

from __future__ import annotations

import re
from collections.abc import Collection

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

_TEST = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property", "Theory"})
_SETUP = frozenset(
    {"Before", "After", "BeforeClass", "AfterClass", "BeforeEach", "AfterEach", "BeforeAll", "AfterAll", "Rule"}
    | {"ClassRule", "RegisterExtension", "BeforeMethod", "AfterMethod", "BeforeTest", "AfterTest", "BeforeSuite"}
)
_SKIP_MARK = re.compile(r"^(?:Disabled\w*|Ignore|Enabled(?:If|On|For)\w*)$")
_SKIP_CALL = re.compile(r"^(?:Assumptions?\.)?(?:assume\w*|assumingThat)$|^Assume\.\w+$")
_CHECK = re.compile(
    r"(?:^|\.)(?:assert\w*|fail|verify\w*|then|expect\w*)(?:\(\)|$)|^(?:Assert|Assertions|Truth|Mockito)\."
)
_PATCH = re.compile(
    r"(?:^|\.)(?:mockStatic|mockConstruction|when|given|doReturn|doNothing|spy|setAccessible|setField)(?:\(\)|$)"
)
_HARD_EXIT = re.compile(r"^(?:System\.exit|Runtime\.getRuntime\(\)\.(?:halt|exit))$")
_TABLE_MARK = re.compile(r"^(?:\w*Source|CsvSource|ValueSource|Parameters)$")
_TYPES = frozenset({"class_declaration", "interface_declaration", "record_declaration", "enum_declaration"})
_FUNCTIONS = frozenset({"lambda_expression", "method_declaration", *_TYPES})


def parse(source: bytes) -> Shape:
    return treesitter.parse("java", source).root


def read(source: bytes) -> Outline:
    parsed = treesitter.parse("java", source)
    reader = _Reader()
    for item in parsed.root.children:
        reader.item(item)
    return Outline(tuple(reader.cases), tuple(reader.parts), tuple(reader.imports), parsed.broken)


def _marks(item: Shape) -> list[Shape]:
    modifiers = next((child for child in item.children if child.kind == "modifiers"), None)
    return [child for child in modifiers.children if "annotation" in child.kind] if modifiers is not None else []


def _mark_names(item: Shape) -> set[str]:
    return {dotted(mark.part("name")).rpartition(".")[2] for mark in _marks(item)}


class _Reader:
    def __init__(self) -> None:
        self.cases: list[SourceTest] = []
        self.parts: list[SupportPart] = []
        self.imports: list[Import] = []

    def item(self, item: Shape) -> None:
        if item.kind == "import_declaration":
            words = [dotted(child) or child.kind for child in item.children if child.kind not in {"import", "."}]
            origin = " ".join(words)
            name = words[-1].rpartition(".")[2] if "asterisk" not in origin else origin
            self.imports.append(Import(name, origin, item.line))
        elif item.kind == "package_declaration":
            self.parts.append(SupportPart(PartKind.pragma, "package", "", item))
        elif item.kind in _TYPES:
            self._type(item, "")
        else:
            self.parts.append(SupportPart(PartKind.statement, "", "", item))

    def _type(self, item: Shape, scope: str) -> None:
        name = dotted(item.part("name"))
        path = f"{scope}.{name}" if scope else name
        body = item.part("body")
        head = Shape(item.kind, "", item.without("name", "body"), item.line)
        if body is None or not _holds_tests(item):
            whole = Shape(item.kind, "", item.without("name"), item.line)
            self.parts.append(SupportPart(PartKind.helper, name, scope, whole))
            return
        self.parts.append(SupportPart(PartKind.holder, path, scope, head))
        for member in body.children:
            self._member(member, path, old_style=_old_style(item))

    def _member(self, member: Shape, scope: str, *, old_style: bool) -> None:
        marks = _mark_names(member)
        name = dotted(member.part("name"))
        shape = Shape(member.kind, "", member.without("name"), member.line)
        if member.kind in _TYPES:
            self._type(member, scope)
        elif member.kind == "method_declaration" and (marks & _TEST or (old_style and name.startswith("test"))):
            self.cases.append(SourceTest(f"{scope}.{name}", shape, member.line, scope))
        elif marks & _SETUP or (old_style and name in {"setUp", "tearDown"}):
            self.parts.append(SupportPart(PartKind.setup, name, scope, member))
        elif member.kind == "method_declaration":
            self.parts.append(SupportPart(PartKind.helper, name, scope, shape))
        elif member.kind == "field_declaration":
            names = [dotted(part.part("name")) for part in member.walk() if part.kind == "variable_declarator"]
            self.parts.append(SupportPart(PartKind.constant, ",".join(names), scope, member))
        else:
            self.parts.append(SupportPart(PartKind.statement, "", scope, member))


def _old_style(item: Shape) -> bool:
    parent = item.part("superclass")
    return parent is not None and any(part.text.endswith("TestCase") for part in parent.walk())


def _holds_tests(item: Shape) -> bool:
    for part in item.walk():
        if part.kind != "method_declaration":
            continue
        if _mark_names(part) & _TEST or (_old_style(item) and dotted(part.part("name")).startswith("test")):
            return True
    return False


def _is_check(shape: Shape) -> bool:
    if shape.kind == "assert_statement":
        return True
    return shape.kind == "expression_statement" and bool(_CHECK.search(call_name(bare(shape))))


def _is_skip(shape: Shape) -> bool:
    if "annotation" in shape.kind and shape.part("name") is not None:
        return bool(_SKIP_MARK.search(dotted(shape.part("name")).rpartition(".")[2]))
    if shape.kind == "element_value_pair":
        key = shape.part("key")
        return key is not None and key.text == "enabled"
    return bool(_SKIP_CALL.search(call_name(shape)))


def _is_patch(shape: Shape) -> bool:
    return bool(_PATCH.search(call_name(shape)))


def _is_table_call(shape: Shape) -> bool:
    return "annotation" in shape.kind and bool(_TABLE_MARK.search(dotted(shape.part("name")).rpartition(".")[2]))


def _bound_names(shape: Shape) -> Collection[str]:
    if shape.kind != "local_variable_declaration":
        return []
    return [dotted(part.part("name")) for part in shape.children if part.kind == "variable_declarator"]


JAVA = Language(
    name="Java",
    read=read,
    parse=parse,
    name_of_call=call_name,
    is_check=_is_check,
    is_skip=_is_skip,
    is_patch=_is_patch,
    is_hard_exit=lambda shape: bool(_HARD_EXIT.search(call_name(shape))) and says_success(shape),
    bound_names=_bound_names,
    blocks=frozenset({"block"}),
    tables=frozenset({"array_initializer", "element_value_array_initializer"}),
    loops=frozenset({"enhanced_for_statement", "for_statement"}),
    guards=frozenset({"if_statement", "try_statement", "enhanced_for_statement", "for_statement", "while_statement"})
    | {"lambda_expression", "switch_expression", "ternary_expression"},
    exits=frozenset({"return_statement", "throw_statement", "break_statement", "continue_statement"}),
    functions=_FUNCTIONS,
    is_table_call=_is_table_call,
)
