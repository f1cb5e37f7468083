"""Careful looks into bodies that may have any shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from becket.testing.model.exchange import Json


def mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def text_of(content: object) -> str:
    """The text of a content field: a string, or parts of which some have text."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in items(content) if isinstance(part.get("text"), str))


def missing(body: Json, names: Iterable[str]) -> list[str]:
    return [f"Missing required parameter: '{name}'." for name in names if body.get(name) in (None, [], "")]


def unanswered(calls: Mapping[str, int], results: Mapping[str, int]) -> list[str]:
    """The calls, by id and place, that have no result after them."""
    return [call for call, place in calls.items() if results.get(call, -1) < place]


def some_json(schema: Json) -> Any:
    """The least value of a JSON schema, for clients that ask for an answer in a shape."""
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    kind = str(schema.get("type") or "object").lower()
    if kind == "object":
        properties = mapping(schema.get("properties"))
        return {name: some_json(mapping(properties.get(name))) for name in schema.get("required") or properties}
    simple: dict[str, Any] = {"array": [], "boolean": False, "integer": 0, "number": 0}
    return simple.get(kind, "")
