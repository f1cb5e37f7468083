"""A growing file, line by line, while a child writes it."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

_BUSY, _IDLE = 0.01, 0.1
_PIECE = 1 << 20
LARGEST = 64_000_000
"""Bytes that are read of a file at once."""


async def follow(path: Path, ended: asyncio.Event) -> AsyncIterator[str]:
    """Each line without its end, as it comes. When `ended` is set, the rest, and an unfinished line as it is.

    The file may not exist yet. Bytes that are no text become replacement characters.
    """
    waited, held = _BUSY, b""
    file: BinaryIO | None = None
    try:
        while True:
            over = ended.is_set()  # before reading: what was written until now is then surely read
            file = file or _opened(path)
            piece = file.read(_PIECE) if file is not None else b""
            *lines, held = (held + piece).split(b"\n") if b"\n" in piece else (held + piece,)
            for line in lines:
                yield _text(line)
            if piece:
                waited = _BUSY
                await asyncio.sleep(0)
                continue
            if over:
                break
            await _either(ended, waited)
            waited = min(waited * 1.5, _IDLE)
    finally:
        if file is not None:
            file.close()
    if held:
        yield _text(held)


def lines_of(path: Path) -> list[str]:
    """All lines of a file that nobody writes any more; none if there is no such file."""
    return [_text(line) for line in read_plain(path, 0).split(b"\n") if line]


def read_plain(path: Path, begin: int) -> bytes:
    """What a regular file holds from `begin` on, within reason; nothing if it is none.

    For files that an agent may change at any moment: a pipe in their place must not stop us, nor a link lead us away.
    """
    file = _opened(path)
    if file is None:
        return b""
    with file:
        file.seek(begin)
        return file.read(LARGEST)


def _opened(path: Path) -> BinaryIO | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    return None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


async def _either(ended: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        pass
