"""YAML text written by hand, because a file made for people needs its comments and its own line breaks."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 110

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_NOT_A_STRING = frozenset(["y", "n", "yes", "no", "true", "false", "on", "off", "null"])


def scalar(text: str, indent: int = 0, before: int = 0) -> str:
    """The text as one YAML value: bare where that is safe, else quoted and folded to the line width.

    `before` characters already stand on the first line; `indent` is the column of the key the value belongs to.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_A_STRING and before + len(text) <= WIDTH:
        return text
    return quoted(text, indent, before)


def quoted(text: str, indent: int = 0, before: int = 0) -> str:
    """Double quotes; a line that grows too long goes on in the next one after a backslash."""
    lines: list[str] = []
    current, room = "", max(20, WIDTH - before)
    for piece in _pieces(text):
        if current and len(current) + len(piece) > room:
            lines.append(current)
            # A space at the start of a continued line would be taken for indentation.
            current, room = ("\\" if piece.startswith(" ") else ""), WIDTH - indent - 2
        current += piece
    return '"' + f"\\\n{' ' * (indent + 2)}".join([*lines, current]) + '"'


def _pieces(text: str) -> Iterator[str]:
    """Escaped pieces, cut after spaces, and small enough that even a word without spaces can be folded."""
    for part in re.findall(r"[^ ]+ ?| ", text):
        for start in range(0, len(part), 40):
            yield "".join(map(_escaped, part[start : start + 40]))


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or character.isprintable():
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
