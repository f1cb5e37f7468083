"""Scripts as YAML, for the server as a program. Every mistake is told with its line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from becket.testing.model.steps import (
    Call,
    Cut,
    Delay,
    Edit,
    Hang,
    Loop,
    Refuse,
    Say,
    Shell,
    Status,
    Step,
    Think,
    Together,
    Tokens,
    Truncate,
    Write,
)

_KINDS: Mapping[str, type] = {
    "say": Say,
    "shell": Shell,
    "write": Write,
    "edit": Edit,
    "call": Call,
    "truncate": Truncate,
    "refuse": Refuse,
    "cut": Cut,
    "status": Status,
    "hang": Hang,
    "think": Think,
    "delay": Delay,
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str | None": str,
    "int | None": int,
    "float | None": (int, float),
}


class BadScript(Exception):
    """The message begins with file and line."""


@dataclass(frozen=True, slots=True)
class ScriptPart:
    """One script of a file: for all requests, or for those with this key or this text in a prompt."""

    steps: tuple[Step, ...]
    key: str | None = None
    prompt: str | None = None


def load(path: Path) -> tuple[ScriptPart, ...]:
    """A list of steps, or `scripts:` with a list of `{key, prompt, steps}`. Raises BadScript."""
    reader = _Reader(path.name)
    try:
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise BadScript(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise BadScript(f"{path.name}:{line}: not YAML: {getattr(error, 'problem', error)}") from None
    if root is None:
        raise BadScript(f"{path.name}:1: it is empty; write a list of steps")
    return reader.parts(root)


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name

    def parts(self, root: yaml.Node) -> tuple[ScriptPart, ...]:
        if isinstance(root, yaml.SequenceNode):
            return (ScriptPart(self.steps(root)),)
        fields = self._fields(root, {"scripts"})
        scripts = fields.get("scripts")
        if not isinstance(scripts, yaml.SequenceNode):
            raise self.wrong(root, "write a list of steps, or `scripts:` with a list")
        return tuple(self._part(one) for one in scripts.value)

    def _part(self, node: yaml.Node) -> ScriptPart:
        fields = self._fields(node, {"key", "prompt", "steps"})
        if "steps" not in fields:
            raise self.wrong(node, "a script needs `steps`")
        named = {name: self._value(fields[name], "str") for name in ("key", "prompt") if name in fields}
        return ScriptPart(self.steps(fields["steps"]), **named)

    def steps(self, node: yaml.Node) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, "steps are a list")
        return tuple(self._step(one) for one in node.value)

    def _step(self, node: yaml.Node) -> Step:
        if isinstance(node, yaml.ScalarNode) and node.value in {"hang", "cut", "refuse", "truncate"}:
            made: Step = _KINDS[node.value]()
            return made
        fields = self._fields(node, {*_KINDS, "loop", "together", "usage"})
        kinds = [name for name in fields if name != "usage"]
        if len(kinds) != 1:
            raise self.wrong(node, f"a step has one kind, not {len(kinds)}: {', '.join(kinds) or 'none'}")
        kind, inner = kinds[0], fields[kinds[0]]
        usage = {"usage": self._record(fields["usage"], Tokens)} if "usage" in fields else {}
        if kind == "loop":
            return self._made(inner, lambda: Loop(*self.steps(inner)), usage)
        if kind == "together":
            return self._made(inner, lambda: Together(self._together(inner), **usage), {})
        return self._made(inner, lambda: self._record(inner, _KINDS[kind], usage), {})

    def _together(self, node: yaml.Node) -> tuple[Any, ...]:
        steps = self.steps(node)
        if not all(isinstance(step, Say | Shell | Write | Edit | Call) for step in steps):
            raise self.wrong(node, "together takes only say, shell, write, edit and call")
        return steps

    def _made(self, node: yaml.Node, make: Callable[[], Step], unwanted: Mapping[str, object]) -> Step:
        if unwanted:
            raise self.wrong(node, "usage belongs to the steps inside")
        try:
            return make()
        except (TypeError, ValueError) as error:
            raise self.wrong(node, str(error)) from None

    def _record(self, node: yaml.Node, kind: type, more: Mapping[str, object] | None = None) -> Any:
        """A scalar is the first field; a mapping names the fields."""
        types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
        if not isinstance(node, yaml.MappingNode):
            first = next(iter(types))
            return kind(**{first: self._value(node, types[first])}, **(more or {}))
        fields = self._fields(node, types.keys() - {"usage"})
        given = {name: self._value(value, types[name]) for name, value in fields.items()}
        missing = [
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            and field.name not in given
        ]
        if missing:
            raise self.wrong(node, f"{kind.__name__.lower()} needs {', '.join(missing)}")
        if more and "usage" not in types:
            raise self.wrong(node, f"{kind.__name__.lower()} has no usage")
        return kind(**given, **(more or {}))

    def _value(self, node: yaml.Node, kind: str) -> Any:
        value = _plain(node)
        wanted = _TYPES.get(kind, dict)
        if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
            words = {"int": "a number", "float": "a number", "bool": "true or false", "str": "text"}
            raise self.wrong(node, f"expected {words.get(kind.partition(' ')[0], 'a mapping')}")
        return value

    def _fields(self, node: yaml.Node, known: set[str]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, f"expected one of {', '.join(sorted(known))}")
        for name, _ in node.value:
            if name.value not in known:
                raise self.wrong(name, f"{name.value!r} is not known here; known: {', '.join(sorted(known))}")
        return {name.value: value for name, value in node.value}

    def wrong(self, node: yaml.Node, text: str) -> BadScript:
        return BadScript(f"{self._name}:{node.start_mark.line + 1}: {text}")


def _plain(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()
