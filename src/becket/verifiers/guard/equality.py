"""Comparisons that come out the same whatever is compared, and values that equal everything."""

from __future__ import annotations

from collections.abc import Iterator

from becket.verifiers.guard.languages.shape import Shape, Tongue

_WANTED = {"__eq__": True, "__ne__": False, "equals": True, "eq": True, "Equal": True}
_FUNCTIONS = frozenset({"FunctionDef", "method_declaration", "function_item", "function_declaration"})
_RETURNS = frozenset({"Return", "return_statement", "return_expression"})
_SAME = frozenset({"Eq", "Is", "==", "==="})
_OR = frozenset({"Or", "||"})
_AND = frozenset({"And", "&&"})
_NOT = frozenset({"Not", "!"})
_TRUTHS = {"bool True": True, "true": True, "int 1": True, "bool False": False, "false": False, "int 0": False}
_MATCHER_KEYS = frozenset({"property_identifier", "string"})

HINTS = r"__eq__|__ne__|\bequals\b|fn eq\b|\bEqual\b|\bANY\b|asymmetricMatch"


def always_equal(root: Shape, tongue: Tongue) -> Iterator[Shape]:
    for shape in root.walk():
        if shape.kind in _FUNCTIONS:
            if _answers_the_same(shape, tongue):
                yield shape
        elif shape.kind == "Assign":
            if _is_constant_lambda(shape):
                yield shape
        elif _equals_everything(shape):
            yield shape


def _answers_the_same(function: Shape, tongue: Tongue) -> bool:
    name = function.part("name")
    wanted = _WANTED.get(name.text if name is not None else function.text.split(" ")[0])
    body = function.part("body") or next((child for child in function.children if child.kind == "block"), None)
    if wanted is None or body is None:
        return False
    answers = list(_answers(body, tongue))
    return bool(answers) and all(truth(answer) is wanted for answer in answers)


def _answers(body: Shape, tongue: Tongue) -> Iterator[Shape]:
    for shape in body.walk_outside(tongue.functions):
        if shape.kind in _RETURNS:
            inner = [child for child in shape.children if child.kind != "return"]
            yield inner[0] if len(inner) == 1 else shape
    if tongue.name == "Rust" and body.children and not body.children[-1].kind.endswith("_statement"):
        yield body.children[-1]


def _is_constant_lambda(assign: Shape) -> bool:
    wanted = _WANTED.get(assign.children[0].text)
    value = assign.children[-1]
    return wanted is not None and value.kind == "Lambda" and truth(value.children[-1]) is wanted


def truth(shape: Shape) -> bool | None:
    """What an expression of nothing but constants comes to; None if it depends on anything."""
    while len(shape.children) == 1 and shape.kind in {"expression_list", "expression_statement", "boolean_literal"}:
        shape = shape.children[0]
    if not shape.children:
        return _TRUTHS.get(shape.text)
    operator = {child.kind for child in shape.children} | {child.text for child in shape.children if child.text == "!"}
    values = [truth(child) for child in shape.children if child.kind not in _SAME | _OR | _AND | _NOT]
    if operator & _NOT and len(values) == 1:
        return None if values[0] is None else not values[0]
    if operator & _OR:
        return True if True in values else None
    if operator & _AND:
        return True if all(value is True for value in values) else None
    sides = [child for child in shape.children if child.kind not in _SAME]
    return True if operator & _SAME and len(sides) == 2 and sides[0] == sides[1] else None


def _equals_everything(shape: Shape) -> bool:
    """`unittest.mock.ANY`, and what jest takes for a matcher of its own."""
    if shape.kind == "ImportFrom":
        module = shape.text.split(" ")[0]
        return module in {"unittest.mock", "mock"} and any(
            child.text.split(" ")[0] == "ANY" for child in shape.children
        )
    if shape.kind == "Attribute" and shape.text == "ANY":
        holder = shape.children[0]
        return holder.text == "mock"
    return shape.kind in _MATCHER_KEYS and shape.text == "asymmetricMatch"
