"""What programs and other people wrote, put into a brief: marked, bounded, and never an instruction (L24)."""

from __future__ import annotations

from becket.contract.report import cap_text


def fenced(text: str, fence: str, limit: int) -> str:
    """Material that cannot end its own fence."""
    inside = cap_text(text, limit).replace(fence, "")
    return f"<material-{fence}>\n{inside}\n</material-{fence}>"
