"""A patch for reading: its files, its lines by kind, cut to a bearable length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from becket.app.report.model import FileFacts

MOST_LINES = 2_000
LONGEST_LINE = 1_000


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`kind`: file, hunk, add, remove, same or about (what git says besides)."""

    kind: str
    text: str


def shortened(patch: str) -> tuple[str, int]:
    """The patch within bounds, and how many lines were left out."""
    lines = patch.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    kept = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines[:MOST_LINES]]
    return "\n".join(kept), max(len(lines) - MOST_LINES, 0)


def lines_of(patch: str) -> Iterator[DiffLine]:
    """By position, not by look alone: a removed line that begins with `--` is no header."""
    in_hunk = False
    for line in patch.split("\n") if patch else ():
        if line.startswith("diff --git "):
            in_hunk = False
            yield DiffLine("file", line)
        elif line.startswith("@@ "):
            in_hunk = True
            yield DiffLine("hunk", line)
        elif not in_hunk:
            yield DiffLine("about", line)
        else:
            yield DiffLine({"+": "add", "-": "remove", "\\": "about"}.get(line[:1], "same"), line)


def files_of(patch: str) -> Iterator[FileFacts]:
    path, added, removed, begun = "", 0, 0, False
    for line in lines_of(patch):
        if line.kind == "file":
            if begun:
                yield FileFacts(path=path, added=added, removed=removed)
            path, added, removed, begun = _path(line.text), 0, 0, True
        elif line.kind == "about" and (better := _named(line.text)):
            path = better
        added += line.kind == "add"
        removed += line.kind == "remove"
    if begun:
        yield FileFacts(path=path, added=added, removed=removed)


def _path(header: str) -> str:
    """Only a guess where names hold spaces; the lines below the header say it exactly."""
    return header.removeprefix("diff --git ").rpartition(" ")[2].removeprefix("b/")


def _named(line: str) -> str:
    for prefix in ("+++ b/", "rename to "):
        if line.startswith(prefix):
            return line.removeprefix(prefix).rstrip("\t")
    return line.removeprefix("--- a/").rstrip("\t") if line.startswith("--- a/") else ""
