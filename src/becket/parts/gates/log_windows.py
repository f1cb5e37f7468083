"""Windows around the failure marks of a log that may be 100 MB: one pass, bounded memory, each kind of line once."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from becket.parts.gates.reports.text import LONGEST_LINE, clean

CHUNK = 4_000_000
REACH = 6_000
"""How far a window may reach to either side of its mark, in bytes."""

LARGEST_TAIL = 20_000
LINES_BEFORE, LINES_AFTER = 4, 10
LONGEST_SHOWN = 400
MOST_KINDS = 20_000
KEEP_FIRST, KEEP_LAST = 24, 8
MOST_NAMES = 20

# One cheap expression finds the lines worth a look; only those meet the exact ones. (One exact expression over the
# whole log is ten times slower.)
_SUSPECT = (
    rb"\nE   |rror|RROR|FAIL|fail|panic|not ok|Traceback|fault|xception|atal|xpected|nhandled|ncaught|undefined ref"
    rb"|cannot find|EROFS|EACCES|ead-only file|ermission denied|core dumped|eceived signal|\xe2\x9c|\xe2\x97\x8f"
)
# The strong marks are what test tools and compilers print for a failure itself; the weak ones are often mere echoes.
_STRONG = re.compile(
    rb"^E   |AssertionError|assertion (?:`|failed)|panicked at|^panic: |^fatal error: |^error\[E\d|Traceback \(most"
    rb"|--- FAIL: |^\s*not ok |^FAILED |^ERROR |<<< (?:FAILURE|ERROR)!|(?:Fatal|Uncaught|Unhandled) |Segmentation fault"
    rb"|SyntaxError|: error: |: error TS\d|\): error |undefined reference|cannot find symbol|Exception in thread"
    rb"|\xe2\x9c[\x95\x96\x97] |\xe2\x97\x8f |core dumped|[Ee]xpected:|^FAIL:? |Received signal|INTERNALERROR"
    rb"|##\[error\]|\bE(?:ROFS|ACCES)\b|[Rr]ead-only file system|: [Pp]ermission denied"
)
_WEAK = re.compile(
    rb"\b[Ee]rror:|\bERROR\b|\bFAIL(?:ED|URE)?\b|\bfail(?:ed|ure)\b|\b[Ff]atal:|\b[A-Z]\w{2,60}(?:Error|Exception)\b"
)
_MASK = re.compile(rb"\d+|0x[0-9a-f]+|\b[0-9a-f]{7,64}\b|/tmp/\S+")
_COLOR = re.compile(rb"\x1b\[[\d;]{0,20}m")
_STAMP = re.compile(rb"^\[?\d{4}-\d\d-\d\d[T ][\d:.,]{5,18}(?:Z|[+-]\d\d:?\d\d)?\]? ?")


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Lines of the log around a mark. `line` is the number of the first, `seen` how often the log says the like."""

    line: int
    text: str
    mark: str
    strong: bool
    seen: int = 1


@dataclass(slots=True)
class _Found:
    offset: int
    line: int
    raw: bytes
    mark: bytes
    strong: bool
    seen: int = 1


@dataclass(slots=True)
class _Shelf:
    """The first and the last findings of one strength."""

    first: list[_Found] = field(default_factory=list)
    last: deque[_Found] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))

    def put(self, found: _Found) -> None:
        if len(self.first) < KEEP_FIRST:
            self.first.append(found)
        else:
            self.last.append(found)


class _Scan:
    def __init__(self, names: Sequence[str]) -> None:
        wanted = [re.escape(name.encode()) for name in names if len(name) > 3]
        self._suspect = re.compile(b"|".join([_SUSPECT, *wanted]))
        self._wanted = re.compile(b"|".join(wanted)) if wanted else None
        self._kinds: dict[bytes, _Found] = {}
        self._shelves = {True: _Shelf(), False: _Shelf()}

    def read(self, stream: BinaryIO) -> None:
        """The buffer always holds REACH bytes before what is still to be searched, and after it until the end."""
        buffer, base, at = b"\n", -1, 0  # as if a line ended before the log: so a mark may ask for a line's beginning
        line, counted = 0, 0  # `line` is the number of the line that holds buffer[counted]
        while True:
            chunk = stream.read(CHUNK)
            buffer += chunk
            limit = len(buffer) - REACH if chunk else len(buffer)
            while at < limit and (hit := self._suspect.search(buffer, at, limit)):
                begin, end = _line_of(buffer, hit.start(), hit.end())
                line += buffer.count(b"\n", counted, begin)
                counted = begin
                self._take(buffer, begin, end, base, line)
                at = max(end, hit.end())
            at = max(at, limit)
            if not chunk:
                return
            keep = max(0, limit - REACH)
            line += buffer.count(b"\n", counted, keep) if keep >= counted else -buffer.count(b"\n", keep, counted)
            buffer, base, at, counted = buffer[keep:], base + keep, at - keep, 0

    def _take(self, buffer: bytes, begin: int, end: int, base: int, line: int) -> None:
        text = _STAMP.sub(b"", _COLOR.sub(b"", buffer[begin : min(end, begin + LONGEST_SHOWN)]))
        strong = _STRONG.search(text) is not None or (
            self._wanted is not None and self._wanted.search(text) is not None
        )
        if not strong and _WEAK.search(text) is None:
            return
        kind = _MASK.sub(b"#", text)
        known = self._kinds.get(kind)
        if known is not None:
            known.seen += 1
            return
        raw, before = _around(buffer, begin, end)
        found = _Found(base + begin, line - before, raw, text, strong)
        if len(self._kinds) < MOST_KINDS:
            self._kinds[kind] = found
        self._shelves[strong].put(found)

    def windows(self) -> Iterator[LogWindow]:
        """Strong before weak; of each, the first findings before the last."""
        for strong in (True, False):
            shelf = self._shelves[strong]
            for found in [*shelf.first, *reversed(shelf.last)]:
                lines = [_shown(line) for line in found.raw.split(b"\n")]
                yield LogWindow(found.line, "\n".join(lines), _shown(found.mark), strong, found.seen)


def find_windows(log: Path | bytes | BinaryIO, names: Sequence[str] = ()) -> list[LogWindow]:
    """The windows of a log, most telling first. Lines that hold one of the names count as strong marks."""
    scan = _Scan(list(names)[:MOST_NAMES])
    if isinstance(log, Path):
        with log.open("rb") as stream:
            scan.read(stream)
    else:
        scan.read(io.BytesIO(log) if isinstance(log, bytes) else log)
    return list(scan.windows())


def log_size(log: Path | bytes) -> int:
    return log.stat().st_size if isinstance(log, Path) else len(log)


def last_lines(log: Path | bytes, count: int) -> str:
    """The end of the log, for a step that failed without a word."""
    if isinstance(log, Path):
        with log.open("rb") as stream:
            stream.seek(max(0, log_size(log) - LARGEST_TAIL))
            tail = stream.read(LARGEST_TAIL)
    else:
        tail = log[-LARGEST_TAIL:]
    return "\n".join([_shown(line) for line in tail.rstrip().split(b"\n")][-count:])


def _line_of(buffer: bytes, start: int, stop: int) -> tuple[int, int]:
    """Where the line of a hit begins and ends; the hit may itself begin with the break before the line."""
    start += buffer[start] == 0x0A
    begin = max(buffer.rfind(b"\n", max(0, start - REACH), start) + 1, start - REACH, 0)
    end = buffer.find(b"\n", stop, stop + REACH)
    return begin, min(len(buffer), stop + REACH) if end < 0 else end


def _around(buffer: bytes, begin: int, end: int) -> tuple[bytes, int]:
    """The lines around one line, and how many of them stand before it."""
    start, before = begin, 0
    while before < LINES_BEFORE and start > 0 and begin - start < REACH:
        start = max(buffer.rfind(b"\n", max(0, start - 1 - REACH), start - 1) + 1, start - 1 - REACH, 0)
        before += 1
    stop = end
    for _ in range(LINES_AFTER):
        if stop >= len(buffer) or stop - end > REACH:
            break
        following = buffer.find(b"\n", stop + 1, stop + 1 + REACH)
        stop = min(len(buffer), stop + 1 + REACH) if following < 0 else following
    return buffer[start:stop], before


def _shown(line: bytes) -> str:
    text = clean(_STAMP.sub(b"", line[:LONGEST_LINE].rstrip(b"\r").rpartition(b"\r")[2])).rstrip()
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
