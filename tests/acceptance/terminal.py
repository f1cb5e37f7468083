"""A terminal of 80 columns and 24 rows, as far as Becket uses one: what a person sees at the end, and meanwhile."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

from cli_stage import PROGRAM, environment

COLUMNS, ROWS = 80, 24
_PARTS = re.compile(r"\x1b\[(?P<arguments>[0-9;?]*)(?P<verb>[A-Za-z])|(?P<text>[^\x1b])", re.DOTALL)


class Terminal:
    """The rows that are on the screen; an escape that it does not know is an error, so that nothing is overlooked."""

    def __init__(self) -> None:
        self._rows = [[" "] * COLUMNS for _ in range(ROWS)]
        self._row = self._column = 0
        self._left = ""

    @property
    def lines(self) -> list[str]:
        """Without the empty ones at the end."""
        shown = ["".join(row).rstrip() for row in self._rows]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def feed(self, text: str) -> None:
        text, self._left = self._left + text, ""
        whole = re.search(r"\x1b(?:\[[0-9;?]*)?\Z", text)  # an escape may come in two pieces
        if whole:
            text, self._left = text[: whole.start()], whole[0]
        at = 0
        while at < len(text):
            part = _PARTS.match(text, at)
            assert part, f"unknown: {text[at : at + 10]!r}"
            at = part.end()
            self._character(part["text"]) if part["text"] else self._obey(part["verb"], part["arguments"])

    def _character(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._next_row()
        else:
            if self._column == COLUMNS:
                self._column = 0
                self._next_row()
            self._rows[self._row][self._column] = character
            self._column += 1

    def _next_row(self) -> None:
        if self._row == ROWS - 1:
            self._rows = [*self._rows[1:], [" "] * COLUMNS]
        else:
            self._row += 1

    def _obey(self, verb: str, arguments: str) -> None:
        if verb == "A":
            self._row = max(self._row - int(arguments or 1), 0)
        elif (verb, arguments) == ("K", "2"):
            self._rows[self._row] = [" "] * COLUMNS
        else:
            assert verb == "m" or arguments == "?25", (verb, arguments)  # colours, and the cursor's looks


def watched(
    arguments: Sequence[str], folder: Path, look: Callable[[Terminal], None] = lambda _: None
) -> tuple[int, list[str]]:
    """Run becket in such a terminal. `look` is called whenever the screen has changed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = environment() | {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
    env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    terminal, rest = Terminal(), b""
    while chunk := _read(ours):
        whole, rest = _characters(rest + chunk)
        terminal.feed(whole)
        look(terminal)
    os.close(ours)
    return process.wait(), terminal.lines


def _read(file: int) -> bytes:
    try:
        return os.read(file, 65536)
    except OSError:  # the other side is closed
        return b""


def _characters(data: bytes) -> tuple[str, bytes]:
    """What is whole, and the beginning of a character that is not."""
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode(), data[len(data) - cut :]
        except UnicodeDecodeError:
            continue
    return data.decode(errors="replace"), b""
