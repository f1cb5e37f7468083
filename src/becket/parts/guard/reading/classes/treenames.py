"""Names, chains, calls and stores of any language that has a grammar: what each of them resolves to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from becket.parts.guard.reading.classes.facts import Construct, FactKind, Facts, Size
from becket.parts.guard.reading.classes.table import Table
from becket.parts.guard.reading.classes.treescope import TreeScope, bound, heads, name_node, parameter_names, words_of
from becket.parts.guard.reading.languages import treesitter
from becket.parts.guard.reading.languages.shape import Shape

TRUTH = {"true": "True", "false": "False", "null": "None", "nil": "None", "undefined": "None", "None": "None"}
_ITSELF = frozenset({"this", "self", "super", "Self", "base", "$this"})
TEXTS = frozenset({"string", "string_fragment", "string_content", "heredoc_content"})
_COMPARABLE = frozenset({"string", "char_literal", "character_literal", "rune_literal"})
_TABLES = frozenset(
    {"array", "list", "array_expression", "array_initializer", "literal_value", "tuple_expression", "object"}
)
_EVALUATED = frozenset({"right", "type", "size", "default_value", "parameters"})
_MARKS = {
    "swallow": Construct.catch_all,
    "generator": Construct.generator,
    "native": Construct.native,
    "load": Construct.runs_at_load,
    "state": Construct.state,
}
"""Roles that say no more than that the construct is there."""
NUMBER_SUFFIX = re.compile(r"(?<=\d)(?:_?[iu](?:8|16|32|64|128|size)|_?f(?:32|64)|[lLfFdDnuU]+)$")


class NameContext(Protocol):
    """What a file says of names."""

    table: Table
    imports: Mapping[str, str]
    names: frozenset[str]


class NameReader:
    """Visits one unit and counts the names it uses; what else a construct says is told by its role."""

    def __init__(self, module: NameContext) -> None:
        self.facts = Facts()
        self._module, self._table = module, module.table
        self._scopes: list[TreeScope] = []
        self._answers: set[int] = set()  # calls whose result is what the function answers
        self._told = 0

    def function(self, node: Shape) -> None:
        inside = [child for head in heads(node) for child in head.children]
        parameters = [child for child in inside if child.field in ("parameters", "parameter", "receiver")]
        taken = frozenset(name for each in parameters for name in parameter_names(each, self._table))
        self._scopes.append(TreeScope(frozenset()))
        for each in parameters:
            self._below(each)  # defaults and types are evaluated outside
        self._scopes.pop()
        self._scopes.append(TreeScope(taken, frozenset(bound(node, self._table, deep=True))))
        for child in node.children:
            if child not in parameters and child.field != "name" and self._table.roles.get(child.kind) != "storage":
                self.visit(child)
        self._scopes.pop()

    def visit(self, node: Shape) -> None:
        kind, table = node.kind, self._table
        if kind in table.kinds("skip") or (node.field == "key" and kind in table.kinds("keys")):
            return
        if kind.startswith("return"):
            self._returned(node)
        if kind in _TABLES:
            self._listed(node)
        role = table.roles.get(kind)
        if role in _MARKS:
            self.facts.add(FactKind.mark, _MARKS[role], node.line)
            self._below(node)
        elif role is not None:
            getattr(self, f"_{role}")(node)
        elif kind in table.kinds("functions"):
            self._nested(node)
        else:
            self._blocks(node)
            self._below(node)

    def _returned(self, node: Shape) -> None:
        """What is answered as it stands is told to somebody; its text is no value that goes on."""
        if not self._refuses(node):
            self.facts.add(FactKind.size, Size.returned, node.line)
        for child in node.children:
            self._answers.update(map(id, (child, *(child.children if child.kind.endswith("_list") else ()))))

    def _listed(self, node: Shape) -> None:
        """Several literals side by side are a table of answers, however small each of them is."""
        parts = [part for each in node.children for part in (each, *each.children)]
        parts += [part for each in parts if each.kind == "literal_element" for part in each.children]
        literal = [part.source or part.text for part in parts if self._table.roles.get(part.kind) == "literal"]
        if len(set(literal)) > 1:
            self.facts.add(FactKind.value, f"[{', '.join(literal)}]", node.line)

    def _below(self, node: Shape) -> None:
        """All that is used; a name that is bound here is not."""
        fields = self._table.binders.get(node.kind)
        for child in node.children:
            if fields is not None and (not fields or child.field in fields):
                self._defaults(child)
            else:
                self.visit(child)

    def _defaults(self, pattern: Shape) -> None:
        """Of what binds names, only what is evaluated: defaults, types, and literals to compare with."""
        key = pattern.part("key") if pattern.kind == "pair_pattern" else None
        if key is not None or pattern.kind == "shorthand_property_identifier_pattern":
            self.facts.add(FactKind.attribute, (key or pattern).text, pattern.line)
        if pattern.kind in self._table.kinds("bindable"):
            return
        if self._table.roles.get(pattern.kind) in ("literal", "unary"):
            self._compared_with(pattern, equal=True)
            self.visit(pattern)
            return
        if pattern.kind in self._table.kinds("patterns"):
            for child in pattern.children:
                named = pattern.part("name") is not None or pattern.part("declarator") is not None
                used = child.field in _EVALUATED or (child.field == "value" and named)
                (self.visit if used else self._defaults)(child)
            return
        for child in pattern.children:
            self._defaults(child)

    def _compared_with(self, node: Shape, *, equal: bool) -> None:
        """A special case is made of comparisons with literals, known ones or not; one with a usual one is none."""
        if not (self._is_number(node) or node.kind in _COMPARABLE):
            return
        text = NUMBER_SUFFIX.sub("", node.text) if self._is_number(node) else f"'{node.text}'"
        weight = int(not self._table.is_trivial(text)) + int(equal and not self._table.is_empty(text))
        for _ in range(weight):
            self.facts.add(FactKind.size, Size.equality, node.line)

    def _nested(self, node: Shape) -> None:
        if not self._scopes:
            return  # a unit of its own
        if node.kind in self._table.kinds("named_functions"):
            self.facts.add(FactKind.mark, Construct.nested_function, node.line)
        name = name_node(node).text
        if (
            node.kind in self._table.kinds("hook_kinds")
            or self._table.hooks(name)
            or any(child.kind in ("get", "set") for child in node.children)
        ):
            self.facts.add(FactKind.mark, Construct.hook, node.line)
        self.function(node)

    def _blocks(self, node: Shape) -> None:
        if node.kind not in self._table.kinds("blocks"):
            return
        statements = [child for child in node.children if child.kind not in ("{", "}")]
        for place, child in enumerate(statements):
            self.facts.add(FactKind.line, self._shape(child), child.line)
            if place and treesitter.bare(statements[place - 1]).kind in self._table.kinds("ends"):
                self.facts.add(FactKind.mark, Construct.unreachable, child.line)

    def _shape(self, statement: Shape) -> str:
        """A statement without what stands in its blocks, and whatever its locals are called."""
        words = (
            part.kind if part.text in self._locals() else f"{part.kind}:{part.text}"
            for part in statement.walk_outside(self._table.kinds("blocks"))
        )
        return " ".join(words)

    def _locals(self) -> frozenset[str]:
        return self._scopes[-1].parameters | self._scopes[-1].names if self._scopes else frozenset()

    # Names

    def _root(self, name: str) -> tuple[FactKind | None, str]:
        if any(name in scope.parameters for scope in self._scopes):
            return None, name
        if "\\" in name:
            return FactKind.name, f"?{name}"  # an escape inside a name hides what it is
        name = self._table.spelled(name)
        target = self._module.imports.get(name)
        if target is not None or self._table.is_power_by_itself(name):
            return FactKind.name, target or name
        if any(name in scope.names for scope in self._scopes) or name.startswith(self._table.local):
            return None, name
        if name in self._module.names:
            return FactKind.own, name
        return FactKind.name, name if name in self._table.built_in_roots else f"{self._table.unknown}{name}"

    def _name(self, node: Shape) -> None:
        if node.text in _ITSELF:
            return
        first, *rest = node.text.split(".") if "." in node.text else (node.text,)
        kind, value = self._root(first)
        if kind is not None:
            self.facts.add(kind, ".".join((value, *rest)), node.line)

    def _chain(self, node: Shape) -> tuple[Shape | None, list[str]]:
        """`a.b["c"].d` -> a and b, c, d. None for the root where it is a bare call of a method."""
        parts: list[str] = []
        current: Shape | None = node
        while current is not None and current.kind in self._table.members:
            holder, part, _ = self._table.members[current.kind]
            last = _part(current, part)
            parts[:0] = self._words(last) if last is not None else [""]
            current = _part(current, holder)
        if current is not None and current.kind in self._table.kinds("names") and "." in current.text:
            first, *rest = current.text.split(".")
            return Shape(current.kind, first, (), current.line), [*rest, *parts]
        return current, parts

    def _words(self, part: Shape) -> list[str]:
        """`b::c<T>` of `a::b::c<T>`: what it is applied to is no part of its name."""
        if part.kind in self._table.members:
            root, parts = self._chain(part)
            return [*(self._words(root) if root is not None else ()), *parts]
        if part.kind in self._table.kinds("generics"):
            return self._words(part.part("name") or part.children[0])
        if part.kind in self._table.kinds("looked_into"):
            return []
        return [self._table.spelled(part.text or words_of(part))]

    def _member(self, node: Shape) -> None:
        root, parts = self._chain(node)
        self._used(root, parts, node.line)
        current: Shape | None = node
        while current is not None and current.kind in self._table.members:
            holder, part, must = self._table.members[current.kind]
            last = _part(current, part)
            if last is not None:
                self._link(last, must)
            if current is not node:
                self._passed(current)
            current = _part(current, holder)

    def _link(self, last: Shape, must: str) -> None:
        if must and last.kind != must:
            self.facts.add(FactKind.mark, Construct.dynamic, last.line)
            self.visit(last)
        elif last.kind in self._table.kinds("looked_into"):
            self._below(last)
        for each in last.walk() if last.children else ():
            if each.kind in self._table.kinds("type_arguments"):
                self._below(each)

    def _used(self, root: Shape | None, parts: list[str], line: int) -> None:
        if root is None:
            kind, value = self._root(parts[0])
            self.facts.add(kind or FactKind.own, ".".join((value, *parts[1:])), line)
            return
        kind, value = self._origin(root)
        if kind is FactKind.name:
            self.facts.add(FactKind.name, ".".join((value, *parts)), line)
            return
        self.visit(root)
        for part in parts:
            self.facts.add(FactKind.attribute, part, line)

    def _origin(self, root: Shape) -> tuple[FactKind | None, str]:
        if root.kind in self._table.kinds("names") and root.text not in _ITSELF:
            return self._root(root.text)
        required = self._required(root)
        if required is not None:
            self.facts.add(FactKind.imports, required, root.line)
            return FactKind.name, required
        return None, ""

    def _index(self, node: Shape) -> None:
        holder, index = _sides(node, ("object", "operand", "array", "value"), ("index",))
        if index is not None and index.kind == "string" and holder is not None and "\\" not in index.text:
            root, parts = self._chain(holder)
            self._used(root, [*parts, index.text], node.line)
            self._value_of(index)
            return
        if index is not None and holder is not None and self._is_number(index) and len(index.text) == 1:
            self.visit(holder)  # which item is meant is no answer
            return
        if index is not None and holder is not None and self._is_foreign(holder):
            self.facts.add(FactKind.mark, Construct.dynamic, node.line)
        if index is not None and any(part.kind in ("string", "string_fragment") for part in index.walk()):
            self.facts.add(FactKind.mark, Construct.dynamic, node.line)
        self._below(node)

    def _is_foreign(self, holder: Shape) -> bool:
        """Something from outside the project, of which anything could be taken."""
        root, parts = self._chain(holder)
        kind, value = self._origin(root) if root is not None else (None, "")
        return kind is FactKind.name and not parts and not value.startswith((".", "~", "?"))

    def _is_number(self, node: Shape) -> bool:
        return node.kind in self._table.kinds("numbers")

    def _refuses(self, block: Shape | None) -> bool:
        """`return`, `return null`, `return false`, `return ErrX`: the branch sends somebody away."""
        while block is not None and block.kind in self._table.kinds("blocks") | {"block", "expression_statement"}:
            block = block.children[-1] if block.children else None
        if block is None or not block.kind.startswith("return"):
            return False
        said = [part.text for part in block.walk() if part.text and part.text not in ("return", ";")]
        falsy = all(TRUTH.get(text) in ("None", "False") or text in ("0", "") for text in said)
        return falsy or any(text.lower().startswith("err") for text in said)

    def _call(self, node: Shape) -> None:
        function = node.part("function") or node.part("constructor") or node.part("type")
        inner = node if node.kind in self._table.members else function
        name = self._called_as(inner) if inner is not None else ""
        if function is not None and function.kind in self._table.kinds("indexes"):
            self.facts.add(FactKind.mark, Construct.computed_call, node.line)
        if required := self._required(node):
            self.facts.add(FactKind.imports, required, node.line)
            if words_of(function or node) in self._table.kinds("gives_module"):
                self.facts.add(FactKind.name, required, node.line)  # what is taken of it cannot be followed
            return
        self._special(node, name)
        self._looked_up(node, function, name)
        last = name.rpartition(".")[2]
        if self._table.validates(last):
            self.facts.add(FactKind.check, last, node.line)
        telling = name in self._table.kinds("tellers") or last in self._table.kinds("tellers")
        if telling:
            self.facts.add(FactKind.check, "raise", node.line)
        telling = telling and id(node) in self._answers
        if last in self._table.mutators and "." in name:
            kind, value = self._root(name.partition(".")[0])
            if kind is FactKind.own:
                self.facts.add(FactKind.store, f"={value}.{last}()", node.line)
        self._told += telling
        if inner is node:
            self._member(node)
            self._passed(node)
        else:
            self._below(node)
        self._told -= telling

    def _passed(self, node: Shape) -> None:
        """What a call gives: arguments, and in some languages a block."""
        for child in node.children:
            if child.field == "arguments":
                self._below(child)
            elif child.field == "block":
                self.visit(child)

    def _special(self, node: Shape, name: str) -> None:
        """What asks for the time where nothing is given, and what writes into its first argument."""
        arguments = node.part("arguments")
        given = arguments.children if arguments is not None else ()
        if name in self._table.kinds("clocks") and not given:
            self.facts.add(FactKind.name, f"{name}.now", node.line)
        if name in self._table.kinds("writes_into") and given:
            self._stored(given[0])

    def _declare(self, node: Shape) -> None:
        """`const { a: b } = x` takes members of x; `const m = require("m")` outside functions is an import."""
        target, value = node.part("name"), node.part("value")
        if not self._scopes and value is not None and self._is_import(value):
            return
        root, parts = self._chain(value) if value is not None else (None, [])
        kind, name = self._origin(root) if root is not None else (None, "")
        if kind is FactKind.name and target is not None and target.kind.endswith("_pattern"):
            for key in self._taken(target):
                self.facts.add(FactKind.name, ".".join((name, *parts, *key)), node.line)
            self._defaults(target)
            return
        self._below(node)

    def _is_import(self, value: Shape) -> bool:
        root, _ = self._chain(value)
        return root is not None and self._required(root) is not None

    def _taken(self, pattern: Shape) -> Iterator[tuple[str, ...]]:
        """The members that a pattern takes; nothing for all of them."""
        for part in pattern.children:
            key = part.part("key") or part.part("left") or part
            simple = key.kind in ("property_identifier", "shorthand_property_identifier_pattern", "string")
            yield (key.text,) if simple else ()

    def _looked_up(self, node: Shape, function: Shape | None, name: str) -> None:
        """Where a text can stand for a function, what is called must be named."""
        named = self._table.kinds("called")
        if not named:
            return
        callee = function or next((each for each in node.children if each.kind not in ("new", "arguments")), None)
        if node.kind not in self._table.members and callee is not None and callee.kind not in named:
            self.facts.add(FactKind.mark, Construct.dynamic, node.line)
        if callee is not None and callee.kind in self._table.kinds("global_functions") and "." not in callee.text:
            kind, value = self._root(callee.text)
            if kind is FactKind.name and value == f"~{callee.text}" and node.part("function") is not None:
                self.facts.add(FactKind.name, f"?{callee.text}", node.line)  # of the language, and the table has it not
        inside = node.part("arguments")
        texts = inside.walk_outside(self._table.kinds("functions")) if inside is not None else ()
        if self._table.spelled(name) in self._table.kinds("callbacks") and any(each.kind in TEXTS for each in texts):
            self.facts.add(FactKind.mark, Construct.dynamic, node.line)

    def _required(self, node: Shape) -> str | None:
        """`require("x")` with nothing but its name."""
        function, arguments = node.part("function") or node.part("method"), node.part("arguments")
        if function is None or arguments is None or words_of(function) not in self._table.kinds("requires"):
            return None
        only = arguments.children[0] if len(arguments.children) == 1 else None
        if only is None or only.kind != "string":
            return None
        return f"./{only.text}" if function.text.endswith("_relative") else only.text.removeprefix("node:")

    def _called_as(self, node: Shape) -> str:
        root, parts = self._chain(node)
        return ".".join((words_of(root), *parts)) if root is not None else ".".join(parts)

    def _macro(self, node: Shape) -> None:
        name = f"{words_of(node.part('macro') or node)}!"
        known = name in self._table.built_in or self._table.is_power(name)
        self.facts.add(FactKind.name, name if known else f"~{name}", node.line)
        telling = name in self._table.kinds("tellers")
        if telling or self._table.validates(name):
            self.facts.add(FactKind.check, "raise" if telling else name, node.line)
        self._told += telling
        for child in node.children:
            if child.kind == "token_tree":
                self._tokens(child)
        self._told -= telling

    def _tokens(self, node: Shape) -> None:
        """What a macro is given is not parsed: names are put together again from their pieces."""
        pieces: list[str] = []
        after = ""
        for child in (*node.children, Shape("end", "", (), node.line)):
            if child.kind in ("identifier", "type_identifier", "crate", "self") and after in ("::", "."):
                if pieces:
                    pieces.append(child.text)
                else:
                    self.facts.add(FactKind.attribute, child.text, child.line)
            elif child.kind not in ("::", "."):
                self._pieced(pieces, child.line)
                pieces = [child.text] if child.kind in ("identifier", "type_identifier", "crate") else []
                if child.kind == "token_tree":
                    self._tokens(child)
                elif not pieces:
                    self.visit(child)
            after = child.kind
        self._pieced(pieces, node.line)

    def _pieced(self, pieces: list[str], line: int) -> None:
        if pieces:
            self._used(Shape("identifier", pieces[0], (), line), pieces[1:], line)

    # Writing

    def _assign(self, node: Shape) -> None:
        left, _ = _sides(node, ("left", "argument", "name"), ("right", "value"))
        for target in self._targets(left) if left is not None else ():
            self._stored(target)
        for child in node.children:
            if child is not left:
                self.visit(child)

    def _targets(self, left: Shape) -> tuple[Shape, ...]:
        return left.children if left.kind.endswith(("_list", "_pattern")) else (left,)

    def _stored(self, target: Shape) -> None:
        if target.kind in self._table.kinds("indexes"):
            holder, _ = _sides(target, ("object", "operand", "array", "value"), ("index",))
            root, parts = self._chain(holder) if holder is not None else (None, [])
            kind, value = self._origin(root) if root is not None else (None, "")
            if kind is not None:
                start = "@" if kind is FactKind.name else "="
                self.facts.add(FactKind.store, f"{start}{'.'.join((value, *parts))}[]", target.line)
            self.visit(target)
        elif target.kind in self._table.kinds("fields"):
            self.facts.add(FactKind.store, f".{target.text}", target.line)
        elif target.kind in self._table.members:
            self._stored_member(target)
        elif target.kind not in self._table.kinds("names"):
            self.visit(target)
        elif self._scopes:
            kind, value = self._root(target.text)
            if kind is not None:
                self.facts.add(FactKind.store, f"{'@' if self._table.is_power(value) else '='}{value}", target.line)

    def _stored_member(self, target: Shape) -> None:
        root, parts = self._chain(target)
        kind, value = self._origin(root) if root is not None else (FactKind.own, "")
        if kind is None and root is not None:
            self.visit(root)
            for part in parts[:-1]:
                self.facts.add(FactKind.attribute, part, target.line)
        start = {FactKind.name: f"@{value}", FactKind.own: f"={value}"}.get(kind, "") if kind else ""
        if value.split(".")[0] in self._table.kinds("exports"):
            start = f"={value}"
        self.facts.add(FactKind.store, ".".join((start, *(parts if start else parts[-1:]))), target.line)

    # Values

    def _literal(self, node: Shape) -> None:
        if node.kind not in TEXTS or not node.children:
            self._value_of(node)
        self._below(node)  # a text may hold code

    def _value_of(self, node: Shape) -> None:
        if node.kind in TEXTS:
            if not self._told:
                self._add_value(f"'{node.text}'", node.line)
            return
        text = node.text or "".join(part.text for part in node.walk())
        self._add_value(TRUTH.get(text, NUMBER_SUFFIX.sub("", text)), node.line)

    def _add_value(self, text: str, line: int) -> None:
        self.facts.add(FactKind.value, text, line)
        if text not in ("None", "True", "False"):
            self.facts.add(FactKind.size, Size.literal, line)


def _sides(node: Shape, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[Shape | None, Shape | None]:
    left = next((part for name in first if (part := node.part(name)) is not None), None)
    right = next((part for name in second if (part := node.part(name)) is not None), None)
    if left is None and len(node.children) >= 2:
        left, right = node.children[0], node.children[-1]
    return left, right


def _part(node: Shape, key: str) -> Shape | None:
    """By its field, or by its place where the grammar names none."""
    if not key.lstrip("-").isdigit():
        return node.part(key)
    return node.children[int(key)] if node.children else None
