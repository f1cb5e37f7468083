"""Rewrites of a file that change nothing of what it does: blanks, comments, names of locals, order of functions."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

from becket.parts.guard.reading.languages.treesitter import _parser

Rewrite = Callable[[str, Random], str]

_STATEMENTS = frozenset(
    [
        "lexical_declaration",
        "variable_declaration",
        "expression_statement",
        "return_statement",
        "if_statement",
        "for_statement",
        "for_in_statement",
        "while_statement",
        "throw_statement",
        "try_statement",
        "function_declaration",
        "class_declaration",
        "short_var_declaration",
        "let_declaration",
        "local_variable_declaration",
        "enhanced_for_statement",
    ]
)


def py_blanks(source: str, rng: Random) -> str:
    return _at_line_ends(source, lambda: rng.choice(("", "   ", "\n", "\n\n")))


def py_comments(source: str, rng: Random) -> str:
    return _at_line_ends(source, lambda: rng.choice(("", "  # so it is", "\n# os.environ is not asked here")))


def _at_line_ends(source: str, more: Callable[[], str]) -> str:
    lines = source.splitlines(keepends=True)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    ends = [token.start[0] for token in tokens if token.type == tokenize.NEWLINE]
    for number in ends[1:]:
        if number <= len(lines):
            lines[number - 1] = lines[number - 1].rstrip("\n") + more() + "\n"
    return "".join(lines)


def py_locals(source: str, rng: Random) -> str:
    tree = ast.parse(source)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        _Renamed({name: f"{name}_{rng.randrange(100)}" for name in _own(function)}).generic_visit(function)
    return ast.unparse(tree) + "\n"


def _own(function: ast.FunctionDef) -> set[str]:
    """Names that are only ever plain locals of this function."""
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored - set(_bound_otherwise(function))


def _bound_otherwise(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name):
                yield name
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.ClassDef(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if node is not function:
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name
    # Names in the body of a class within are its attributes.
    for inner in ast.walk(function):
        if isinstance(inner, ast.ClassDef):
            yield from (node.id for node in ast.walk(inner) if isinstance(node, ast.Name))


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node


def py_order(source: str, rng: Random) -> str:
    tree = ast.parse(source)
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        places = [at for at, node in enumerate(body) if isinstance(node, ast.FunctionDef) and not node.decorator_list]
        mixed = rng.sample([body[at] for at in places], len(places))
        for at, node in zip(places, mixed, strict=True):
            body[at] = node
    return ast.unparse(tree) + "\n"


def comments_of(language: str) -> Rewrite:
    def rewrite(source: str, rng: Random) -> str:
        return _before_statements(
            language, source, lambda: rng.choice(("", "// process.env is not asked here\n", "/* so */\n"))
        )

    return rewrite


def blanks_of(language: str) -> Rewrite:
    def rewrite(source: str, rng: Random) -> str:
        return _before_statements(language, source, lambda: rng.choice(("", "\n", "\n\n")))

    return rewrite


def _before_statements(language: str, source: str, more: Callable[[], str]) -> str:
    lines = source.splitlines(keepends=True)
    for row, column in sorted({node.start_point[:2] for node in _nodes(language, source) if node.type in _STATEMENTS}):
        if not lines[row][:column].strip():
            lines[row] = more() + lines[row]
    return "".join(lines)


def _nodes(language: str, source: str) -> Iterator:  # type: ignore[type-arg]
    todo = [_parser(language).parse(source.encode()).root_node]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


def js_locals(source: str, rng: Random) -> str:
    """Locals of functions that are declared once, by const or let, and never a short name of a property."""
    content = source.encode()
    nodes = list(_nodes("javascript", source))
    declared = Counter(
        node.child_by_field_name("name").text
        for node in nodes
        if node.type == "variable_declarator"
        and _within_function(node)
        and node.child_by_field_name("name").type == "identifier"
    )
    taken = {node.text for node in nodes if "shorthand" in node.type} | {
        node.text for node in nodes if node.type == "identifier" and _binds(node)
    }
    own = {
        name: name + str(rng.randrange(100)).encode()
        for name, count in declared.items()
        if count == 1 and name not in taken
    }
    spots = sorted(
        (node.start_byte, node.end_byte, node.text) for node in nodes if node.type == "identifier" and node.text in own
    )
    for start, end, name in reversed(spots):
        content = content[:start] + own[name] + content[end:]
    return content.decode()


def _within_function(node) -> bool:  # type: ignore[no-untyped-def]
    while node.parent is not None:
        node = node.parent
        if node.type in {"function_declaration", "method_definition", "arrow_function"}:
            return True
    return False


def _binds(node) -> bool:  # type: ignore[no-untyped-def]
    parent = node.parent
    if parent.type == "variable_declarator":
        return not _within_function(node)
    return parent.type in {
        "formal_parameters",
        "arrow_function",
        "catch_clause",
        "function_declaration",
        "import_specifier",
    }


def js_order(source: str, rng: Random) -> str:
    root = _parser("javascript").parse(source.encode()).root_node
    content = source.encode()
    found = [node for node in root.children if node.type == "function_declaration"]
    mixed = rng.sample([content[node.start_byte : node.end_byte] for node in found], len(found))
    for node, text in reversed(list(zip(found, mixed, strict=True))):
        content = content[: node.start_byte] + text + content[node.end_byte :]
    return content.decode()


REWRITES: dict[str, dict[str, Rewrite]] = {
    ".py": {"blanks": py_blanks, "comments": py_comments, "locals": py_locals, "order": py_order},
    ".js": {
        "blanks": blanks_of("javascript"),
        "comments": comments_of("javascript"),
        "locals": js_locals,
        "order": js_order,
    },
    ".mjs": {"blanks": blanks_of("javascript"), "comments": comments_of("javascript"), "locals": js_locals},
    ".ts": {"blanks": blanks_of("typescript.typescript"), "comments": comments_of("typescript.typescript")},
    ".go": {"blanks": blanks_of("go"), "comments": comments_of("go")},
    ".rs": {"blanks": blanks_of("rust"), "comments": comments_of("rust")},
    ".java": {"blanks": blanks_of("java"), "comments": comments_of("java")},
}
KINDS = ("blanks", "comments", "locals", "order")
