"""What names mean in Python source: who binds them, and where imports lead."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*FUNCTIONS, ast.Lambda, *COMPREHENSIONS, ast.ClassDef)
_NAMED = (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


@dataclass(slots=True)
class Scope:
    """Names that mean something within a function, a lambda, a comprehension or a class body."""

    names: frozenset[str]
    imports: Mapping[str, str] = field(default_factory=dict)
    is_class: bool = False  # what a class body binds is not seen by its methods

    def __or__(self, other: Scope) -> Scope:
        return Scope(self.names | other.names, {**self.imports, **other.imports})


def scope_of(body: Iterable[ast.AST], arguments: ast.arguments | None = None) -> Scope:
    nodes = list(within(body))
    imports: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(imported(node))
    names = _bound_by(nodes)
    if arguments is not None:
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        names |= {each.arg for each in every if each is not None}
    return Scope(names, imports)


def within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """These and all below them, but not what has a scope of its own."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
        elif isinstance(node, COMPREHENSIONS):
            stack.extend(_walruses(node))


def _walruses(comprehension: ast.AST) -> Iterator[ast.AST]:
    """`:=` in a comprehension binds outside of it; in a lambda within it does not."""
    stack = list(ast.iter_child_nodes(comprehension))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.NamedExpr):
            yield node
        elif not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def bound(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return _bound_by(within(nodes))


def _bound_by(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    elsewhere: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, _NAMED):
            found.add(node.name or "")
        elif isinstance(node, ast.MatchMapping):
            found.add(node.rest or "")
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
    return frozenset(found - elsewhere - {""})


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """What the file calls it, and what it is: `module` or `module:name`, with dots in front where it is relative."""
    if isinstance(node, ast.Import):
        for each in node.names:
            first = each.name.partition(".")[0]
            yield (each.asname, each.name) if each.asname else (first, first)
        return
    module = "." * node.level + (node.module or "")
    for each in node.names:
        yield each.asname or each.name, f"{module}:{each.name}"


def joined(target: str) -> str:
    """`os:environ` as it would be written: `os.environ`."""
    module, _, name = target.partition(":")
    return f"{module}.{name}" if name and not module.endswith(".") else f"{module}{name}"


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(node, "handlers", ()):
        yield handler.body


def holds_functions(node: ast.stmt) -> bool:
    return any(isinstance(each, (*FUNCTIONS, ast.ClassDef)) for block in blocks(node) for each in block)
