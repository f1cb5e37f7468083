"""Colours of terminals as classes. Nothing of what a program printed becomes markup, and nothing else is obeyed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from becket.kernel.contract.text import harmless

LONGEST_LINE = 4_000
_SGR = re.compile(r"\x1b\[([0-9;:]{0,60})m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_SWITCHES = {1: "bold", 2: "dim", 3: "italic", 4: "line", 7: "inverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("line",), 27: ("inverse",)}


@dataclass(slots=True)
class _Pen:
    """What counts until it is changed; it lasts over the ends of lines."""

    color: str = ""
    ground: str = ""
    switches: frozenset[str] = frozenset()

    @property
    def classes(self) -> str:
        found = [f"t-{name}" for name in sorted(self.switches)]
        found += [f"t-{self.color}"] if self.color else []
        found += [f"t-on-{self.ground}"] if self.ground else []
        return " ".join(found)

    def obey(self, told: str) -> None:
        codes = [int(code) if code else 0 for code in re.split("[;:]", told)] if told else [0]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.color, self.ground, self.switches = "", "", frozenset()
            elif code in _SWITCHES:
                self.switches |= {_SWITCHES[code]}
            elif code in _OFF:
                self.switches -= set(_OFF[code])
            elif code in (38, 48):
                name = _of_many(codes)
                self.color, self.ground = (name, self.ground) if code == 38 else (self.color, name)
            elif code in (39, 49):
                self.color, self.ground = ("", self.ground) if code == 39 else (self.color, "")
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.color = _NAMES[code % 10]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.ground = _NAMES[code % 10]


def _of_many(codes: list[int]) -> str:
    """The nearest of eight; what follows the code is taken off the list."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        number = codes.pop(0)
        if number < 16:
            return _NAMES[number % 8]
        if number >= 232:
            return "black" if number < 244 else "white"
        number -= 16
        return _nearest(number // 36 * 51, number // 6 % 6 * 51, number % 6 * 51)
    if kind == 2 and len(codes) >= 3:
        red, green, blue = codes[:3]
        del codes[:3]
        return _nearest(red, green, blue)
    return ""


def _nearest(red: int, green: int, blue: int) -> str:
    half = max(red, green, blue, 1) / 2
    return _NAMES[(red > half) + 2 * (green > half) + 4 * (blue > half)] if max(red, green, blue) > 60 else "black"


def html_lines(text: str) -> Iterator[str]:
    """Each line as HTML; of one that was written over again and again, what was seen last."""
    pen = _Pen()
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for line in lines:
        yield _html(line.rstrip("\r").rpartition("\r")[2], pen)


def _html(line: str, pen: _Pen) -> str:
    cut = len(line) > LONGEST_LINE
    made = []
    for index, piece in enumerate(_SGR.split(line[:LONGEST_LINE])):
        if index % 2:
            pen.obey(piece)
        elif shown := html.escape(harmless(piece).replace("\n", " ")):
            made.append(f'<span class="{pen.classes}">{shown}</span>' if pen.classes else shown)
    return "".join(made) + ("…" if cut else "")
