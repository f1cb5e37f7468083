"""What programs and other people wrote: shown without what a terminal would obey, and in a brief marked, bounded, and
never an instruction (L24). Standard library only.
"""

from __future__ import annotations

import re

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # window titles, links, device strings
    r"|\x1b.?"
)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""What steers a terminal, turns the direction of writing, is not seen, or is half a character."""


def harmless(text: object) -> str:
    """Without anything that a terminal would obey, or that hides what is written."""
    shown = str(text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return CONTROLS.sub("", ESCAPES.sub("", shown))


def one_line(text: object, most: int = 300) -> str:
    """The same in one line of bounded length."""
    shown = " ".join(harmless(text).split())
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def cap_text(text: str, most: int) -> str:
    """At most `most` bytes of UTF-8; what is left out is taken from the middle, where it says the least."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode()
    mark = f"\n... {len(raw) - most} bytes left out ...\n"
    room = most - len(mark)
    if room <= 0:
        return raw[:most].decode("utf-8", "ignore")
    head = raw[: room // 3].decode("utf-8", "ignore")
    tail = raw[len(raw) - (room - room // 3) :].decode("utf-8", "ignore")
    return head + mark + tail


def fenced(text: str, fence: str, limit: int) -> str:
    """Material that cannot end its own fence."""
    inside = cap_text(text, limit).replace(fence, "")
    return f"<material-{fence}>\n{inside}\n</material-{fence}>"
