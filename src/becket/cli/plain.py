"""How values look to people: untrusted text made harmless, durations, times, digests, evidence, colours."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import unicodedata
from collections.abc import Mapping
from typing import Any, TextIO

from becket.kernel.contract.text import CONTROLS, ESCAPES, harmless, one_line

_WORDS = re.compile(r"( *)([^ ]+)")
_DIGEST = re.compile(r"[0-9a-f]{32,64}")
SHORT = 8
UNTOLD = "tokens and money not told"
"""Of calls that nobody has given figures of, or not yet."""


safe = harmless
"""Whatever runs, agents and commands say passes here."""


def visible(text: str) -> str:
    """The same with nothing left out: what a terminal would obey is spelled. Tabs and line ends stay."""
    return CONTROLS.sub(lambda found: "\r" if found[0] == "\r" and _ends_line(found) else _spelled(found[0]), text)


def _ends_line(found: re.Match[str]) -> bool:
    return found.string[found.end() : found.end() + 1] == "\n"


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def line(text: object, most: int = 160) -> str:
    """The same in one line of bounded length."""
    return one_line(text, most)


def who(name: object, via: object) -> str:
    """Whoever decided, and by which way in where it is not the usual one."""
    shown = line(name, 40)
    return shown if via in (None, "command_line", "becket") else f"{shown} via {line(via, 20)}"


def fitted(text: str, cells: int) -> str:
    """At most so many cells of a terminal: many characters take two of them, some none."""
    room = cells
    kept: list[str] = []
    for character in text:
        room -= _cells(character)
        if room < 0:
            return _without_last(kept, cells) + "…"
        kept.append(character)
    return text


def wrapped(text: str, cells: int) -> str:
    """Broken between words only, so that an id or a command's word can be copied; further lines stand deeper."""
    indent = " " * (len(text) - len(text.lstrip(" ")) + 4)
    lines, room = [""], cells
    for gap, word in _WORDS.findall(text):
        width = sum(map(_cells, ESCAPES.sub("", word)))
        if len(gap) + width > room and lines[-1].strip():
            lines.append(indent + word)
            room = cells - len(indent) - width
        else:
            lines[-1] += gap + word
            room -= len(gap) + width
    return "\n".join(lines)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _without_last(kept: list[str], cells: int) -> str:
    """Room for the mark of what was cut."""
    while kept and sum(map(_cells, kept)) > cells - 1:
        kept.pop()
    return "".join(kept)


def short(digest: str) -> str:
    """Enough of a digest or commit to recognise it."""
    return digest[:SHORT]


def digests_shortened(text: str) -> str:
    return _DIGEST.sub(lambda match: short(match[0]), text)


def took(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 9.995:
        return f"{max(seconds, 0.0):.2f}s"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part_size:02d}{part}"
    return f"{whole}s"


def clock(at: float, now: float | None = None) -> str:
    """Local time; with the date if it is another day."""
    there, here = time.localtime(at), time.localtime(now)
    return time.strftime("%H:%M:%S" if there[:3] == here[:3] else "%Y-%m-%d %H:%M", there)


def money(usd: float, known: bool = True) -> str:
    """US dollars. Where nobody can tell what something cost, a question mark stands for it or beside it."""
    if not known and not usd:
        return "$?"
    shown = f"${usd:.4f}" if usd < 1 else f"${usd:,.2f}"
    return shown if known else f"{shown}?"


def tokens(count: int, known: bool = True) -> str:
    """Nought is a figure only where somebody told it."""
    return f"{count:,} tokens" if count or known else "tokens not told"


def evidence(found: Mapping[str, Any], most: int = 120) -> str:
    """A condition's evidence in a few words: `exit code 1, log 3fa2c91a`."""
    parts = [said for key, value in found.items() if (said := _piece(key, value))]
    return line(", ".join(parts), most)


def _piece(key: str, value: Any) -> str:
    if value in (None, "", [], {}) or (key, value) == ("end", "exited") or key in ("by", "action"):
        return ""
    name = key.replace("_", " ")
    if isinstance(value, str):
        return f"{name} {digests_shortened(line(value, 80))}"
    return f"{name} {digests_shortened(line(json.dumps(value, ensure_ascii=False), 80))}"


class Paint:
    """ANSI colours where they are wanted: a terminal, and nobody said NO_COLOR."""

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stdout
        quiet = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self._on = stream.isatty() and not quiet

    def red(self, text: str) -> str:
        return self._in("31;1", text)

    def green(self, text: str) -> str:
        return self._in("32", text)

    def yellow(self, text: str) -> str:
        return self._in("33", text)

    def cyan(self, text: str) -> str:
        return self._in("36", text)

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on and text else text
