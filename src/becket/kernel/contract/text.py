"""What programs and other people wrote, put into a brief: marked, bounded, and never an instruction (L24)."""

from __future__ import annotations


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
