"""As much of a program's output as a person or a condition needs; the whole of it is an artifact."""

from __future__ import annotations

from pathlib import Path

STDOUT_LIMIT = 1_000_000
TAIL_LIMIT = 400


def head(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return file.read(STDOUT_LIMIT).decode(errors="replace")


def tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_LIMIT))
        return file.read(TAIL_LIMIT).decode(errors="replace")
