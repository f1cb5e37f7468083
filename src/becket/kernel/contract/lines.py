"""Bytes as lines: what was added, what is binary, how a line is shown."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence

from becket.kernel.contract.guard import READ_LIMIT

_SHOWN = 100
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"7z\xbc\xaf")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def is_binary(data: bytes) -> bool:
    """By git's own rule of thumb, and what is no text in any usual encoding."""
    head = data[:8000]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    return b"\0" in head


def as_text(data: bytes) -> bytes | None:
    """In UTF-8, where it was UTF-16; None for what is no text."""
    if is_binary(data) or data.startswith(_PACKED):
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode(errors="replace")
    return data


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
