"""A patch for reading: its files, its lines by kind, cut to a bearable length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from becket.app.record.report.model import FileFacts
from becket.kernel.contract.candidate import CUT

MOST_LINES = 2_000
LONGEST_LINE = 1_000
_NAMES_ONLY = ("index ", "--- ", "+++ ")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`kind`: file, hunk, add, remove, same or about (what git says besides)."""

    kind: str
    text: str


def is_cut(patch: str) -> bool:
    return patch.rstrip("\n").rpartition("\n")[2].startswith(CUT)


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


def by_file(patch: str) -> Iterator[tuple[DiffLine, ...]]:
    """What stands below each file's name: without the lines that only name it again."""
    lines: list[DiffLine] | None = None
    for line in lines_of(patch):
        if line.kind == "file":
            if lines is not None:
                yield _worth_reading(lines)
            lines = []
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        yield _worth_reading(lines)


def _worth_reading(lines: list[DiffLine]) -> tuple[DiffLine, ...]:
    """Nobody reads the encoded content of a binary file; the patch has it."""
    data = next((at for at, line in enumerate(lines) if line.text == "GIT binary patch"), len(lines))
    return tuple(line for line in lines[: data + 1] if line.kind != "about" or not line.text.startswith(_NAMES_ONLY))


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
    names = header.removeprefix("diff --git ")
    last = names.rpartition(' "')[2] if names.endswith('"') else names.rpartition(" ")[2]
    return _unquoted(f'"{last}' if names.endswith('"') else last).removeprefix("b/")


def _named(line: str) -> str:
    for prefix, side in (("+++ ", "b/"), ("rename to ", ""), ("--- ", "a/")):
        if line.startswith(prefix) and (name := _unquoted(line.removeprefix(prefix).rstrip("\t"))).startswith(side):
            return name.removeprefix(side)
    return ""


def _unquoted(name: str) -> str:
    """Git writes a name with other than plain characters in quotes, byte by byte."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    plain = _ESCAPED.sub(_byte, name[1:-1].encode())
    return plain.decode("utf-8", "replace")


def _byte(found: re.Match[bytes]) -> bytes:
    said = found[1]
    return bytes([int(said, 8) & 0xFF]) if said.isdigit() else _LETTERS.get(said, said)
