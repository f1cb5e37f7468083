"""As much of a program's output as a person or a condition needs; the whole of it is an artifact."""

from __future__ import annotations

from pathlib import Path

STDOUT_LIMIT = 1_000_000
TAIL_LIMIT = 400


_TAIL_PART = 4  # of what is kept, so much is the end


def beginning_and_end(path: Path, most: int) -> bytes:
    """The whole file, or its first and last bytes if it is larger: what a program printed without end, say."""
    size, tail = path.stat().st_size, most // _TAIL_PART
    with path.open("rb") as file:
        if size <= most:
            return file.read(most)
        first = file.read(most - tail).rpartition(b"\n")[0]
        file.seek(size - tail)
        last = file.read(tail).partition(b"\n")[2]
    notice = f"\n[becket: {size - len(first) - len(last)} bytes that stood here are not kept]\n".encode()
    return first + notice + last


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


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
