"""From test ids of a report to the words that make its runner run only those tests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

MOST = 200
"""More failing tests than this are not worth a command line: the whole step runs again."""

Exists = Callable[[str], bool]


def selection(format: str, ids: Sequence[str], exists: Exists) -> str | None:  # noqa: A002 - the word of becket.yaml
    """What stands for `{tests}` in a step's `rerun`, quoted for the shell; None if these ids cannot be selected.

    `exists` tells whether the tree has a file. The ids come from a report and are untrusted: they become one quoted
    word each, and never options. A name that a secret was taken out of is nobody's.
    """
    kind = format.partition(":")[0]
    if not ids or len(ids) > MOST or kind not in _KINDS or any("[redacted:" in name for name in ids):
        return None
    return _KINDS[kind](tuple(dict.fromkeys(ids)), exists)


def _pytest(ids: Sequence[str], exists: Exists) -> str | None:
    words = [_node_id(name, exists) for name in ids]
    return None if None in words else " ".join(shlex.quote(word) for word in words if word)


def _node_id(name: str, exists: Exists) -> str | None:
    """`tests/test_a.py::Case::test_b[x]`; JUnit's `tests.test_a.Case::test_b[x]` is put back together."""
    place, _, test = name.partition("::")
    if exists(place):
        return None if place.startswith("-") else name
    if not test:
        return None
    parts = place.split(".")
    for length in range(len(parts), 0, -1):
        file = str(PurePosixPath(*parts[:length])) + ".py"
        if exists(file):
            return "::".join([file, *parts[length:], test])
    return None


def _go(ids: Sequence[str], exists: Exists) -> str | None:
    """One expression for `-run`: top-level tests by name, whatever package they are in."""
    names = {name.rpartition("::")[2].partition("/")[0] for name in ids if "::" in name}
    if not names or len(names) > MOST or not all(re.fullmatch(r"\w+", name) for name in names):
        return None
    return shlex.quote(f"^({'|'.join(sorted(names))})$")


def _cargo(ids: Sequence[str], exists: Exists) -> str | None:
    """Names for `cargo test -- --exact NAMES`."""
    names = [name.partition("::")[2] for name in ids]
    if not all(re.fullmatch(r"[\w:]+", name) for name in names):
        return None
    return " ".join(dict.fromkeys(names))


_KINDS: dict[str, Callable[[Sequence[str], Exists], str | None]] = {
    "pytest": _pytest,
    "junit": _pytest,
    "go": _go,
    "cargo": _cargo,
}
