"""Source that changes test tools from within, or ends the process so that it looks like success."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from becket.verifiers.guard.languages.shape import Shape, Tongue, says_success

_TOOL = re.compile(
    r"^(?:pytest|_pytest|unittest|builtins|__builtins__|numpy\.testing)(?:\.|$)"
    r"|^(?:globalThis|global|window)\.(?:expect|it|test|describe|assert)$|^(?:assert|expect)\.\w+$|^Object\.is$"
    r"|^(?:Number|String|Array|Object|Boolean)\.prototype\.(?:toString|valueOf|equals|toJSON)$"
)
_TRANSLATION = frozenset({"builtins._", "__builtins__._"})  # what gettext has put there for ages
_TOOL_MODULE = re.compile(r"^str '(?:_?pytest|unittest|doctest)(?:\.[\w.]+)?'$")
_SETS = re.compile(r"^(?:setattr|delattr|Object\.defineProperty)$")
_EXIT = re.compile(r"^(?:sys\.exit|os\._exit|exit|quit|SystemExit|process\.exit|os\.Exit|System\.exit)$")
_LATER = re.compile(r"^(?:atexit\.register|(?:threading\.)?Timer)$")
_HOOKS = frozenset({"sys.excepthook", "sys.unraisablehook", "threading.excepthook", "sys.exit"})
_LAST_WORD = re.compile(r"^(?:process\.(?:on|once|addListener|prependListener))$")

HINTS = (
    r"sys\.exit|os\._exit|SystemExit|\bexit\(|\bquit\(|process\.exit|os\.Exit|System\.exit|atexit|exitCode"
    r"|\bunittest\b|\bpytest\b|_pytest|builtins|\bexpect\b|\bassert\.\w+\s*=|\.prototype|Object\.is|describe|\.testing\b"
)


def tools_patched(root: Shape, tongue: Tongue) -> Iterator[Shape]:
    names = _origins(root) if tongue.name == "Python" else {}
    for shape in root.walk():
        if shape.kind in {"Assign", "AugAssign", "Delete", "assignment_expression"}:
            target = shape.part("left") or shape.children[0]
            if _is_tool(target, tongue, names):
                yield shape
        elif _SETS.match(tongue.name_of_call(shape)):
            arguments = _arguments(shape)
            if arguments and _TOOL.search(_full_name(arguments[0], tongue, names)):
                yield shape


def _is_tool(target: Shape, tongue: Tongue, names: Mapping[str, str]) -> bool:
    if target.kind == "Subscript":
        return _dotted(target, tongue) == "sys.modules" and bool(_TOOL_MODULE.match(target.children[-1].text))
    name = _full_name(target, tongue, names) if target.kind in {"Attribute", "member_expression"} else ""
    return bool(_TOOL.search(name)) and name not in _TRANSLATION


def _origins(root: Shape) -> dict[str, str]:
    """Where imported names come from."""
    found: dict[str, str] = {}
    for shape in root.walk():
        if shape.kind not in {"Import", "ImportFrom"}:
            continue
        module = shape.text.split(" ")[0]
        for child in shape.children:
            name, _, alias = child.text.partition(" ")
            known_as = alias if not alias.startswith("-") else name
            if shape.kind == "ImportFrom":
                found[known_as] = f"{module}.{name}"
            elif not alias.startswith("-"):
                found[known_as] = name
    return found


def _full_name(shape: Shape, tongue: Tongue, names: Mapping[str, str]) -> str:
    first, dot, rest = _dotted(shape, tongue).partition(".")
    return names.get(first, first) + dot + rest


def _dotted(shape: Shape, tongue: Tongue) -> str:
    from becket.verifiers.guard.languages import pyshape, treesitter

    return pyshape.dotted(shape) if tongue.name == "Python" else treesitter.dotted(shape)


def _arguments(call: Shape) -> tuple[Shape, ...]:
    arguments = call.part("arguments")
    return arguments.children if arguments is not None else call.children[1:]


def exits_at_load(root: Shape, tongue: Tongue) -> Iterator[Shape]:
    """Calls that end the process while the file is being loaded, with success as the answer."""
    for shape in _at_load(root, tongue):
        if _EXIT.match(tongue.name_of_call(shape)) and says_success(shape):
            yield shape


def exits_when_done(root: Shape, tongue: Tongue) -> Iterator[Shape]:
    """What is called late, or when the process ends anyway, and turns its answer into success."""
    for shape in root.walk():
        if not _is_last_word(shape, tongue):
            continue
        if _hands_over_exit(shape, tongue) or any(_turns_to_success(part, tongue) for part in shape.walk()):
            yield shape


def _is_last_word(shape: Shape, tongue: Tongue) -> bool:
    if tongue.name == "Python":
        if shape.kind == "Assign":
            return _dotted(shape.children[0], tongue) in _HOOKS
        marks = [child for child in shape.children if child.kind == "decorator"] if shape.kind == "FunctionDef" else []
        names = [tongue.name_of_call(shape), *(_dotted(mark, tongue) for mark in marks)]
        return any(_LATER.match(name) for name in names)
    arguments = _arguments(shape) if _LAST_WORD.match(tongue.name_of_call(shape)) else ()
    return bool(arguments) and arguments[0].text in {"exit", "beforeExit"}


def _hands_over_exit(call: Shape, tongue: Tongue) -> bool:
    """`register(os._exit, 0)`: the exit and its answer as they are, to be called by another."""
    places = [place for place, child in enumerate(call.children) if place and _dotted(child, tongue) == "os._exit"]
    behind = call.children[places[0] + 1 :] if places else ()
    return any(part.text == "int 0" for child in behind for part in child.walk())


def _turns_to_success(shape: Shape, tongue: Tongue) -> bool:
    if shape.kind == "assignment_expression":
        left, right = shape.part("left"), shape.part("right")
        return (
            left is not None and _dotted(left, tongue) == "process.exitCode" and right is not None and right.text == "0"
        )
    return bool(_EXIT.match(tongue.name_of_call(shape))) and says_success(shape)


def _at_load(root: Shape, tongue: Tongue) -> Iterator[Shape]:
    """What runs at load: all but functions and `if __name__ == "__main__"`; in Go and Java only initialisers."""
    if tongue.name == "Rust":
        return
    if tongue.name in {"Go", "Java"}:
        for shape in root.walk():
            name = shape.part("name")
            is_init = shape.kind == "function_declaration" and name is not None and name.text == "init"
            if is_init or shape.kind == "static_initializer":
                yield from shape.walk()
        return
    stack = list(reversed(root.children))
    while stack:
        shape = stack.pop()
        yield shape
        guarded = (
            any(part.text in {"__name__", "require"} for part in shape.children[0].walk()) if shape.children else False
        )
        if shape.kind not in tongue.functions and not (shape.kind in {"If", "if_statement"} and guarded):
            stack.extend(reversed(shape.children))
