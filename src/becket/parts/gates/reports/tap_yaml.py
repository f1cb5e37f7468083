"""The diagnostics of a TAP point: the few keys that tell what failed and where. Not a YAML reader on purpose.

The blocks come from the tests themselves; a full reader would be a large surface for three texts and a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from becket.parts.gates.reports.places import FailurePlace
from becket.parts.gates.reports.text import line_number
from becket.parts.gates.reports.tree import Tree

_KEY = re.compile(r"^(\s*)([\w-]{1,60}):(?: (.*)|\s*)$")
_LOCATION = re.compile(r"^(.{1,1000}?):(\d{1,8})(?::\d+)?$")
_BLOCK = frozenset({"|", "|-", "|+", ">", ">-", ">+"})


def diagnostics(lines: Sequence[str]) -> dict[str, str]:
    """Top-level keys with their texts; keys of one nested map appear as `at.fileName`."""
    found: dict[str, str] = {}
    base: int | None = None
    key, parent, block = "", "", False
    block_indent = 0
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if block and (indent > block_indent or not line.strip()):
            found[key] += line.strip() + "\n"
            continue
        block = False
        match = _KEY.match(line)
        if match is None:
            continue
        base = indent if base is None else base
        value = (match[3] or "").strip()
        if indent == base:
            key = parent = match[2]
        elif parent:
            key = f"{parent}.{match[2]}"
        block, block_indent = value in _BLOCK, indent
        found[key] = "" if block else _unquoted(value)
    return {name: text.strip() for name, text in found.items()}


def place_of(found: dict[str, str], tree: Tree) -> FailurePlace | None:
    """Where the point's test stands, by the key that its harness uses."""
    file = found.get("at.fileName") or found.get("at.file") or found.get("file")
    if file:
        return FailurePlace(
            tree.relative(file), line_number(found.get("at.lineNumber") or found.get("at.line") or found.get("line"))
        )
    match = _LOCATION.match(found.get("location", "") or found.get("at", ""))
    return FailurePlace(tree.relative(match[1]), line_number(match[2])) if match else None


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"`":
        return value[1:-1].replace("''", "'") if value[0] == "'" else value[1:-1]
    return value
