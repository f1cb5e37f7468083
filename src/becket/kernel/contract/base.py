"""What every record is made of: frozen models, digests, identifiers, and the small values of the YAML files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

Json = Any
"""A JSON value. Typed loosely on purpose: pydantic checks it where it enters."""


class Record(BaseModel):
    """A frozen record; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def local_time(at: float) -> str:
    """For people: the time where they are, with its zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at))


def canonical(value: Json) -> str:
    """The one text form that digests are made from."""
    return _ENCODER.encode(value)


def digest_of(value: Json) -> str:
    """sha256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """A short identifier that sorts by time: prefix, 9 characters of milliseconds, 7 of chance."""
    number = (time.time_ns() // 1_000_000) << 35 | int.from_bytes(os.urandom(5)) >> 5
    letters = []
    for _ in range(16):
        number, digit = divmod(number, 32)
        letters.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(letters))}"


class BadDuration(ValueError):
    """A text that is no duration."""


class BadSize(ValueError):
    """A text that is no size."""


class KeyProblem(ValueError):
    """What a model's own check found, with the keys that lead to what is to blame: a finding points there."""

    def __init__(self, problem: str, *keys: str | int, fix: str) -> None:
        super().__init__(f"{problem}; {fix}")
        self.problem = problem
        self.keys = keys
        self.fix = fix


class InvalidValue(ValueError):
    """What is wrong with a value, and what to write instead. Never repeats the value: it may be a secret."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}; {fix}")
        self.problem = problem
        self.fix = fix


_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|h|d|w)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONGEST = 100 * 365 * 86_400.0  # so that a time plus a duration always is a date


def parse_duration(text: object) -> float:
    """'300ms', '2h', '1h30m' or a number of seconds -> seconds, to the millisecond."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds: float | Fraction = text
    else:
        parts = _DURATION.findall(str(text))
        if not parts or "".join(number + unit for number, unit in parts) != str(text):
            raise BadDuration(f"{_short(text)} is not a duration; write it like 300ms, 30s, 10m, 2h or 7d")
        # Fractions, not floats: only so is a duration equal to what its own text reads back as.
        seconds = sum((Fraction(number) * _MILLISECONDS[unit] for number, unit in parts), Fraction(0)) / 1000
    if not 0 <= seconds <= _LONGEST:
        raise BadDuration(f"{_short(text)} is out of range; a duration is between 0s and 100 years")
    return round(float(seconds), 3)


def show_duration(seconds: float) -> str:
    """Seconds -> the exact text, largest units first, that `parse_duration` reads back."""
    left = round(seconds * 1000)
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, _MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(B|KB|MB|GB)")
_BYTES = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3}
_LARGEST = 10**15


def parse_size(text: object) -> int:
    """'5MB' or a number of bytes -> bytes."""
    if isinstance(text, int) and not isinstance(text, bool):
        size = text
    else:
        match = _SIZE.fullmatch(str(text))
        if match is None:
            raise BadSize(f"{_short(text)} is not a size; write it like 500KB, 5MB or 1GB")
        size = int(Fraction(match[1]) * _BYTES[match[2]])
    if not 0 <= size <= _LARGEST:
        raise BadSize(f"{_short(text)} is out of range; a size is between 0B and 1000000GB")
    return size


def show_size(size: int) -> str:
    """For people: 4000000000 -> '4 GB', to three digits."""
    unit = next((unit for unit in ("GB", "MB", "KB") if size >= _BYTES[unit]), "B")
    return f"{size / _BYTES[unit]:.3g} {unit}"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+$"},
        {"type": "number", "minimum": 0},
    ],
    "examples": ["300ms", "30s", "10m", "1h30m", "7d"],
}
_SIZE_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*(B|KB|MB|GB)$"},
        {"type": "integer", "minimum": 0},
    ],
    "examples": ["500KB", "5MB", "1GB"],
}

Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(show_duration, when_used="json"),
    WithJsonSchema(_DURATION_SCHEMA),
]
PositiveDuration = Annotated[Duration, Field(gt=0)]
Size = Annotated[int, BeforeValidator(parse_size), WithJsonSchema(_SIZE_SCHEMA)]
