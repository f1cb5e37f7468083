"""Where answers go: one JSON document, or lines for people."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from becket.cli.plain import Paint, line, visible


def emit(document: Any) -> None:
    """The one JSON document of a command with --json."""
    # A program reads any character; a terminal might obey some of them.
    print(json.dumps(document, indent=2, ensure_ascii=sys.stdout.isatty(), default=str))


def say(text: str = "") -> None:
    print(text)


def note(text: str) -> None:
    """For people only: never part of an answer that a program reads."""
    print(text, file=sys.stderr)


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


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns; on a terminal the last one is cut to fit, in a pipe nothing is."""
    table = [[line(cell, 400) for cell in row] for row in rows]
    widths = [max(len(row[number]) for row in [list(head), *table]) for number in range(len(head))]
    paint, room = Paint(), shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say(paint.dim(_row([word.upper() for word in head], widths, room)))
    for row in table:
        say(_row(row, widths, room))


def _row(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    return text if room is None or len(text) <= room else text[: max(room - 1, 1)] + "…"
