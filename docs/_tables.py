"""Markdown tables, and a JSON Schema told as tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from becket.kernel.contract import naming, spec
from becket.kernel.contract.base import show_duration

Schema = Mapping[str, Any]

PATTERNS = {
    get_args(kind)[1].pattern: name
    for kind, name in (
        (spec.Name, "name"), (spec.LoopId, "name"), (spec.DottedName, "dotted name"),
        (spec.ConditionRef, "condition"), (naming.ReportFormat, "report format"),
    )
}  # fmt: skip


def cell(text: object) -> str:
    return " ".join(str(text).replace("|", "\\|").split())


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def codes(items: Iterable[object]) -> str:
    return ", ".join(code(item) for item in items)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell(item) for item in row)} |" for row in rows]
    return "\n".join(lines) + "\n\n"


def prose(text: str | None) -> str:
    """A docstring as paragraphs."""
    return inspect.cleandoc(text) + "\n\n" if text else ""


class Book:
    """One JSON Schema told as tables: every mapping has a section named after its place in the file."""

    def __init__(self, schema: Schema, root: str = "", enums: Iterable[str] = ()) -> None:
        self._schema, self._root = schema, root
        self._models: dict[str, str] = {}  # model -> its place in the file
        self._enums = frozenset(enums)
        self._walk(schema, "")

    def sections(self, level: str) -> Iterator[str]:
        yield self._section(f"{level} {self._root}", self._schema)
        for model, place in self._models.items():
            yield self._section(f"{level} `{place}`", self._model(model))

    def _model(self, name: str) -> Schema:
        found: Schema = self._schema["$defs"][name]
        return next((part for part in found.get("anyOf", ()) if "properties" in part), found)

    def _walk(self, model: Schema, place: str) -> None:
        """Depth first, so that the sections stand in the order of the file."""
        for key, value in model.get("properties", {}).items():
            for name, steps in self._refs(value, f"{place}.{key}" if place else key):
                if name not in self._models and "properties" in self._model(name):
                    self._models[name] = steps
                    self._walk(self._model(name), steps)

    def _refs(self, value: Schema, place: str) -> Iterator[tuple[str, str]]:
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2], place
        for part in (*value.get("anyOf", ()), *value.get("allOf", ())):
            yield from self._refs(part, place)
        if isinstance(value.get("items"), Mapping):
            yield from self._refs(value["items"], f"{place}[]")
        for inner in self._values(value):
            yield from self._refs(inner, f"{place}.{'PHASE' if 'properties' in value else 'NAME'}")

    @staticmethod
    def _values(value: Schema) -> list[Schema]:
        """What a mapping maps to, whether its keys are free, bound to a pattern, or the seven phases."""
        found = [value.get(kind) for kind in ("patternProperties", "properties")]
        found = [item for group in found if group for item in group.values()] + [value.get("additionalProperties")]
        return [item for item in found if isinstance(item, Mapping)]

    def _section(self, title: str, model: Schema) -> str:
        about = "" if model is self._schema else prose(model.get("description"))
        required = model.get("required", ())
        rows = [
            (code(key), self.type_of(value), "required" if key in required else default_of(value),
             value.get("description", ""))
            for key, value in model.get("properties", {}).items()
        ]  # fmt: skip
        body = table(("key", "type", "default", "meaning"), rows) if rows else "No keys.\n\n"
        return f"{title}\n\n{about}{body}"

    def type_of(self, value: Schema) -> str:
        """A type in words. Durations and sizes are known by their examples."""
        examples = value.get("examples", ())
        if "300ms" in examples or "5MB" in examples:
            return "duration" if "300ms" in examples else "size"
        if "$ref" in value:
            return self._named(value["$ref"].rpartition("/")[2])
        if "anyOf" in value:
            kinds = [self.type_of(part) for part in value["anyOf"] if _is_told(part)]
            return " or ".join(dict.fromkeys(kinds))
        if "const" in value or "enum" in value:
            return " | ".join(code(item) for item in value.get("enum", [value.get("const")]))
        return self._collection(value) or _plain_type(value)

    def _collection(self, value: Schema) -> str:
        if value.get("type") == "array":
            return f"list of {self.type_of(value.get('items', {}))}"
        if value.get("type") == "object":
            inner = self._values(value)
            return f"mapping to {self.type_of(inner[0])}" if inner else "mapping"
        return ""

    def _named(self, name: str) -> str:
        if name in self._models:
            return f"[{self._models[name]}](#{anchor(self._models[name])})"
        return f"[{name}](#{anchor(name)})" if name in self._enums else self.type_of(self._model(name))


def anchor(place: str) -> str:
    """As MkDocs makes it of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", place).strip().lower())


def _is_told(part: Schema) -> bool:
    return part.get("type") != "null" and part.get("pattern") != r"\$\{"


def _plain_type(value: Schema) -> str:
    if "pattern" in value:
        return PATTERNS.get(value["pattern"], "text")
    kind = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}.get(
        str(value.get("type")), "any value"
    )
    low, high = value.get("minimum"), value.get("maximum")
    if low is None:
        return kind
    return f"{kind}, {low:g} to {high:g}" if high is not None and high < 10**6 else f"{kind}, at least {low:g}"


def default_of(value: Schema) -> str:
    default = value.get("default")
    if "300ms" in value.get("examples", ()) and isinstance(default, int | float):
        return code(show_duration(float(default)))
    if "5MB" in value.get("examples", ()) and isinstance(default, int):
        return code(f"{default / 10**6:g}MB")
    if default in (None, [], {}, "") or isinstance(default, Mapping):
        return ""
    shown = str(default).lower() if isinstance(default, bool) else default
    return codes(shown) if isinstance(shown, list) else code(shown)
