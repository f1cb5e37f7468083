"""The facts of a piece of source of any language that has a grammar, driven by the language's table."""

from __future__ import annotations

from collections.abc import Iterator

from becket.parts.guard.reading.classes.facts import EARLY_RETURN, Construct, FactKind, Size
from becket.parts.guard.reading.classes.imports import imports_of
from becket.parts.guard.reading.classes.treenames import NUMBER_SUFFIX, TRUTH, NameReader
from becket.parts.guard.reading.languages.shape import Shape

_SCALING = frozenset("*/%") | {"**", "<<", ">>"}
_EQUAL = frozenset({"==", "===", "!=", "!=="})
_COMPARE = _EQUAL | {"<", "<=", ">", ">="}
_LOGIC = frozenset({"&&", "||", "and", "or", "??"})
_BROAD = frozenset({"Exception", "Throwable", "RuntimeException", "Error"})


class TreeReader(NameReader):
    """Counts the facts of one unit."""

    # Values

    def _unary(self, node: Shape) -> None:
        parts = [child for child in node.children if child.text != "-"]
        if len(parts) == 1 and len(node.children) == 2 and parts[0].kind in self._table.kinds("numbers"):
            self._add_value(f"-{NUMBER_SUFFIX.sub('', parts[0].text)}", node.line)
        else:
            self._below(node)

    def _binary(self, node: Shape) -> None:
        operator = (node.part("operator") or Shape("", "", (), 0)).text
        sides = [child for child in node.children if child.field in ("left", "right")]
        if operator in _LOGIC:
            self.facts.add(FactKind.size, Size.branch, node.line)
            if any(TRUTH.get(side.text) in ("True", "False") for side in sides) or self._is_number(sides[0]):
                self.facts.add(FactKind.mark, Construct.unreachable, node.line)
        elif operator in _COMPARE:
            for side in sides:
                self._compared_with(side, equal=operator in _EQUAL)
            if len(sides) == 2 and sides[0] == sides[1]:
                self.facts.add(FactKind.mark, Construct.arithmetic, node.line)
        elif self._computes(node, operator) or self._is_idle(sides, operator):
            self.facts.add(FactKind.mark, Construct.arithmetic, node.line)
        for side in sides:
            if operator in _SCALING and side.text in ("2", "2.0", "0.5"):
                self.facts.add(FactKind.size, Size.literal, side.line)
            else:
                self.visit(side)

    def _is_idle(self, sides: list[Shape], operator: str) -> bool:
        """`0 * x`, `x - x`: the result does not depend on what is computed."""
        zero = operator == "*" and any(NUMBER_SUFFIX.sub("", side.text) in ("0", "0.0") for side in sides)
        return zero or (operator in ("-", "/", "%", "^") and len(sides) == 2 and sides[0] == sides[1])

    def _computes(self, node: Shape, operator: str) -> bool:
        leaves, summed = list(self._leaves(node)), list(self._leaves(node, frozenset("+-")))
        literal = [leaf for leaf in leaves if self._is_literal(leaf)]
        return len(leaves) == len(literal) > 1 or (operator in ("+", "-") and sum(map(self._is_literal, summed)) > 1)

    def _is_literal(self, node: Shape) -> bool:
        return self._is_number(node) or node.kind == "string"

    def _leaves(self, node: Shape, operators: frozenset[str] = frozenset()) -> Iterator[Shape]:
        """What is computed with; of sums only, the summands."""
        operator = node.part("operator") if self._table.roles.get(node.kind) == "binary" else None
        if operator is not None and (not operators or operator.text in operators):
            for child in node.children:
                if child.field in ("left", "right"):
                    yield from self._leaves(child, operators)
        else:
            yield node

    # Constructs

    def _branch(self, node: Shape) -> None:
        self.facts.add(FactKind.size, Size.branch, node.line)
        condition = node.part("condition")
        fixed = condition is not None and (TRUTH.get(condition.text) in ("True", "False") or self._is_number(condition))
        if fixed and "while" not in node.kind:
            self.facts.add(FactKind.mark, Construct.unreachable, node.line)
        if self._refuses(node.part("consequence")):
            self.facts.add(FactKind.check, EARLY_RETURN, node.line)
        if condition is not None and self._sends_away(node.part("consequence")):
            for part in condition.walk():
                if part.text in ("&&", "and"):
                    self.facts.add(FactKind.mark, Construct.narrower, node.line)
        self._blocks(node)
        self._below(node)

    def _sends_away(self, block: Shape | None) -> bool:
        raisers = self._table.kinds("raises")
        raised = block is not None and any(part.kind in raisers for part in block.walk())
        return raised or self._refuses(block)

    def _case(self, node: Shape) -> None:
        self.facts.add(FactKind.size, Size.branch, node.line)
        for child in node.children:
            label = child.field in ("value", "pattern") or child.kind in ("switch_label", *self._table.kinds("labels"))
            inside = child.children if label else ()
            for part in (child, *inside):
                if child.field != "body":
                    self._compared_with(part, equal=True)
        self._below(node)

    def _raise(self, node: Shape) -> None:
        self.facts.add(FactKind.check, "raise", node.line)
        self._told += 1
        self._below(node)
        self._told -= 1

    def _assert(self, node: Shape) -> None:
        self.facts.add(FactKind.check, "assert", node.line)
        self._below(node)

    def _catch(self, node: Shape) -> None:
        body = node.part("body")
        raisers = self._table.kinds("raises")
        raises = any(part.kind in raisers or part.text in raisers for part in node.walk())
        named = self._table.kinds("caught") or frozenset({"type_identifier"})
        heads = (part for child in node.children if child is not body for part in child.walk())
        types = {part.text for part in heads if part.kind in named} or {"(any)"}
        broad = not raises and bool(types & (self._table.kinds("broad") or _BROAD))
        empty = body is None or not body.children
        self.facts.add(FactKind.mark, Construct.catch_all if broad or empty else Construct.catch, node.line)
        self._below(node)

    def _finally(self, node: Shape) -> None:
        for part in node.walk_outside(self._table.kinds("functions")):
            if part.kind in self._table.kinds("ends") and part.kind not in self._table.kinds("raises"):
                self.facts.add(FactKind.mark, Construct.leaves_finally, part.line)
        self._below(node)

    def _class(self, node: Shape) -> None:
        name = node.part("name") or node.part("value")
        if name is not None and name.text in self._table.kinds("sealed"):
            self.facts.add(FactKind.store, f"@{name.text}", node.line)
        if self._scopes:
            self.facts.add(FactKind.mark, Construct.new_class, node.line)
        for child in node.children:
            if child.field != "name":
                self.visit(child)

    def _pair(self, node: Shape) -> None:
        key = node.part("key")
        if key is not None and self._table.hooks(key.text):
            self.facts.add(FactKind.mark, Construct.hook, node.line)
        if key is not None and key.kind in self._table.kinds("keys"):
            self._add_value(f"'{key.text}'", node.line)
        for child in node.children:
            if child is not key or child.kind not in self._table.kinds("keys"):
                self.visit(child)

    def _key(self, node: Shape) -> None:
        """`T{Name: x}`: the key is a field, unless it is more than a name."""
        key = node.part("key")
        bare = key is not None and len(key.children) == 1 and key.children[0].kind == "identifier"
        for child in node.children:
            if child is not key or not bare:
                self.visit(child)

    def _reference(self, node: Shape) -> None:
        """`Integer::sum`."""
        names = [part for part in node.children if part.kind in self._table.kinds("names")]
        if names:
            self._used(names[0], [part.text for part in names[1:]], node.line)

    def _meta(self, node: Shape) -> None:
        self.facts.add(FactKind.name, "import.meta", node.line)

    def _modifiers(self, node: Shape) -> None:
        """`private`, `synchronized`, `final`: to take one away lets somebody in."""
        for child in node.children:
            if child.text in ("private", "protected", "synchronized", "final"):
                self.facts.add(FactKind.check, child.text, child.line)
        self._below(node)

    def _decorator(self, node: Shape) -> None:
        self.facts.add(FactKind.mark, Construct.decorator, node.line)
        self.facts.add(FactKind.check, " ".join((node.source or node.text).split()), node.line)
        self._below(node)

    def _power(self, node: Shape) -> None:
        """A construct that is a power by itself; the table says which."""
        self.facts.add(FactKind.name, f"({node.kind})", node.line)
        self._below(node)

    def _storage(self, node: Shape) -> None:
        if self._scopes and node.text in self._table.kinds("lasting"):
            self.facts.add(FactKind.mark, Construct.state, node.line)

    def _preprocessed(self, node: Shape) -> None:
        """Text that a compiler puts elsewhere: nobody can tell what it will be there."""
        self.facts.add(FactKind.name, f"?{' '.join((node.source or node.text).split())}", node.line)

    def _region(self, node: Shape) -> None:
        """Source that is compiled or not: inside a function, its bounds may not be moved unseen."""
        if self._scopes:
            first = (node.source or node.text).partition("\n")[0]
            self.facts.add(FactKind.name, f"?{' '.join(first.split())} over {len(node.children)} parts", node.line)
        self._below(node)

    def _sends(self, node: Shape) -> None:
        """`&:name`: a method that is called later."""
        for part in node.walk():
            if part.kind in self._table.kinds("symbols"):
                self.facts.add(FactKind.attribute, part.text.lstrip(":"), part.line)
            elif part.kind in self._table.kinds("names"):
                self.visit(part)

    def _attribute(self, node: Shape) -> None:
        """A line that the compiler obeys: `#[cfg(test)]`."""
        words = [part.text for part in node.walk() if part.kind in self._table.kinds("names")]
        if not words or words[0] not in self._table.kinds("innocent_attributes"):
            self.facts.add(FactKind.mark, Construct.directive, node.line)

    def _macro_rules(self, node: Shape) -> None:
        self.facts.add(FactKind.mark, Construct.unreadable_macro, node.line)

    def _import(self, node: Shape) -> None:
        if self._scopes:
            for each in imports_of(Shape("", "", (node,), node.line), self._table.name):
                self.facts.add(FactKind.imports, each.told, each.line)
