"""Bytes of a step's output as clean text: decoded, without terminal colours, line by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

LONGEST_LINE = 8_000
"""Longer lines are cut before they are matched, so that no expression works on an unbounded text."""

_TERMINAL = re.compile(
    r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]"  # colours and cursor moves
    r"|\x1b[()][A-Z0-9]"  # character sets
    r"|\x1b\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)"  # titles and links
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)


def clean(raw: bytes | str) -> str:
    """Text without terminal codes, other control characters and lone surrogates."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw.encode("utf-8", "replace").decode()
    return _TERMINAL.sub("", text) if _TERMINAL.search(text) else text


def lines_of(raw: bytes) -> Iterator[str]:
    """The clean lines, one at a time; what a carriage return has overwritten is left out."""
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        line = raw[start : min(end, start + 4 * LONGEST_LINE)].rstrip(b"\r")
        yield clean(line.rpartition(b"\r")[2])[:LONGEST_LINE]
        start = end + 1


def seconds_of(text: str | float | None, scale: float = 1.0) -> float | None:
    """A duration as tools write it (`0.01`, `1,234.5`), or None for what is none."""
    try:
        value = float(str(text).replace(",", "")) * scale
    except ValueError:
        return None
    return round(value, 6) if math.isfinite(value) and 0 <= value < 1e9 else None


def line_number(text: str | int | None) -> int | None:
    """A line number, or None for what cannot be one."""
    digits = str(text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else None


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
