"""Facts of Python source, by Python's own parser."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from becket.verifiers.guard.classes.facts import Facts, Kind, Mark, Size, SourceFile, Unit
from becket.verifiers.guard.classes.table import PYTHON
from becket.verifiers.guard.languages.pyshape import parse_module
from becket.verifiers.guard.languages.shape import Unreadable

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SCALING = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
_DEEPEST = 150


def read_python(source: bytes) -> SourceFile:
    tree = parse_module(_decoded(source).encode())
    module = _Module(tree, source.decode().split("\n"))
    return module.file()


def _decoded(source: bytes) -> str:
    """Python obeys a coding cookie; what we show people is UTF-8. The two must be one."""
    for line in source.split(b"\n", 2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8", b"ascii", b"us-ascii"):
            raise Unreadable("its encoding is not UTF-8")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8") from error
    if "\0" in text or "\f" in text:
        raise Unreadable("it holds control characters")
    return text


@dataclass(slots=True)
class _Scope:
    """Names that mean something within a function, a lambda, a comprehension or a class body."""

    names: frozenset[str]
    imports: Mapping[str, str] = field(default_factory=dict)
    is_class: bool = False  # what a class body binds is not seen by its methods


class _Module:
    """One file: what its names mean, and its units."""

    def __init__(self, tree: ast.Module, lines: list[str]) -> None:
        self._tree, self._lines = tree, lines
        self._scope = _scope_of(tree.body)
        self._units: dict[str, Unit] = {}
        self._outside: dict[str, list[ast.stmt]] = {}
        self._members: set[str] = set()

    def file(self) -> SourceFile:
        self._take(self._tree.body, "")
        for place, body in self._outside.items():
            read = partial(self._outside_facts, body, place)
            self._enter(Unit(place or "(module)", 0, "\n".join(map(self._text, body)), read))
        return SourceFile(self._units, self._scope.names | self._members)

    def _take(self, body: list[ast.stmt], place: str) -> None:
        kept = self._outside.setdefault(place, [])
        for node in body:
            if isinstance(node, _FUNCTIONS):
                self._function(node, place)
            elif isinstance(node, ast.ClassDef):
                kept.append(_head(node))
                self._members.add(node.name)
                self._take(node.body, f"{place}{node.name}.")
            elif _holds_functions(node):
                kept.append(node)
                for block in _blocks(node):
                    self._take([each for each in block if isinstance(each, (*_FUNCTIONS, ast.ClassDef))], place)
            else:
                kept.append(node)
                if place:
                    self._members |= _bound([node])

    def _function(self, node: _Function, place: str) -> None:
        self._members.add(node.name)
        hook = bool(place) and PYTHON.hooks(node.name)
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                self._members.add(part.attr)
        unit = Unit(
            f"{place}{node.name}", node.lineno, self._text(node), partial(self._function_facts, node, place),
            hook, partial(_meaning, node),
        )  # fmt: skip
        self._enter(unit)

    def _enter(self, unit: Unit) -> None:
        """A name that is defined twice is two units: the second one hides the first."""
        number, name = 1, unit.name
        while name in self._units:
            number += 1
            name = f"{unit.name} ({number})"
        self._units[name] = unit

    def _text(self, node: ast.stmt) -> str:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        return "\n".join(self._lines[first - 1 : node.end_lineno])

    def _function_facts(self, node: _Function, place: str) -> Facts:
        reader = _Reader(self._scope)
        for mark in node.decorator_list:
            reader.facts.add(Kind.mark, Mark.decorator, mark.lineno)
        if place and PYTHON.hooks(node.name):
            reader.facts.add(Kind.mark, Mark.hook, node.lineno)
        reader.function(node)
        return reader.facts

    def _outside_facts(self, body: list[ast.stmt], place: str) -> Facts:
        reader = _Reader(self._scope)
        if place:
            reader.push(_Scope(_bound(body), is_class=True))
        for node in body:
            if _is_text(node):
                continue
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                reader.facts.add(Kind.outside, _digest(node), node.lineno)
            reader.outside(node)
            for name in _bound([node]) if place else ():
                if PYTHON.hooks(name):
                    reader.facts.add(Kind.mark, Mark.hook, node.lineno)
        return reader.facts


def _head(node: ast.ClassDef) -> ast.ClassDef:
    """A class without what stands in it."""
    made = ast.ClassDef(node.name, node.bases, node.keywords, [ast.Pass(lineno=node.lineno)], node.decorator_list)
    ast.copy_location(made, node)
    made.end_lineno = node.body[0].lineno - 1 if node.body and node.body[0].lineno > node.lineno else node.lineno
    return made


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(node, "handlers", ()):
        yield handler.body


def _holds_functions(node: ast.stmt) -> bool:
    return any(isinstance(each, (*_FUNCTIONS, ast.ClassDef)) for block in _blocks(node) for each in block)


def _digest(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _meaning(node: _Function) -> str:
    """What a function does, whatever its locals are called and its text says."""
    local = sorted(_scope_of(node.body, node.args).names)
    text = ast.dump(ast.Module([each for each in node.body if not _is_text(each)], []))
    order = sorted((text.find(f"'{name}'"), name) for name in local)
    for number, (_, name) in enumerate(order):
        text = re.sub(rf"(?<=id=)'{re.escape(name)}'|(?<=arg=)'{re.escape(name)}'", f"<{number}>", text)
    return text


def _scope_of(body: Iterable[ast.AST], arguments: ast.arguments | None = None) -> _Scope:
    nodes = list(body)
    imports: dict[str, str] = {}
    for node in _within(nodes):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(_imported(node))
    names = _bound(nodes)
    if arguments is not None:
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        names |= {each.arg for each in every if each is not None}
    return _Scope(names, imports)


def _within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """These and all below them, but not what has a scope of its own."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
        elif isinstance(node, _COMPREHENSIONS):
            stack.extend(each for each in ast.walk(node) if isinstance(each, ast.NamedExpr))


def _bound(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    elsewhere: set[str] = set()
    for node in _within(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
    return frozenset(found - elsewhere)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """What the file calls it, and what it is: `module` or `module:name`, with dots in front where it is relative."""
    if isinstance(node, ast.Import):
        for each in node.names:
            yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2  # type: ignore[misc]
        return
    module = "." * node.level + (node.module or "")
    for each in node.names:
        yield each.asname or each.name, f"{module}:{each.name}"


def _joined(target: str) -> str:
    """`os:environ` as it would be written: `os.environ`."""
    module, _, name = target.partition(":")
    return f"{module}.{name}" if name and not module.endswith(".") else f"{module}{name}"


class _Reader:
    """Counts the facts of one unit."""

    def __init__(self, module: _Scope) -> None:
        self.facts = Facts()
        self._module = module
        self._scopes: list[_Scope] = []
        self._told = 0  # inside of what only says what went wrong
        self._depth = 0

    def push(self, scope: _Scope) -> None:
        self._scopes.append(scope)

    def function(self, node: _Function) -> None:
        for mark in node.decorator_list:
            self.visit(mark)
        self._signature(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self.push(_scope_of(node.body, node.args))
        self._named_literals(node)
        self._block(node.body)
        self._scopes.pop()

    def outside(self, node: ast.stmt) -> None:
        """A statement outside functions; functions that stand in it are units of their own."""
        if _holds_functions(node):
            for block in _blocks(node):
                for each in block:
                    if not isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
                        self.outside(each)
            for name, value in ast.iter_fields(node):
                if name in ("test", "items", "iter", "subject") and isinstance(value, ast.AST):
                    self.visit(value)
        elif isinstance(node, ast.ClassDef):
            self._class_head(node)
        else:
            self.visit(node)

    def _class_head(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases):
            self.visit(part)
            if isinstance(part, ast.Name) and part.id == "type":
                self.facts.add(Kind.mark, Mark.hook, node.lineno)
        for key in node.keywords:
            self.visit(key.value)
            self.facts.add(Kind.mark, Mark.hook, node.lineno)

    def _signature(self, arguments: ast.arguments) -> None:
        for default in (*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)):
            if isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call, *_COMPREHENSIONS)):
                self.facts.add(Kind.mark, Mark.state, default.lineno)
            self.visit(default)
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for each in every:
            if each is not None and each.annotation is not None:
                self.visit(each.annotation)

    def _named_literals(self, node: _Function) -> None:
        """A local that is one literal and nothing else, and is computed with."""
        stores: dict[str, list[bool]] = {}
        for part in _within(node.body):
            if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
                stores.setdefault(part.targets[0].id, []).append(_is_number(part.value))
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                stores.setdefault(part.id, []).append(False)
        for part in _within(node.body):
            if isinstance(part, (ast.BinOp, ast.Compare)):
                for name in [each for each in ast.iter_child_nodes(part) if isinstance(each, ast.Name)]:
                    known = stores.get(name.id, [])
                    if known.count(True) == 1 and len(known) == 2:  # the assignment, and its target
                        self.facts.add(Kind.mark, Mark.named_literal, part.lineno)

    def _block(self, body: list[ast.stmt]) -> None:
        for place, node in enumerate(body):
            if place and isinstance(body[place - 1], _ENDS):
                self.facts.add(Kind.mark, Mark.unreachable, node.lineno)
            if not _is_text(node):
                self.facts.add(Kind.size, Size.statement, node.lineno)
            self.visit(node)

    def visit(self, node: ast.AST) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("the code is nested too deeply")
        special = _VISIT.get(type(node))
        if special is not None:
            special(self, node)
        else:
            self.below(node)
        self._depth -= 1

    def below(self, node: ast.AST) -> None:
        for _, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                self.visit(value)
            elif isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    self._block(value)
                else:
                    for each in value:
                        if isinstance(each, ast.AST):
                            self.visit(each)

    # Names

    def _visible(self) -> Iterator[_Scope]:
        for place, scope in enumerate(reversed(self._scopes)):
            if not place or not scope.is_class:
                yield scope

    def _is_local(self, name: str) -> bool:
        return any(name in scope.names for scope in self._visible())

    def _import_of(self, name: str) -> str | None:
        for scope in self._visible():
            if name in scope.imports:
                return scope.imports[name]
            if name in scope.names:
                return None
        return self._module.imports.get(name)

    def _root(self, name: str) -> tuple[Kind | None, str]:
        """What a bare name is: from outside, of the file itself, or (None) local."""
        target = self._import_of(name)
        if target is not None:
            return Kind.name, _joined(target)
        if self._is_local(name):
            return None, name
        if name in self._module.names and not PYTHON.is_power(name):
            return Kind.own, name
        return Kind.name, name if name in PYTHON.built_in or PYTHON.is_power(name) else f"?{name}"

    def name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            kind, value = self._root(node.id)
            if kind is not None:
                self.facts.add(kind, value, node.lineno)
        elif self._root(node.id)[0] is Kind.own and not self._is_local(node.id) and self._scopes:
            self.facts.add(Kind.store, f"={node.id}", node.lineno)

    def attribute(self, node: ast.Attribute) -> None:
        chain, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            chain.insert(0, root.attr)
            root = root.value
        if not isinstance(node.ctx, ast.Load):
            self._stored_attribute(node, chain, root)
            return
        kind, value = self._root(root.id) if isinstance(root, ast.Name) else (None, "")
        if kind is Kind.name:
            self.facts.add(Kind.name, ".".join((value, *chain)), node.lineno)
            return
        self.visit(root)
        for each in chain:
            self.facts.add(Kind.attribute, each, node.lineno)

    def _stored_attribute(self, node: ast.Attribute, chain: list[str], root: ast.expr) -> None:
        kind, value = self._root(root.id) if isinstance(root, ast.Name) else (None, "")
        start = {Kind.name: f"@{value}", Kind.own: f"={value}"}.get(kind, "") if kind else ""
        if not start:
            self.visit(root)
            for each in chain[:-1]:
                self.facts.add(Kind.attribute, each, node.lineno)
            chain = chain[-1:]
        self.facts.add(Kind.store, ".".join((start, *chain)), node.lineno)

    def subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            root = node.value
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            kind, value = self._root(root.id) if isinstance(root, ast.Name) else (None, "")
            if kind is not None:
                self.facts.add(Kind.store, f"{'@' if kind is Kind.name else '='}{value}[]", node.lineno)
        self.below(node)

    def call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name) and not self._is_local(function.id):
            if function.id == "getattr" and len(node.args) >= 2 and _is_string(node.args[1]):
                assert isinstance(node.args[1], ast.Constant)
                self.attribute(ast.Attribute(node.args[0], node.args[1].value, ast.Load(), lineno=node.lineno))
                for default in node.args[2:]:
                    self.visit(default)
                return
            if function.id == "type" and len(node.args) + len(node.keywords) > 1:
                self.facts.add(Kind.mark, Mark.hook, node.lineno)
            if PYTHON.validates(function.id):
                self.facts.add(Kind.check, function.id, node.lineno)
        if isinstance(function, ast.Attribute):
            self._method(function, node)
        if isinstance(function, ast.Subscript):
            self.facts.add(Kind.mark, Mark.computed_call, node.lineno)
        self.below(node)

    def _method(self, function: ast.Attribute, node: ast.Call) -> None:
        if PYTHON.validates(function.attr):
            self.facts.add(Kind.check, function.attr, node.lineno)
        if function.attr in PYTHON.mutators and isinstance(function.value, ast.Name):
            kind, value = self._root(function.value.id)
            if kind is Kind.own:
                self.facts.add(Kind.store, f"={value}.{function.attr}()", node.lineno)

    # Values

    def constant(self, node: ast.Constant) -> None:
        if self._told and isinstance(node.value, (str, bytes)):
            return
        self._value(f"{node.value!r}", node.lineno)

    def _value(self, text: str, line: int) -> None:
        self.facts.add(Kind.value, text, line)
        if text not in ("None", "True", "False", "Ellipsis"):
            self.facts.add(Kind.size, Size.literal, line)

    def unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub) and _is_number(node):
            self._value(ast.unparse(node), node.lineno)
        else:
            self.below(node)

    def arithmetic(self, node: ast.BinOp) -> None:
        leaves = list(_leaves(node))
        literal = [each for each in leaves if _is_number(each) or _is_string(each)]
        if len(literal) > 1 and (len(literal) == len(leaves) or isinstance(node.op, (ast.Add, ast.Sub))):
            self.facts.add(Kind.mark, Mark.arithmetic, node.lineno)
        for each in leaves:
            if not (isinstance(node.op, _SCALING) and isinstance(each, ast.Constant) and each.value in (2, 2.0, 0.5)):
                self.visit(each)
            else:
                self.facts.add(Kind.size, Size.literal, each.lineno)

    def compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in node.ops):
            for side in sides:
                inside = side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
                for each in inside:
                    if (_is_number(each) or _is_string(each)) and not PYTHON.is_empty(ast.unparse(each)):
                        self.facts.add(Kind.size, Size.equality, node.lineno)
        if len({ast.dump(side) for side in sides}) < len(sides):
            self.facts.add(Kind.mark, Mark.arithmetic, node.lineno)
        self.below(node)

    def match_value(self, node: ast.MatchValue) -> None:
        self.facts.add(Kind.size, Size.equality, node.value.lineno)
        self.below(node)

    def fstring(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if isinstance(part, ast.Constant):
                self.constant(part)
            else:
                self.visit(part)

    # Constructs

    def branch(self, node: ast.AST) -> None:
        self.facts.add(Kind.size, Size.branch, getattr(node, "lineno", 0))
        test = getattr(node, "test", None)
        if isinstance(test, ast.Constant) and not (isinstance(node, ast.While) and test.value):
            self.facts.add(Kind.mark, Mark.unreachable, test.lineno)
        self.below(node)

    def boolean(self, node: ast.BoolOp) -> None:
        for each in node.values:
            if isinstance(each, ast.Constant) and isinstance(each.value, (bool, int)):
                self.facts.add(Kind.mark, Mark.unreachable, each.lineno)
        for _ in node.values[1:]:
            self.facts.add(Kind.size, Size.branch, node.lineno)
        self.below(node)

    def comprehension(self, node: ast.AST) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)  # it is evaluated outside
        self.push(_Scope(_bound(each.target for each in generators)))
        self.below(node)
        self._scopes.pop()

    def lambda_(self, node: ast.Lambda) -> None:
        self._signature(node.args)
        self.push(_scope_of([node.body], node.args))
        self.visit(node.body)
        self._scopes.pop()

    def nested(self, node: _Function) -> None:
        self.facts.add(Kind.mark, Mark.nested_function, node.lineno)
        self.function(node)

    def class_(self, node: ast.ClassDef) -> None:
        self.facts.add(Kind.mark, Mark.new_class, node.lineno)
        self._class_head(node)
        self.push(_Scope(_bound(node.body), is_class=True))
        for each in node.body:
            if isinstance(each, _FUNCTIONS) and PYTHON.hooks(each.name):
                self.facts.add(Kind.mark, Mark.hook, each.lineno)
            self.visit(each)
        if any(PYTHON.hooks(name) for name in _bound(node.body)):
            self.facts.add(Kind.mark, Mark.hook, node.lineno)
        self._scopes.pop()

    def raise_(self, node: ast.Raise) -> None:
        self.facts.add(Kind.check, "raise", node.lineno)
        self._telling(node)

    def assert_(self, node: ast.Assert) -> None:
        self.facts.add(Kind.check, "assert", node.lineno)
        self.visit(node.test)
        if node.msg is not None:
            self._telling(node.msg)

    def _telling(self, node: ast.AST) -> None:
        self._told += 1
        self.below(node) if isinstance(node, ast.Raise) else self.visit(node)
        self._told -= 1

    def handler(self, node: ast.ExceptHandler) -> None:
        names = {each.id for each in ast.walk(node.type) if isinstance(each, ast.Name)} if node.type else {"Exception"}
        raises = any(isinstance(each, ast.Raise) for each in ast.walk(node))
        broad = bool(names & {"Exception", "BaseException"}) and not raises
        self.facts.add(Kind.mark, Mark.catch_all if broad else Mark.catch, node.lineno)
        self.below(node)

    def try_(self, node: ast.Try) -> None:
        for each in node.finalbody:
            for part in _within([each]):
                if isinstance(part, (ast.Return, ast.Break, ast.Continue)):
                    self.facts.add(Kind.mark, Mark.leaves_finally, part.lineno)
        self.below(node)

    def state(self, node: ast.Global | ast.Nonlocal) -> None:
        self.facts.add(Kind.mark, Mark.state, node.lineno)

    def generator(self, node: ast.AST) -> None:
        self.facts.add(Kind.mark, Mark.generator, getattr(node, "lineno", 0))
        self.below(node)

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        targets = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        for target in targets or [each for _, each in _imported(node)]:
            self.facts.add(Kind.imports, target, node.lineno)


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    else:
        yield node


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd, ast.Invert)) and _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


_VISIT = {
    ast.Name: _Reader.name, ast.Attribute: _Reader.attribute, ast.Subscript: _Reader.subscript, ast.Call: _Reader.call,
    ast.Constant: _Reader.constant, ast.UnaryOp: _Reader.unary, ast.BinOp: _Reader.arithmetic,
    ast.Compare: _Reader.compare, ast.MatchValue: _Reader.match_value, ast.JoinedStr: _Reader.fstring,
    ast.If: _Reader.branch, ast.IfExp: _Reader.branch, ast.While: _Reader.branch, ast.For: _Reader.branch,
    ast.AsyncFor: _Reader.branch, ast.match_case: _Reader.branch, ast.BoolOp: _Reader.boolean,
    ast.ListComp: _Reader.comprehension, ast.SetComp: _Reader.comprehension, ast.DictComp: _Reader.comprehension,
    ast.GeneratorExp: _Reader.comprehension, ast.Lambda: _Reader.lambda_, ast.FunctionDef: _Reader.nested,
    ast.AsyncFunctionDef: _Reader.nested, ast.ClassDef: _Reader.class_, ast.Raise: _Reader.raise_,
    ast.Assert: _Reader.assert_, ast.ExceptHandler: _Reader.handler, ast.Try: _Reader.try_,
    ast.TryStar: _Reader.try_, ast.Global: _Reader.state, ast.Nonlocal: _Reader.state, ast.Yield: _Reader.generator,
    ast.YieldFrom: _Reader.generator, ast.Import: _Reader.imports, ast.ImportFrom: _Reader.imports,
}  # fmt: skip
