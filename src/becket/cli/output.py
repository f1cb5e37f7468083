"""Where answers go: one JSON document, or lines for people."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from becket.cli.plain import Paint, fitted, line, visible, wrapped

BETWEEN = "  "
LEAST = 12
"""So much stays of a column that is cut."""


def emit(document: Any) -> None:
    """The one JSON document of a command with --json."""
    # A program reads any character; a terminal might obey some of them.
    print(json.dumps(document, indent=2, ensure_ascii=sys.stdout.isatty(), default=str))


def say(text: str = "") -> None:
    print(text)


def note(text: str) -> None:
    """For people only: never part of an answer that a program reads."""
    print(text, file=sys.stderr)


def say_wrapped(text: str) -> None:
    """On a terminal, broken between words."""
    say(wrapped(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text)


def show_patch(patch: bytes) -> None:
    """To a pipe byte by byte: `git apply` takes it, whatever stands around it. On a terminal nothing is left out, and
    what a terminal would obey is spelled.
    """
    if sys.stdout.isatty():
        say(visible(patch.decode("utf-8", "replace")).rstrip("\n"))
    elif patch:
        sys.stdout.flush()
        sys.stdout.buffer.write(patch if patch.endswith(b"\n") else patch + b"\n")
        sys.stdout.buffer.flush()


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], *, drop: Sequence[str] = (), cut: str = "") -> None:
    """Aligned columns. In a pipe all of it; where a terminal lacks the room, those of `drop` are left out one by one,
    the column `cut` gets what room there is, and in the end the last one is cut.
    """
    table = [[line(cell, 400) for cell in row] for row in rows]
    paint, room = Paint(), shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    kept = list(range(len(head)))
    widths = [max(len(row[number]) for row in [list(head), *table]) for number in kept]
    if room is not None:
        for name in drop:
            if _width(widths, kept) > room:
                kept.remove(head.index(name))
        if cut in head:
            lacking = _width(widths, kept) - room
            widths[head.index(cut)] -= min(max(lacking, 0), max(widths[head.index(cut)] - LEAST, 0))
    say(paint.dim(_row([word.upper() for word in head], widths, kept, room)))
    for row in table:
        say(_row(row, widths, kept, room))


def _width(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[number] + len(BETWEEN) for number in kept) - len(BETWEEN)


def _row(cells: Sequence[str], widths: Sequence[int], kept: Sequence[int], room: int | None) -> str:
    text = BETWEEN.join(_cell(cells[number], widths[number]) for number in kept).rstrip()
    return text if room is None else fitted(text, room)


def _cell(text: str, width: int) -> str:
    return (text if len(text) <= width else fitted(text, width)).ljust(width)
