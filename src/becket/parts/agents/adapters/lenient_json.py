"""Reading JSON that nobody promised to keep its shape: a wrong type is an empty value, never an exception."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from becket.kernel.contract.base import Json

Object = Mapping[str, Json]
_MOST = 10**12


def parsed(line: str) -> Object | None:
    """The object that a line holds; None if it holds none."""
    if not line.lstrip().startswith("{"):
        return None  # at a hundredth of what the parser's exception costs
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text(value: Json, *keys: str) -> str:
    found = _at(value, keys)
    # A lone surrogate is valid in JSON, and in no text that can be stored.
    return found.encode("utf-8", "replace").decode() if isinstance(found, str) else ""


def number(value: Json, *keys: str) -> float:
    """A finite number that is not negative; 0 for everything else."""
    found = _at(value, keys)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return 0
    return min(max(found, 0), _MOST)


def count(value: Json, *keys: str) -> int:
    return int(number(value, *keys))


def mapping(value: Json, *keys: str) -> Object:
    found = _at(value, keys)
    return found if isinstance(found, dict) else {}


def objects(value: Json, *keys: str) -> list[Object]:
    found = _at(value, keys)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def compact(value: Json) -> str:
    """A value as one line for people."""
    return text({"it": json.dumps(value, ensure_ascii=False)}, "it")


def _at(value: Json, keys: Sequence[str]) -> Json:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
