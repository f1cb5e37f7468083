"""JavaScript and TypeScript: jest, vitest, mocha, jasmine, node:test, ava, tape, playwright."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial

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

_CASE = re.compile(r"^(?:it|test|specify|fit|xit|xtest|xspecify|Deno\.test|bench)(?:\.[\w.()]+)?$")
_HOLDER = re.compile(r"^(?:describe|context|suite|fdescribe|xdescribe|xcontext|test\.describe)(?:\.[\w.()]+)?$")
_SETUP = re.compile(r"^(?:test\.)?(?:before|after)(?:Each|All)?$|^(?:suite)?(?:[sS]etup|[tT]eardown)$")
_SKIPS = re.compile(
    r"(?:^|\.)(?:skip|only|todo|failing|fails|fixme|skipIf|runIf|pending)(?:\(\))?(?:$|\.)"
    r"|^(?:xit|xtest|xdescribe|xcontext|xspecify|fit|fdescribe|fcontext)(?:$|\.)"
)
_SKIP_OPTIONS = frozenset({"skip", "todo", "only"})
_CHECK = re.compile(
    r"^(?:expect|assert|should|chai|sinon\.assert|cy)(?:\(\)|\.|$)|\.should\.|^t\.(?!plan|end|teardown|log|comment)\w+$"
    r"|^(?:ok|equal|deepEqual|strictEqual|notEqual|throws|rejects|fail)$"
)
_PATCH = re.compile(
    r"^(?:jest|vi)\.(?:mock|doMock|setMock|spyOn|stubGlobal|unstable_mockModule|useFakeTimers|replaceProperty)"
    r"|^sinon\.(?:stub|replace|mock|fake)|^(?:proxyquire|rewire|td\.replace)|\.mock(?:Return|Resolved|Rejected|Implementation)\w*$"
    r"|^Object\.(?:defineProperty|assign|setPrototypeOf)$|^Reflect\.(?:set|defineProperty)$|^expect\.extend$"
)
_HARD_EXIT = re.compile(r"^(?:process|Deno)\.(?:exit|reallyExit)$")
_ALIAS = {"test": "it", "specify": "it", "Deno": "it"}
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function_declaration", "method_definition", "class"})


def read_as(grammar: str, source: bytes) -> Outline:
    parsed = treesitter.parse(grammar, source)
    reader = _Reader()
    reader.body(parsed.root.children, "")
    return Outline(tuple(reader.cases), tuple(reader.parts), tuple(reader.imports), parsed.broken)


class _Reader:
    def __init__(self) -> None:
        self.cases: list[SourceTest] = []
        self.parts: list[SupportPart] = []
        self.imports: list[Import] = []
        self._seen: dict[str, int] = {}

    def body(self, statements: tuple[Shape, ...], scope: str) -> None:
        for statement in statements:
            inner = statement
            if statement.kind == "export_statement":
                inner = statement.part("declaration") or statement
            self._statement(inner, scope)

    def _statement(self, statement: Shape, scope: str) -> None:
        call = bare(statement)
        name = call_name(call)
        if statement.kind == "import_statement":
            self.imports.extend(_imported(statement))
        elif _HOLDER.match(name) and (body := _callback_body(call)) is not None:
            self._holder(call, name, body, scope)
        elif _CASE.match(name) and _title(call):
            self._case(call, name, scope)
        elif _SETUP.match(name):
            self.parts.append(SupportPart(PartKind.setup, name, scope, call))
        else:
            self._declared(statement, scope)

    def _unique(self, name: str) -> str:
        count = self._seen[name] = self._seen.get(name, 0) + 1
        return name if count == 1 else f"{name} ({count})"

    def _holder(self, call: Shape, name: str, body: tuple[Shape, ...], scope: str) -> None:
        title = self._unique(" > ".join(filter(None, (scope, _title(call) or name))))
        head = Shape("holder", _modifiers(name), _extras(call), call.line)
        self.parts.append(SupportPart(PartKind.holder, title, scope, head))
        self.body(body, title)

    def _case(self, call: Shape, name: str, scope: str) -> None:
        title = self._unique(" > ".join(filter(None, (scope, _title(call)))))
        function = _callback(call)
        inside = (*_extras(call), *((function,) if function is not None else ()))
        self.cases.append(SourceTest(title, Shape("case", _modifiers(name), inside, call.line), call.line, scope))

    def _declared(self, statement: Shape, scope: str) -> None:
        names = [dotted(statement.part("name"))]
        if statement.kind in {"lexical_declaration", "variable_declaration"}:
            declared = [child for child in statement.children if child.kind == "variable_declarator"]
            if not scope and all(_required(child) for child in declared):
                self.imports.extend(entry for child in declared for entry in _from_require(child))
                return
            names = [name for child in declared for name in _pattern_names(child.part("name"))]
            self.parts.append(SupportPart(PartKind.constant, ",".join(names), scope, statement))
        elif statement.kind.endswith("_declaration") and names[0]:
            shape = Shape(statement.kind, "", statement.without("name"), statement.line)
            self.parts.append(SupportPart(PartKind.helper, names[0], scope, shape))
        else:
            self.parts.append(SupportPart(PartKind.statement, "", scope, statement))


def _arguments(call: Shape) -> tuple[Shape, ...]:
    arguments = call.part("arguments")
    return arguments.children if arguments is not None else ()


def _title(call: Shape) -> str:
    first = next(iter(_arguments(call)), None)
    if first is None:
        return ""
    if first.kind == "string":
        return first.text
    return " ".join(part.text for part in first.walk() if part.text) if first.kind not in _FUNCTIONS else ""


def _callback(call: Shape) -> Shape | None:
    found = next((argument for argument in _arguments(call) if argument.kind in _FUNCTIONS), None)
    if found is None:
        return None
    lone = found.part("parameter")  # `x => ...` is `(x) => ...`
    if lone is None:
        return Shape("function", "", _without_keyword(found), found.line)
    wrapped = Shape("formal_parameters", "", (lone,), lone.line, "parameters")
    rest = tuple(wrapped if child is lone else child for child in found.children)
    return Shape("function", "", _without_keyword(Shape(found.kind, "", rest, found.line)), found.line)


def _without_keyword(function: Shape) -> tuple[Shape, ...]:
    return tuple(child for child in function.children if child.kind not in {"function", "=>"} and child.field != "name")


def _callback_body(call: Shape) -> tuple[Shape, ...] | None:
    function = _callback(call)
    body = function.part("body") if function is not None else None
    return body.children if body is not None and body.kind == "statement_block" else None


def _extras(call: Shape) -> tuple[Shape, ...]:
    """Options, time limits and tables: all that is neither title nor function."""
    rest = tuple(argument for argument in _arguments(call)[1:] if argument.kind not in _FUNCTIONS)
    function = call.part("function")
    tables = (function,) if function is not None and function.kind == "call_expression" else ()
    return (*tables, *rest)


def _modifiers(name: str) -> str:
    base, _, rest = name.partition(".")
    return ".".join(filter(None, (_ALIAS.get(base, base), rest)))


def _imported(statement: Shape) -> Iterator[Import]:
    source = statement.part("source")
    origin = source.text if source is not None else ""
    found = False
    for child in statement.walk():
        if child.kind == "import_specifier":
            name, alias = dotted(child.part("name")), dotted(child.part("alias"))
            yield Import(alias or name, f"{origin}:{name}", child.line)
            found = True
        elif child.kind == "namespace_import":
            yield Import(dotted(child.children[-1]), f"{origin}:*", child.line)
            found = True
        elif child.kind == "import_clause" and child.children[0].kind == "identifier":
            yield Import(child.children[0].text, f"{origin}:default", child.line)
            found = True
    if not found:
        yield Import(f"import {origin}", origin, statement.line)


def _required(declarator: Shape) -> bool:
    value = declarator.part("value")
    return value is not None and call_name(value) == "require"


def _from_require(declarator: Shape) -> Iterator[Import]:
    value = declarator.part("value")
    origin = _title(value) if value is not None else ""
    target = declarator.part("name")
    for name in _pattern_names(target):
        whole = target is not None and target.kind == "identifier"
        yield Import(name, f"{origin}:*" if whole else f"{origin}:{name}", declarator.line)


def _pattern_names(target: Shape | None) -> list[str]:
    if target is None:
        return []
    kinds = {"identifier", "shorthand_property_identifier_pattern"}
    return [part.text for part in target.walk() if part.kind in kinds]


def _is_check(shape: Shape) -> bool:
    inner = bare(shape)
    return (shape.kind.endswith("_statement") or shape.field == "body") and bool(_CHECK.search(call_name(inner)))


def _is_skip(shape: Shape) -> bool:
    if shape.kind in {"case", "holder"}:
        return bool(_SKIPS.search(shape.text))
    if shape.kind == "call_expression":
        return bool(_SKIPS.search(call_name(shape)))
    key = shape.part("key") if shape.kind == "pair" else None
    value = shape.part("value") if shape.kind == "pair" else None
    return key is not None and key.text in _SKIP_OPTIONS and value is not None and value.kind != "false"


def _is_patch(shape: Shape) -> bool:
    if shape.kind in {"assignment_expression", "augmented_assignment_expression"}:
        left = shape.part("left")
        return left is not None and left.kind == "member_expression" and not dotted(left).startswith("this.")
    return bool(_PATCH.search(call_name(shape)))


def _bound_names(shape: Shape) -> Collection[str]:
    if shape.kind in {"lexical_declaration", "variable_declaration"}:
        declared = [child for child in shape.children if child.kind == "variable_declarator"]
        return [name for child in declared for name in _pattern_names(child.part("name"))]
    return [dotted(shape.part("name"))] if shape.kind == "function_declaration" else []


def javascript_language(grammar: str) -> Language:
    return Language(
        name="JavaScript" if grammar == "javascript" else "TypeScript",
        read=partial(read_as, grammar),
        parse=lambda source: treesitter.parse(grammar, source).root,
        name_of_call=call_name,
        is_check=_is_check,
        is_skip=_is_skip,
        is_patch=_is_patch,
        is_hard_exit=lambda shape: bool(_HARD_EXIT.search(call_name(shape))) and says_success(shape),
        bound_names=_bound_names,
        blocks=frozenset({"statement_block"}),
        tables=frozenset({"array", "object"}),
        loops=frozenset({"for_in_statement", "for_statement"}),
        guards=frozenset({"if_statement", "try_statement", "for_in_statement", "for_statement", "while_statement"})
        | {"ternary_expression", "switch_statement", *_FUNCTIONS},
        exits=frozenset({"return_statement", "throw_statement", "break_statement", "continue_statement"}),
        functions=_FUNCTIONS,
        is_table_call=lambda shape: call_name(shape).endswith((".each", ".forEach", ".map", ".for")),
    )
