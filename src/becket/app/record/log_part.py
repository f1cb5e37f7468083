"""A part of a log of any length: no more of it than a window is ever in memory, and nothing is shown unredacted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from becket.kernel.contract.text import harmless

WINDOW = 256 * 1024
MOST_LINES = 3_000
"""Of one window, however short they are."""
MARGIN = 4 * 1024
"""Read around a window, so that a secret across its border is seen."""
CHUNK = 1 << 20
MOST_SEARCHED = 64 << 20
MOST_FOUND = 200
MOST_TRIED = 400
LONGEST_FOUND = 400
LONGEST_LINE = 16 * 1024

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class LogPart:
    """`text` of the bytes from `begin` to `end` of `size`; `first` is the number of its first line."""

    begin: int
    end: int
    size: int
    first: int
    text: str


@dataclass(frozen=True, slots=True)
class FoundLine:
    """`at` is where to begin reading in order to see it with some lines before it."""

    number: int
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Search:
    """`cut` is how far was looked, where that is not the whole."""

    lines: tuple[FoundLine, ...]
    cut: int = 0


def read_part(path: Path, at: int | None, redact: Redact, most: int = WINDOW) -> LogPart:
    """From the line at or after `at`, whole lines where there are any; without `at`, the end."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        begin = _line_start(file, min(max(size - most, 0) if at is None else at, size), most)
        found = _read(file, begin, most)
        end = begin + len(found)
        if end < size and (cut := found.rfind(b"\n")) >= 0:
            found = found[: cut + 1]
        begin, found = _few_lines(begin, found, from_end=at is None)
        end = begin + len(found)
        before, after = _read(file, max(begin - MARGIN, 0), min(MARGIN, begin)), _read(file, end, MARGIN)
        text, shift = _redacted(before, found, after, redact)
        return LogPart(begin, end, size, _lines_before(file, begin) + 1 - shift, text)


def search(path: Path, wanted: str, redact: Redact) -> Search:
    """The lines that hold these words, whatever their case, as they are shown: a secret cannot be searched for."""
    found: list[FoundLine] = []
    needle, tried = wanted.lower().encode(), 0
    with path.open("rb") as file:
        size = file.seek(0, 2)
        begin, number = 0, 1
        while begin < min(size, MOST_SEARCHED):
            part = _whole_lines(_read(file, begin, CHUNK))
            for index, start, end in _holding(part, needle):
                tried += 1
                shown = _as_shown(file, begin + start, begin + end, redact)
                if wanted.lower() in shown.lower():
                    at = max(begin + start - MARGIN // 4, 0)
                    found.append(FoundLine(number + index, at, shown[:LONGEST_FOUND]))
                if len(found) >= MOST_FOUND or tried >= MOST_TRIED:
                    return Search(tuple(found), begin + end)
            begin, number = begin + len(part), number + part.count(b"\n")
    return Search(tuple(found), begin if begin < size else 0)


def _holding(part: bytes, needle: bytes) -> Iterator[tuple[int, int, int]]:
    """Of each line that may hold it: how many lines are before it, and where it begins and ends."""
    low, lines, counted = part.lower(), 0, 0
    at = low.find(needle)
    while at >= 0:
        start, end = part.rfind(b"\n", 0, at) + 1, part.find(b"\n", at)
        lines, counted = lines + part.count(b"\n", counted, start), start
        end = len(part) if end < 0 else end
        yield lines, start, end
        at = low.find(needle, end)


def _as_shown(file: BinaryIO, start: int, end: int, redact: Redact) -> str:
    """One line, as it is among its neighbours; nothing where a secret goes over its ends."""
    line = _read(file, start, min(end - start, LONGEST_LINE))
    before, after = _read(file, max(start - MARGIN, 0), min(MARGIN, start)), _read(file, start + len(line), MARGIN)
    text, shift = _redacted(before, line, after, redact)
    return "" if shift else harmless(text).replace("\n", " ")


def redacted_parts(path: Path, redact: Redact) -> Iterator[bytes]:
    """All of it, piece by piece; whatever is no text stays as it is."""
    with path.open("rb") as file:
        begin = 0
        while part := _whole_lines(_read(file, begin, CHUNK)):
            begin += len(part)
            yield redact(part.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _read(file: BinaryIO, at: int, most: int) -> bytes:
    file.seek(at)
    return file.read(most)


def _whole_lines(part: bytes) -> bytes:
    """Up to the last end of a line; a line longer than the part is taken in pieces."""
    cut = part.rfind(b"\n")
    return part[: cut + 1] if cut >= 0 and len(part) == CHUNK else part


def _starts(part: bytes) -> Iterator[int]:
    at = 0
    while at >= 0:
        yield at
        at = part.find(b"\n", at) + 1 or -1


def _few_lines(begin: int, found: bytes, *, from_end: bool) -> tuple[int, bytes]:
    starts = list(_starts(found))
    if len(starts) <= MOST_LINES:
        return begin, found
    if from_end:
        cut = starts[-MOST_LINES - 1]
        return begin + cut, found[cut:]
    return begin, found[: starts[MOST_LINES]]


def _line_start(file: BinaryIO, at: int, most: int) -> int:
    if at == 0 or _read(file, at - 1, 1) == b"\n":
        return at
    cut = _read(file, at, most).find(b"\n")
    return at if cut < 0 else at + cut + 1


def _lines_before(file: BinaryIO, at: int) -> int:
    file.seek(0)
    count = 0
    while at > 0 and (part := file.read(min(CHUNK, at))):
        count, at = count + part.count(b"\n"), at - len(part)
    return count


def _redacted(before: bytes, found: bytes, after: bytes, redact: Redact) -> tuple[str, int]:
    """What was found, and how many lines before it are shown too because a secret crosses the border."""
    head, middle, tail = (part.decode("utf-8", "replace") for part in (before, found, after))
    whole, head_shown, tail_shown = redact(head + middle + tail), redact(head), redact(tail)
    if whole.startswith(head_shown) and whole.endswith(tail_shown) and len(head_shown + tail_shown) <= len(whole):
        return whole[len(head_shown) : len(whole) - len(tail_shown)], 0
    return whole, head.count("\n")
