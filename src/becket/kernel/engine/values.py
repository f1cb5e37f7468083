"""Values that are too long for an environment variable: the shell reads them from files.

The system takes 128 KB for one variable and little more than a megabyte for all. A longer value becomes a variable of
the shell alone: `"{ask.text}"` means the same as ever, but programs that the command starts do not inherit it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LONGEST = 100_000
MOST = 500_000
"""Bytes of one variable, and of all of them."""


@dataclass(frozen=True, slots=True)
class CommandInputs:
    """What a child gets: variables, lines before its command, and the folder that it must be able to read."""

    env: dict[str, str]
    before: str = ""
    readable: tuple[Path, ...] = ()


def hand_over(env: Mapping[str, str], folder: Path) -> CommandInputs:
    """Write what is too long to `folder`, which is made only then and goes with whoever named it."""
    long = frozenset(_too_long(env))
    if not long:
        return CommandInputs(dict(env))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [_line(name, _written(folder / name, env[name])) for name in env if name in long]
    return CommandInputs({name: env[name] for name in env if name not in long}, "".join(lines), (folder,))


def _too_long(env: Mapping[str, str]) -> Iterator[str]:
    """The longest go first, until the others fit."""
    sizes = {name: len(name) + len(os.fsencode(value)) for name, value in env.items()}
    total = sum(sizes.values())
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if sizes[name] <= LONGEST and total <= MOST:
            return
        total -= sizes[name]
        yield name


def _written(path: Path, value: str) -> Path:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(os.fsencode(value))
    return path


def _line(name: str, path: Path) -> str:
    """`$(...)` drops line breaks at the end: a letter after them is taken away again."""
    return f"{name}=$(cat -- {shlex.quote(str(path))}; printf x); {name}=${{{name}%x}}\n"
