"""A growing file, line by line, while a child writes it: however much that is, nobody waits for its reader."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO

Vital = re.Pattern[bytes] | None
"""Finds the lines that must not be missed, whatever stands between them."""

_BUSY, _IDLE = 0.01, 0.1
_PIECE = 1 << 20
_BATCH = 100
"""Lines that are read before everybody else has a turn."""

_MOST, _MOST_IN_HASTE = 5_000, 1_000
"""Lines of one piece that are all read; of more than these only some are. In haste: when the writer has ended."""

_KEPT = 200
LONGEST_LINE = 8_000_000
LARGEST = 64_000_000
"""Bytes that are read of a file at once."""


class LineReader:
    """Follows one file, which may not exist yet. Bytes that are no text become replacement characters."""

    def __init__(self, path: Path, ended: asyncio.Event, vital: Vital = None) -> None:
        self._path = path
        self._ended = ended
        self._vital = vital
        self._held: list[bytes] = []  # the beginning of a line
        self.passed_over = 0

    async def batches(self) -> AsyncIterator[list[str]]:
        """Lines without their ends, as they come. When `ended` is set, the rest, and an unfinished line as it is."""
        waited = _BUSY
        file: BinaryIO | None = None
        try:
            while True:
                over = self._ended.is_set()  # before reading: what was written until now is then surely read
                file = file or _opened(self._path)
                piece = file.read(_PIECE) if file is not None else b""
                lines = self._whole(piece, in_haste=over and len(piece) == _PIECE)
                for begin in range(0, len(lines), _BATCH):
                    yield [_text(line) for line in lines[begin : begin + _BATCH]]
                    await asyncio.sleep(0)
                if piece:
                    waited = _BUSY
                    continue
                if over:
                    break
                await _either(self._ended, waited)
                waited = min(waited * 1.5, _IDLE)
        finally:
            if file is not None:
                file.close()
        if self._held:
            yield [_text(b"".join(self._held))]

    def _whole(self, piece: bytes, *, in_haste: bool) -> list[bytes]:
        """The lines that end in this piece, or those that count of too many."""
        ending, newline, begun = piece.rpartition(b"\n")
        if not newline:
            self._hold(piece)
            return []
        text = b"".join((*self._held, ending))
        self._held = []
        self._hold(begun)
        lines = skimmed(text, self._vital, _MOST_IN_HASTE if in_haste else _MOST)
        self.passed_over += text.count(b"\n") + 1 - len(lines)
        return lines

    def _hold(self, piece: bytes) -> None:
        if piece and sum(map(len, self._held)) < LONGEST_LINE:
            self._held.append(piece)


def skimmed(text: bytes, vital: Vital, most: int = _MOST) -> list[bytes]:
    """Its lines; of more than `most`, the vital ones and the last."""
    if text.count(b"\n") < most:
        return text.split(b"\n")
    last = len(text)
    for _ in range(_KEPT):
        last = text.rfind(b"\n", 0, last)
    return [*_vital_lines(text[:last], vital), *text[last + 1 :].split(b"\n")]


def _vital_lines(text: bytes, vital: Vital) -> Iterator[bytes]:
    at = 0
    for _ in range(_KEPT if vital is not None else 0):
        assert vital is not None
        hit = vital.search(text, at)
        if hit is None:
            return
        end = text.find(b"\n", hit.end())
        at = len(text) if end < 0 else end
        yield text[text.rfind(b"\n", 0, hit.start()) + 1 : at]


def lines_of(path: Path, vital: Vital = None) -> list[str]:
    """The lines of a file that nobody writes any more, or those that count of too many; none if there is no file."""
    return [_text(line) for line in few_lines(read_plain(path, 0), vital) if line]


def few_lines(text: bytes, vital: Vital) -> Iterator[bytes]:
    """The lines of any text, skimmed piece by piece."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", at + _PIECE)
        end = len(text) if end < 0 else end
        yield from skimmed(text[at:end], vital)
        at = end + 1


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
