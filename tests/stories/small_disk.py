"""A small disk of its own, to be filled to the last byte. Needs root."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE = "16m"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={SIZE}", "becket-test", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Not a byte is left."""
    for size in (65536, 1):
        with contextlib.suppress(OSError), (folder / f"filler-{size}").open("wb", buffering=0) as file:
            while file.write(b"x" * size):
                pass


def make_room(folder: Path) -> None:
    for file in folder.glob("filler-*"):
        file.unlink()
