"""Bounded excerpts of a program's output, for people and for conditions; the whole output is an artifact."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

VALUE_LIMIT = 1_000_000
"""Bytes of one output: every one is a value of the journal, and of the commands that it is handed to."""

TAIL_LIMIT = 400
INSTEAD = "a later step can read it itself from a file that this one leaves, with `in: scratch` for both"


_TAIL_PART = 4  # of what is kept, so much is the end


def beginning_and_end(path: Path, most: int) -> tuple[bytes, ...]:
    """The whole file, or its first and last lines if it is larger: what a program printed without end, say."""
    size, tail = path.stat().st_size, most // _TAIL_PART
    with path.open("rb") as file:
        if size <= most:
            return (file.read(most),)
        first = file.read(most - tail).rpartition(b"\n")[0]
        file.seek(size - tail)
        last = file.read(tail).partition(b"\n")[2]
    notice = f"\n[becket: {size - len(first) - len(last)} bytes that stood here are not kept]\n".encode()
    return first, notice, last


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def value_of(file: BinaryIO) -> tuple[str, str]:
    """A file as a value for later steps, or why it cannot be one: a part of it, or another text, would be a lie."""
    data = file.read(VALUE_LIMIT + 1)
    if len(data) > VALUE_LIMIT:
        size = max(os.fstat(file.fileno()).st_size, len(data))
        return "", f"has {size} bytes, and an output has at most {VALUE_LIMIT}: make it smaller, or {INSTEAD}"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return "", f"is not text (byte {error.start} is not UTF-8): let it be text, such as base64, or {INSTEAD}"
    if "\0" in text:
        return "", f"is not text (byte {data.index(0)} is zero): let it be text, such as base64, or {INSTEAD}"
    return text, ""


def value_at(path: Path) -> tuple[str, str]:
    if not path.exists():
        return "", ""
    with path.open("rb") as file:
        return value_of(file)


def tail(kept: bytes) -> str:
    """Only of what is kept: in the end alone, a secret that begins before it is not to be recognised (L25)."""
    return kept[-TAIL_LIMIT:].decode(errors="replace")
