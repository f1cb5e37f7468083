"""A patch whose lines have addresses, so that people can say something about one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from becket.app.record.report.diff import DiffLine, by_file, files_of, shortened
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import UsageError

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
MOST_COMMENTS, LONGEST_COMMENT, QUOTED = 50, 2_000, 120


class Comment(Record):
    """What a person says of a change. Without a path: of the whole. A line below zero is one that was removed."""

    path: str = ""
    line: int = 0
    text: str


@dataclass(frozen=True, slots=True)
class PatchLine:
    """`at` is its address in the file: the number as it is now, of a removed line the old one below zero; 0: none."""

    kind: str
    text: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class PatchFile:
    path: str
    added: int
    removed: int
    lines: tuple[PatchLine, ...]


@dataclass(frozen=True, slots=True)
class Patch:
    files: tuple[PatchFile, ...]
    left_out: int  # lines

    def line(self, path: str, at: int) -> PatchLine | None:
        return next((line for one in self.files if one.path == path for line in one.lines if line.at == at != 0), None)


def read_patch(patch: bytes) -> Patch:
    """As much of it as people read."""
    text, left_out = shortened(patch.decode(errors="replace"))
    found = zip(files_of(text), by_file(text), strict=False)
    files = tuple(PatchFile(one.path, one.added, one.removed, tuple(_numbered(lines))) for one, lines in found)
    return Patch(files, left_out)


def _numbered(lines: Iterable[DiffLine]) -> Iterator[PatchLine]:
    old = new = 0
    for line in lines:
        if line.kind == "hunk" and (begins := _HUNK.match(line.text)):
            old, new = int(begins[1]), int(begins[2])
        if line.kind == "remove":
            yield PatchLine(line.kind, line.text, -old)
        else:
            yield PatchLine(line.kind, line.text, new if line.kind in ("add", "same") else 0)
        old += line.kind in ("remove", "same")
        new += line.kind in ("add", "same")


def place_of(path: str, line: int) -> str:
    if not path:
        return ""
    return f"{path}:{line}" if line > 0 else f"{path}, line {-line} before"


def written(patch: Patch, comments: Iterable[Comment]) -> str:
    """The comments as one text, each about a line with that line. Raises UsageError where one is about none."""
    said = [_written(patch, one) for one in comments if one.text.strip()]
    if len(said) > MOST_COMMENTS:
        raise UsageError(f"these are {len(said)} comments; {MOST_COMMENTS} fit into one brief")
    return "\n\n".join(said)


def _written(patch: Patch, one: Comment) -> str:
    if len(one.text) > LONGEST_COMMENT:
        raise UsageError(f"a comment has {LONGEST_COMMENT:,} characters at most; this one has {len(one.text):,}")
    if not one.path:
        return one.text.strip()
    line = patch.line(one.path, one.line)
    if line is None:
        raise UsageError(f"{place_of(one.path, one.line)} is no line of the change; `becket proposals show` has it")
    return f"{place_of(one.path, one.line)} `{line.text[:QUOTED]}`\n{one.text.strip()}"
