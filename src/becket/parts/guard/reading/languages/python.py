"""Python: pytest, unittest and doctests."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from becket.parts.guard.reading.languages.doctests import doctest_cases, may_have_changed, read_doctests
from becket.parts.guard.reading.languages.pyshape import (
    block,
    call_name,
    deferred,
    dotted,
    parse,
    parse_module,
    shape_of,
)
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

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SETUP_NAMES = re.compile(
    r"^(?:set_?[uU]p|tear_?[dD]own|asyncSetUp|asyncTearDown)(?:_\w+|Class|Module|TestData)?$"
    r"|^pytest\w*$|^__\w+__$|^run(?:Test)?$|^collect_ignore(?:_glob)?$|^load_tests$"
)
_RUNNING_CLASS = re.compile(r"^Test|Tests?$|TestCase$")
_CHECK = re.compile(
    r"(?:^|\.)(?:assert\w*|fail(?:[A-Z]\w*)?|expect\w*|verify\w*|check(?:[_A-Z]\w*)?)$|^(?:np|numpy)\.testing\.|(?:^|\.)testing\.assert"
)
_RAISES = re.compile(
    r"(?:^|\.)(?:raises|warns|deprecated_call|assert(?:Raises|Warns|Logs|NoLogs|NumQueries)\w*|subTest)$"
)
_SKIP_CALL = re.compile(
    r"(?:^|\.)(?:skip|skipif|skipIf|skipUnless|xfail|importorskip|skipTest|expectedFailure|SkipTest|exit)$"
)
_SKIP_MARK = re.compile(r"(?:^|\.)mark\.(?:skip|skipif|xfail)$|(?:^|\.)(?:expectedFailure|SkipTest|skip)$")
_SKIP_HOLDERS = frozenset({"", "pytest", "unittest", "pytest.mark", "mark", "unittest.case"})
_PATCH = re.compile(
    r"(?:^|\.)patch(?:\.(?:object|dict|multiple))?$|^(?:setattr|delattr)$|^monkeypatch\.(?:set|del)\w+$"
    r"|^mocker\.\w+|\.__dict__\.update$|^(?:importlib\.)?reload$|^sys\.modules\.|^gc\.|^ctypes\."
)
_HARD_EXIT = re.compile(r"^os\._exit$")
_ENDS_RUN = re.compile(r"^(?:_?pytest(?:\.outcomes)?)\.exit$")
_KILL = re.compile(r"^os\.kill(?:pg)?$")
_OURSELVES = re.compile(r"^os\.get(?:pid|ppid|pgid|pgrp)$")
_TABLE = re.compile(r"(?:^|\.)(?:parametrize|parameterized(?:\.expand)?|expand|data|params|example|subtests)$")


def read(source: bytes) -> Outline:
    module = parse_module(source)
    found = _Reader(source)
    found.body(module.body, "", runs=True)
    doctests = tuple(doctest_cases(module)) if b">>>" in source else ()
    return Outline((*found.cases.values(), *doctests), tuple(found.parts), tuple(found.imports))


class _Reader:
    def __init__(self, source: bytes) -> None:
        self._lines = source.decode("utf-8", "replace").splitlines()
        self.cases: dict[str, SourceTest] = {}
        self.parts: list[SupportPart] = []
        self.imports: list[Import] = []

    def body(self, statements: list[ast.stmt], scope: str, *, runs: bool) -> None:
        for node in statements:
            if isinstance(node, ast.Import | ast.ImportFrom) and not scope:
                self.imports.extend(_imported(node))
            elif isinstance(node, _Function):
                self._function(node, scope, runs=runs)
            elif isinstance(node, ast.ClassDef):
                self._class(node, scope)
            else:
                self._statement(node, scope)

    def _function(self, node: _Function, scope: str, *, runs: bool) -> None:
        if not node.name.startswith("test"):
            self.parts.append(SupportPart(_kind_of(node), node.name, scope, self._function_shape(node)))
            return
        name = f"{scope}.{node.name}" if scope else node.name
        # Python runs the last definition of a name: an earlier one is gone.
        self.cases[name] = SourceTest(name, self._function_shape(node), node.lineno, scope, runs)

    def _class(self, node: ast.ClassDef, scope: str) -> None:
        name = f"{scope}.{node.name}" if scope else node.name
        if not _holds_tests(node):
            self.parts.append(SupportPart(PartKind.helper, node.name, scope, deferred(node, self._text(node))))
            return
        self._forget(name)
        head = [shape_of(value) for value in (*node.bases, *node.keywords)]
        marks = [Shape("decorator", "", (shape_of(mark),), mark.lineno) for mark in node.decorator_list]
        shape = Shape("class", "", (*marks, *head), node.lineno)
        self.parts.append(SupportPart(PartKind.holder, name, scope, shape))
        runs = bool(_RUNNING_CLASS.search(node.name)) or bool(node.bases)
        self.body(node.body, name, runs=runs)

    def _text(self, node: ast.stmt) -> str:
        """Whole lines: two statements on one line are told apart by where they begin."""
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        return f"{node.col_offset} {node.end_col_offset} " + "\n".join(lines)

    def _function_shape(self, node: _Function) -> Shape:
        """Marks, parameters and body. `async` counts; the name and annotations do not."""
        marks = tuple(Shape("decorator", "", (shape_of(mark),), mark.lineno) for mark in node.decorator_list)
        body = block(list(node.body), source="\n".join(map(self._text, node.body)))
        return Shape(type(node).__name__, "", (*marks, shape_of(node.args), body), node.lineno)

    def _forget(self, scope: str) -> None:
        """A class defined twice: only the second one runs."""
        self.cases = {
            name: case
            for name, case in self.cases.items()
            if case.scope != scope and not case.scope.startswith(f"{scope}.")
        }

    def _statement(self, node: ast.stmt, scope: str) -> None:
        names = [target.id for target in _targets(node) if isinstance(target, ast.Name)]
        whole = len(names) == len(_targets(node))
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
        shape = deferred(node, self._text(node))
        if names and whole:
            kind = PartKind.setup if any(_SETUP_NAMES.match(name) for name in names) else PartKind.constant
            self.parts.append(SupportPart(kind, ",".join(names), scope, shape))
        else:
            self.parts.append(SupportPart(PartKind.statement, "", scope, shape))


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        found: list[ast.expr] = []
        for target in node.targets:
            found.extend(target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
        return found
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[Import]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            top = alias.name.partition(".")[0]
            yield Import(alias.asname or top, alias.name if alias.asname else top, node.lineno)
        else:
            origin = f"{'.' * node.level}{node.module or ''}:{alias.name}"
            yield Import(origin if alias.name == "*" else alias.asname or alias.name, origin, node.lineno)


def _holds_tests(node: ast.ClassDef) -> bool:
    return any(
        (isinstance(child, _Function) and child.name.startswith("test"))
        or (isinstance(child, ast.ClassDef) and _holds_tests(child))
        for child in node.body
    )


def _kind_of(node: _Function) -> PartKind:
    if _SETUP_NAMES.match(node.name):
        return PartKind.setup
    for mark in node.decorator_list:
        shape = shape_of(mark)
        if dotted(shape).removesuffix("()").endswith("fixture"):
            uses = any(child.kind == "keyword" and child.text == "autouse" for child in shape.children)
            return PartKind.setup if uses else PartKind.fixture
    return PartKind.helper


def _is_check(shape: Shape) -> bool:
    if shape.kind in {"Assert", "example"}:
        return True
    if shape.kind == "Expr":
        inner = shape.children[0]
        call = inner.children[0] if inner.kind == "Await" else inner
        return bool(_CHECK.search(call_name(call)))
    if shape.kind in {"With", "AsyncWith"}:
        items = [child for child in shape.children if child.kind == "withitem"]
        return any(_RAISES.search(call_name(item.children[0])) for item in items)
    return False


def _is_skip(shape: Shape) -> bool:
    if shape.kind == "Call":
        name = call_name(shape)
        holder, _, last = name.rpartition(".")
        if holder in {"self", "cls"}:
            return last == "skipTest"
        return holder in _SKIP_HOLDERS and bool(_SKIP_CALL.search(last)) and name != "exit"
    if shape.kind == "Attribute":
        return bool(_SKIP_MARK.search(dotted(shape))) and not dotted(shape).startswith(("self.", "cls."))
    if shape.kind == "decorator":
        return bool(_SKIP_MARK.search(dotted(shape)))
    if shape.kind == "Assign" and shape.children[0].text == "__test__":
        return shape.children[-1].text == "bool False"
    return shape.kind == "example" and "+SKIP" in shape.text


def _is_patch(shape: Shape) -> bool:
    if shape.kind == "Call":
        return bool(_PATCH.search(call_name(shape)))
    if shape.kind in {"Assign", "AugAssign", "Delete"}:
        targets = shape.children[:-1] if shape.kind == "Assign" else shape.children[:1]
        return any(_reaches_out(target) for target in targets)
    return False


def _reaches_out(target: Shape) -> bool:
    """`module.name = ...` and `sys.modules[...] = ...`, but not `self.x = ...`."""
    if target.kind == "Subscript":
        return dotted(target) == "sys.modules" or dotted(target).endswith("__dict__")
    root = dotted(target).partition(".")[0]
    return target.kind == "Attribute" and root not in {"", "self", "cls"}


def _is_hard_exit(shape: Shape) -> bool:
    """`os._exit(0)`, at once or when all is done, the runner's own exit, or a signal to it."""
    name = call_name(shape)
    if _ENDS_RUN.match(name) or _exits_when_done(shape):
        return True
    if _KILL.match(name):
        return any(_OURSELVES.match(call_name(argument)) for argument in shape.children[1:])
    return bool(_HARD_EXIT.match(name)) and says_success(shape)


def _exits_when_done(shape: Shape) -> bool:
    """`atexit.register(os._exit, 0)`: whatever the run found, it ends with success."""
    return call_name(shape) == "atexit.register" and any(
        _HARD_EXIT.match(dotted(part)) for argument in shape.children[1:] for part in argument.walk()
    )


def _bound_names(shape: Shape) -> Collection[str]:
    if shape.kind == "deferred":
        return _bound_names(shape.children[0])
    if shape.kind in {"Assign", "AnnAssign"}:
        targets = shape.children[:-1] if shape.kind == "Assign" else shape.children[:1]
        names = [
            part for target in targets for part in target.walk() if part.kind in {"Name", "Attribute", "Subscript"}
        ]
        return [part.text for part in names] if all(part.kind == "Name" for part in names) else []
    return [shape.text] if shape.kind in {"FunctionDef", "AsyncFunctionDef", "ClassDef"} else []


PYTHON = Language(
    name="Python",
    read=read,
    parse=parse,
    name_of_call=lambda shape: call_name(shape) or (dotted(shape) if shape.kind == "decorator" else ""),
    is_check=_is_check,
    is_skip=_is_skip,
    is_patch=_is_patch,
    is_hard_exit=_is_hard_exit,
    bound_names=_bound_names,
    blocks=frozenset({"block"}),
    tables=frozenset({"List", "Tuple", "Set", "Dict"}),
    loops=frozenset({"For", "AsyncFor"}),
    guards=frozenset({"If", "Try", "TryStar", "For", "While", "Match", "FunctionDef", "Lambda", "With"}),
    exits=frozenset({"Return", "Raise", "Break", "Continue", "Yield", "YieldFrom"}),
    functions=frozenset({"FunctionDef", "AsyncFunctionDef", "Lambda", "ClassDef"}),
    is_table_call=lambda shape: bool(_TABLE.search(call_name(shape))),
    embedded=read_doctests,
    may_have_changed=may_have_changed,
)
