"""The facts of a piece of Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from becket.parts.guard.reading.classes.facts import EARLY_RETURN, Construct, FactKind, Facts, Size
from becket.parts.guard.reading.classes.pyscope import (
    COMPREHENSIONS,
    FUNCTIONS,
    Function,
    Scope,
    blocks,
    bound,
    holds_functions,
    imported,
    joined,
    scope_of,
    within,
)
from becket.parts.guard.reading.classes.table import PYTHON
from becket.parts.guard.reading.languages.pyshape import is_text
from becket.parts.guard.reading.languages.shape import UnreadableSource

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SCALING = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
_DEEPEST = 150
_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
_LOCAL = re.compile(r"(?<=id=)'(\w+)'")
_SWITCHES = frozenset({"verify", "secure", "safe", "strict", "check", "validate", "autoescape"})


class Reader:
    """Counts the facts of one unit."""

    def __init__(self, module: Scope) -> None:
        self.facts = Facts()
        self._module = module
        self._scopes: list[Scope] = []
        self._catches = False  # then what is raised may be read again
        self._told = 0  # inside of what only says what went wrong
        self._depth = 0

    def push(self, scope: Scope) -> None:
        self._scopes.append(scope)

    def function(self, node: Function) -> None:
        for mark in node.decorator_list:
            self.facts.add(FactKind.check, f"@{ast.unparse(mark)}", mark.lineno)
            self.visit(mark)
        self._catches = self._catches or any(isinstance(each, ast.ExceptHandler) for each in ast.walk(node))
        self._signature(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self.push(scope_of(node.body, node.args))
        self._named_literals(node)
        self._block(node.body)
        self._scopes.pop()

    def outside(self, node: ast.stmt) -> None:
        """A statement outside functions; functions that stand in it are units of their own."""
        if holds_functions(node):
            for block in blocks(node):
                for each in block:
                    if not isinstance(each, (*FUNCTIONS, ast.ClassDef)):
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
                self.facts.add(FactKind.mark, Construct.hook, node.lineno)
        for key in node.keywords:
            self.visit(key.value)
            self.facts.add(FactKind.mark, Construct.hook, node.lineno)

    def _signature(self, arguments: ast.arguments) -> None:
        for default in (*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)):
            if isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call, *COMPREHENSIONS)):
                self.facts.add(FactKind.mark, Construct.state, default.lineno)
            self.visit(default)
        self._switches(arguments)
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for each in every:
            if each is not None and each.annotation is not None:
                self.visit(each.annotation)

    def _switches(self, arguments: ast.arguments) -> None:
        named = [*arguments.posonlyargs, *arguments.args]
        pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
        pairs += [
            (name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
        ]
        for name, value in pairs:
            if name.arg in _SWITCHES and isinstance(value, ast.Constant) and value.value is True:
                self.facts.add(FactKind.check, f"{name.arg}=True", value.lineno)

    def _named_literals(self, node: Function) -> None:
        """A local that is one literal and nothing else, and is computed with."""
        stores: dict[str, list[bool]] = {}
        computed: list[ast.AST] = []
        for part in within(node.body):
            kind = type(part)
            if kind is ast.Assign and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):  # type: ignore[attr-defined]
                stores.setdefault(part.targets[0].id, []).append(_is_number(part.value))  # type: ignore[attr-defined]
            elif kind is ast.Name and isinstance(part.ctx, ast.Store):  # type: ignore[attr-defined]
                stores.setdefault(part.id, []).append(False)  # type: ignore[attr-defined]
            elif kind is ast.BinOp or kind is ast.Compare:
                computed.append(part)
        once = {name for name, found in stores.items() if found.count(True) == 1 and len(found) == 2}
        for part in computed if once else ():
            for name in ast.iter_child_nodes(part):
                if isinstance(name, ast.Name) and name.id in once:  # its only binding is the literal
                    self.facts.add(FactKind.mark, Construct.named_literal, getattr(part, "lineno", 0))

    def _block(self, body: list[ast.stmt]) -> None:
        for place, node in enumerate(body):
            if place and isinstance(body[place - 1], _ENDS):
                self.facts.add(FactKind.mark, Construct.unreachable, node.lineno)
            if not is_text(node):
                self.facts.add(FactKind.line, self._shape(node), node.lineno)
                self.visit(node)

    def _shape(self, node: ast.stmt) -> str:
        """A statement without what stands in its blocks, and whatever its locals are called."""
        parts = [(name, value) for name, value in ast.iter_fields(node) if name not in _BLOCKS]
        told = [ast.dump(part) if isinstance(part, ast.AST) else _dumped(part) for _, part in parts]
        text = f"{type(node).__name__} {' '.join(told)}"
        return _LOCAL.sub(lambda found: "<>" if self._is_local(found[1]) else found[0], text)

    def visit(self, node: ast.AST) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnreadableSource("the code is nested too deeply")
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

    def _visible(self) -> Iterator[Scope]:
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

    def _root(self, name: str) -> tuple[FactKind | None, str]:
        """What a bare name is: from outside, of the file itself, or (None) local."""
        target = self._import_of(name)
        if target is not None:
            return FactKind.name, joined(target)
        if self._is_local(name):
            return None, name
        if name in self._module.names and not PYTHON.is_power(name):
            return FactKind.own, name
        return FactKind.name, name if name in PYTHON.built_in or PYTHON.is_power(name) else f"?{name}"

    def name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            kind, value = self._root(node.id)
            if kind is not None:
                self.facts.add(kind, value, node.lineno)
        elif self._root(node.id)[0] is FactKind.own and not self._is_local(node.id) and self._scopes:
            self.facts.add(FactKind.store, f"={node.id}", node.lineno)

    def attribute(self, node: ast.Attribute) -> None:
        chain, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            chain.insert(0, root.attr)
            root = root.value
        if not isinstance(node.ctx, ast.Load):
            self._stored_attribute(node, chain, root)
            return
        kind, value = self._root(root.id) if isinstance(root, ast.Name) else (None, "")
        if kind is FactKind.name:
            self.facts.add(FactKind.name, ".".join((value, *chain)), node.lineno)
            return
        self.visit(root)
        for each in chain:
            self.facts.add(FactKind.attribute, each, node.lineno)

    def _stored_attribute(self, node: ast.Attribute, chain: list[str], root: ast.expr) -> None:
        kind, value = self._root(root.id) if isinstance(root, ast.Name) else (None, "")
        start = {FactKind.name: f"@{value}", FactKind.own: f"={value}"}.get(kind, "") if kind else ""
        if not start:
            self.visit(root)
            for each in chain[:-1]:
                self.facts.add(FactKind.attribute, each, node.lineno)
            start, chain = "" if isinstance(root, ast.Name) else "=()", chain[-1:]
        self.facts.add(FactKind.store, ".".join((start, *chain)), node.lineno)

    def subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            root = node.value
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            kind, value = self._root(root.id) if isinstance(root, ast.Name) else (None, "")
            if kind is not None:
                self.facts.add(FactKind.store, f"{'@' if kind is FactKind.name else '='}{value}[]", node.lineno)
        if isinstance(node.slice, ast.Slice) and node.slice.upper is not None and ast.unparse(node.slice.upper) == "0":
            self.facts.add(FactKind.mark, Construct.unreachable, node.lineno)
        self.visit(node.value)
        for part in _without_places(node.slice):
            self.visit(part)

    def call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name) and not self._is_local(function.id):
            if function.id == "getattr" and len(node.args) >= 2 and _is_string(node.args[1]):
                name = ast.literal_eval(node.args[1])
                self.attribute(ast.Attribute(node.args[0], str(name), ast.Load(), lineno=node.lineno))
                for default in node.args[2:]:
                    self.visit(default)
                return
            if function.id == "type" and len(node.args) + len(node.keywords) > 1:
                self.facts.add(FactKind.mark, Construct.hook, node.lineno)
            if PYTHON.validates(function.id):
                self.facts.add(FactKind.check, function.id, node.lineno)
        if isinstance(function, ast.Attribute):
            self._method(function, node)
        if isinstance(function, ast.Subscript):
            self.facts.add(FactKind.mark, Construct.computed_call, node.lineno)
        self._given(node)
        self.below(node)

    def _given(self, node: ast.Call) -> None:
        """The same thing given twice compares with itself; names of a `dict` are texts."""
        told = [ast.dump(each) for each in node.args if not isinstance(each, (ast.Constant, ast.Starred))]
        if len(set(told)) < len(told):
            self.facts.add(FactKind.mark, Construct.arithmetic, node.lineno)
        if isinstance(node.func, ast.Name) and node.func.id in ("dict", "SimpleNamespace", "namedtuple"):
            for key in node.keywords:
                self.facts.add(FactKind.value, repr(key.arg), node.lineno)

    def _method(self, function: ast.Attribute, node: ast.Call) -> None:
        if PYTHON.validates(function.attr):
            self.facts.add(FactKind.check, function.attr, node.lineno)
        if function.attr in PYTHON.mutators and isinstance(function.value, ast.Name):
            kind, value = self._root(function.value.id)
            if kind is FactKind.own:
                self.facts.add(FactKind.store, f"={value}.{function.attr}()", node.lineno)

    # Values

    def constant(self, node: ast.Constant) -> None:
        if self._told and isinstance(node.value, (str, bytes)) and not self._catches:
            return
        self._value(f"{node.value!r}", node.lineno)

    def _value(self, text: str, line: int) -> None:
        self.facts.add(FactKind.value, text, line)
        if text not in ("None", "True", "False", "Ellipsis"):
            self.facts.add(FactKind.size, Size.literal, line)

    def unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub) and _is_number(node):
            self._value(ast.unparse(node), node.lineno)
        else:
            self.below(node)

    def arithmetic(self, node: ast.BinOp) -> None:
        leaves = list(_leaves(node))
        literal = [each for each in leaves if _is_number(each) or _is_string(each)]
        summed = [each for each in _summands(node) if _is_number(each) or _is_string(each)]
        if len(summed) > 1 or len(leaves) == len(literal) > 1:
            self.facts.add(FactKind.mark, Construct.arithmetic, node.lineno)
        zero = isinstance(node.op, ast.Mult) and any(
            _is_number(each) and ast.unparse(each) in ("0", "0.0") for each in leaves
        )
        if zero or (not isinstance(node.op, (ast.Add, ast.Mult)) and ast.dump(node.left) == ast.dump(node.right)):
            self.facts.add(FactKind.mark, Construct.arithmetic, node.lineno)
        for each in leaves:
            if not (isinstance(node.op, _SCALING) and isinstance(each, ast.Constant) and each.value in (2, 2.0, 0.5)):
                self.visit(each)
            else:
                self.facts.add(FactKind.size, Size.literal, each.lineno)

    def compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        equal = any(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in node.ops)
        for side in sides:
            for each in side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]:
                self._compared_with(each, equal=equal)
        if len({ast.dump(side) for side in sides}) < len(sides):
            self.facts.add(FactKind.mark, Construct.arithmetic, node.lineno)
        self.below(node)

    def _compared_with(self, node: ast.expr, *, equal: bool) -> None:
        """A special case is made of comparisons with literals, known ones or not; one with a usual one is none."""
        if not (_is_number(node) or _is_string(node)):
            return
        text = ast.unparse(node)
        weight = int(not PYTHON.is_trivial(text)) + int(equal and not PYTHON.is_empty(text))
        for _ in range(weight):
            self.facts.add(FactKind.size, Size.equality, node.lineno)

    def match_class(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self.facts.add(FactKind.attribute, name, node.cls.lineno)
        self.below(node)

    def display(self, node: ast.expr) -> None:
        """Several literals side by side are a table of answers, however small each of them is."""
        inside = [*node.keys, *node.values] if isinstance(node, ast.Dict) else list(getattr(node, "elts", ()))
        literal = [ast.unparse(each) for each in inside if isinstance(each, ast.Constant)]
        if len(set(literal)) > 1 and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            self.facts.add(FactKind.value, f"[{', '.join(literal)}]", node.lineno)
        self.below(node)

    def assign(self, node: ast.Assign) -> None:
        """Another name for what stands outside keeps what is written to it as well."""
        if isinstance(node.value, ast.Name) and self._scopes:
            kind, value = self._root(node.value.id)
            if kind is FactKind.own:
                self.facts.add(FactKind.store, f"={value} by another name", node.lineno)
        self.below(node)

    def keyword(self, node: ast.keyword) -> None:
        if isinstance(node.value, ast.Constant) and node.value.value is True:
            if node.arg in _SWITCHES:
                self.facts.add(FactKind.check, f"{node.arg}=True", node.value.lineno)
            elif node.arg == "shell":
                self.facts.add(FactKind.name, "subprocess.shell", node.value.lineno)
        self.below(node)

    def match_value(self, node: ast.MatchValue) -> None:
        self._compared_with(node.value, equal=True)
        self.below(node)

    def fstring(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if isinstance(part, ast.Constant):
                self.constant(part)
            else:
                self.visit(part)

    # Constructs

    def branch(self, node: ast.AST) -> None:
        self.facts.add(FactKind.size, Size.branch, getattr(node, "lineno", 0))
        test = getattr(node, "test", None)
        if isinstance(test, ast.Constant) and not (isinstance(node, ast.While) and test.value):
            self.facts.add(FactKind.mark, Construct.unreachable, test.lineno)
        if isinstance(node, ast.If) and _refuses(node.body[-1]):
            self.facts.add(FactKind.check, EARLY_RETURN, node.lineno)
        if isinstance(node, ast.If) and (_refuses(node.body[-1]) or isinstance(node.body[-1], ast.Raise)):
            for part in ast.walk(node.test):
                if isinstance(part, ast.And):
                    self.facts.add(FactKind.mark, Construct.narrower, node.lineno)
        self.below(node)

    def boolean(self, node: ast.BoolOp) -> None:
        for each in node.values:
            dead = isinstance(each, ast.Constant) and isinstance(each.value, bool)
            if dead or (_is_number(each) and each is not node.values[-1]):
                self.facts.add(FactKind.mark, Construct.unreachable, each.lineno)
        for _ in node.values[1:]:
            self.facts.add(FactKind.size, Size.branch, node.lineno)
        self.below(node)

    def comprehension(self, node: ast.AST) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)  # it is evaluated outside
        self.push(Scope(bound(each.target for each in generators)))
        self.below(node)
        self._scopes.pop()

    def lambda_(self, node: ast.Lambda) -> None:
        self._signature(node.args)
        self.push(scope_of([node.body], node.args))
        self.visit(node.body)
        self._scopes.pop()

    def nested(self, node: Function) -> None:
        self.facts.add(FactKind.mark, Construct.nested_function, node.lineno)
        self.function(node)

    def class_(self, node: ast.ClassDef) -> None:
        self.facts.add(FactKind.mark, Construct.new_class, node.lineno)
        self._class_head(node)
        self.push(Scope(bound(node.body), is_class=True))
        for each in node.body:
            if isinstance(each, FUNCTIONS) and PYTHON.hooks(each.name):
                self.facts.add(FactKind.mark, Construct.hook, each.lineno)
            self.visit(each)
        if any(PYTHON.hooks(name) for name in bound(node.body)):
            self.facts.add(FactKind.mark, Construct.hook, node.lineno)
        self._scopes.pop()

    def return_(self, node: ast.Return) -> None:
        if not _refuses(node):
            self.facts.add(FactKind.size, Size.returned, node.lineno)
        self.below(node)

    def raise_(self, node: ast.Raise) -> None:
        self.facts.add(FactKind.check, "raise", node.lineno)
        self._telling(node)

    def assert_(self, node: ast.Assert) -> None:
        self.facts.add(FactKind.check, "assert", node.lineno)
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
        self.facts.add(FactKind.mark, Construct.catch_all if broad else Construct.catch, node.lineno)
        self.below(node)

    def try_(self, node: ast.Try) -> None:
        for each in node.finalbody:
            for part in within([each]):
                if isinstance(part, (ast.Return, ast.Break, ast.Continue)):
                    self.facts.add(FactKind.mark, Construct.leaves_finally, part.lineno)
        self.below(node)

    def state(self, node: ast.Global | ast.Nonlocal) -> None:
        self.facts.add(FactKind.mark, Construct.state, node.lineno)

    def generator(self, node: ast.AST) -> None:
        self.facts.add(FactKind.mark, Construct.generator, getattr(node, "lineno", 0))
        self.below(node)

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        targets = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        for target in targets or [each for _, each in imported(node)]:
            self.facts.add(FactKind.imports, target, node.lineno)


def _dumped(value: object) -> str:
    if isinstance(value, list):
        return " ".join(ast.dump(each) if isinstance(each, ast.AST) else str(each) for each in value)
    return str(value)


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    else:
        yield node


def _without_places(index: ast.expr) -> Iterator[ast.expr]:
    """A small number that says which item is meant is no answer."""
    for part in [index.lower, index.upper, index.step] if isinstance(index, ast.Slice) else [index]:
        if part is not None and not (_is_number(part) and len(ast.unparse(part).lstrip("-")) == 1):
            yield part


def _refuses(node: ast.stmt) -> bool:
    """`return`, `return None`, `return False`: the branch sends somebody away."""
    if not isinstance(node, ast.Return):
        return False
    return node.value is None or (isinstance(node.value, ast.Constant) and not node.value.value)


def _summands(node: ast.expr) -> Iterator[ast.expr]:
    """`a - 1 - 1` is a and two literals."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _summands(node.left)
        yield from _summands(node.right)
    else:
        yield node


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd, ast.Invert)) and _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


_VISIT: dict[type[ast.AST], Callable[[Reader, Any], None]] = {
    ast.Name: Reader.name, ast.Attribute: Reader.attribute, ast.Subscript: Reader.subscript, ast.Call: Reader.call,
    ast.Constant: Reader.constant, ast.UnaryOp: Reader.unary, ast.BinOp: Reader.arithmetic,
    ast.MatchClass: Reader.match_class, ast.List: Reader.display, ast.Tuple: Reader.display, ast.Set: Reader.display,
    ast.Dict: Reader.display, ast.Assign: Reader.assign, ast.keyword: Reader.keyword,
    ast.Compare: Reader.compare, ast.MatchValue: Reader.match_value, ast.JoinedStr: Reader.fstring,
    ast.If: Reader.branch, ast.IfExp: Reader.branch, ast.While: Reader.branch, ast.For: Reader.branch,
    ast.AsyncFor: Reader.branch, ast.match_case: Reader.branch, ast.BoolOp: Reader.boolean,
    ast.ListComp: Reader.comprehension, ast.SetComp: Reader.comprehension, ast.DictComp: Reader.comprehension,
    ast.GeneratorExp: Reader.comprehension, ast.Lambda: Reader.lambda_, ast.FunctionDef: Reader.nested,
    ast.AsyncFunctionDef: Reader.nested, ast.ClassDef: Reader.class_, ast.Raise: Reader.raise_,
    ast.Return: Reader.return_, ast.Assert: Reader.assert_, ast.ExceptHandler: Reader.handler, ast.Try: Reader.try_,
    ast.TryStar: Reader.try_, ast.Global: Reader.state, ast.Nonlocal: Reader.state, ast.Yield: Reader.generator,
    ast.YieldFrom: Reader.generator, ast.Import: Reader.imports, ast.ImportFrom: Reader.imports,
}  # fmt: skip
