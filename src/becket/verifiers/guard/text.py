"""Bytes as lines: what was added, what is binary, how a line is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from becket.contract.guard import READ_LIMIT

_SHOWN = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def is_binary(data: bytes) -> bool:
    """By git's own rule of thumb, and what is no text in any usual encoding."""
    head = data[:8000]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    return b"\0" in head


def lines_of(data: bytes) -> list[bytes]:
    return data[:READ_LIMIT].replace(b"\r\n", b"\n").split(b"\n")


def added_lines(old: bytes, new: bytes) -> Iterator[tuple[int, str]]:
    """Lines of `new` that `old` has nowhere, with their numbers. A moved line is not an added one."""
    known = set(lines_of(old)) if old else frozenset[bytes]()
    for number, line in enumerate(lines_of(new), 1):
        if line not in known:
            yield number, line.decode("utf-8", "replace")


def is_subsequence(old: Sequence[str], new: Sequence[str]) -> bool:
    rest = iter(new)
    return all(any(line == other for other in rest) for line in old)


def shown(text: str) -> str:
    """One line, without control characters, short enough for a message."""
    flat = _CONTROL.sub(" ", text).strip()
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 3] + "..."
