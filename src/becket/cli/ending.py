"""How a run ended, as something Rich can print: what is so, what shows it, and the next command as the last line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from becket.app.record.report.diff import DiffLine, by_file
from becket.cli import words
from becket.cli.plain import safe
from becket.cli.proof import DIFF_STYLES
from becket.cli.story import STATUS_STYLES
from becket.kernel.contract.run import RunStatus

if TYPE_CHECKING:
    from becket.app.record.report.model import ChangeFacts, EndFacts, Report

AROUND = 4
"""Rows that are not evidence: the headline, the next command, and what keeps them apart."""
MOST_PIPED = 80
INDENT = 2


def print_ending(console: Console, report: Report) -> None:
    """On a terminal nothing scrolls away: what shows the end is cut to the rows that there are."""
    end = report.end
    if end is None:
        return
    console.print(
        Text(safe(end.headline), STATUS_STYLES[RunStatus(report.run.status)]), soft_wrap=not console.is_terminal
    )
    for text in _fitting(list(_evidence(report, end)), _room(console, end), console.width - INDENT, report.run.run_id):
        if console.is_terminal:
            console.print(Padding.indent(text, INDENT), no_wrap=text.no_wrap, overflow=text.overflow)
        else:
            print(f"{'':{INDENT}}{text.plain}".rstrip(), flush=True)
    console.print(Text.assemble(words.NEXT, (safe(end.next), "bold")), soft_wrap=True)


def _room(console: Console, end: EndFacts) -> int:
    return max(console.height - AROUND - len(end.headline) // console.width, 3) if console.is_terminal else MOST_PIPED


def _evidence(report: Report, end: EndFacts) -> Iterator[Text]:
    for text in end.lines:
        yield Text(safe(text), "red" if text.startswith("FAIL ") else "")
    if end.change:
        yield from _diff(report.changes[-1])


def _diff(change: ChangeFacts) -> Iterator[Text]:
    for file, lines in zip(change.files, by_file(change.diff), strict=False):
        for item in (DiffLine("file", file.path), *lines):
            yield Text(safe(item.text), DIFF_STYLES[item.kind], no_wrap=True, overflow="ellipsis")


def _fitting(lines: list[Text], room: int, width: int, run_id: str) -> Iterator[Text]:
    """As many as there are rows for; a last line says what is missing, and where it is."""
    for number, text in enumerate(lines):
        taken = 1 if text.no_wrap else max(-(-text.cell_len // width), 1)
        left = len(lines) - number
        if room - taken < (1 if left > 1 else 0):
            yield Text(words.END_CUT.format(count=left, run_id=run_id), "dim")
            return
        room -= taken
        yield text
