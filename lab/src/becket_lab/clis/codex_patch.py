"""The patch format of codex's apply_patch tool."""

from __future__ import annotations

import re
from pathlib import Path


def read_patch(text: str, cwd: str) -> list[tuple[Path, str, str]]:
    """Path, kind and new text of each file. Raises ValueError before anything is written."""
    changes = []
    body = text.split("*** Begin Patch\n", 1)[-1].split("*** End Patch", 1)[0]
    for head, lines in re.findall(r"^\*\*\* (\w+ File: .+)\n((?:(?!\*\*\* ).*\n)*)", body, re.MULTILINE):
        verb, _, name = head.partition(" File: ")
        path = Path(cwd) / name
        if verb == "Add":
            changes.append((path, "add", "".join(f"{line[1:]}\n" for line in lines.splitlines())))
        elif verb == "Delete":
            changes.append((path, "delete", ""))
        else:
            changes.append((path, "update", updated(path, lines)))
    if not changes:
        raise ValueError("invalid patch")
    return changes


def updated(path: Path, hunks: str) -> str:
    text = path.read_text()
    for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE):
        lines = hunk.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
        new = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
        if old not in text:
            raise ValueError(f"Failed to find expected lines in {path}:\n{old.rstrip()}")
        text = text.replace(old, new, 1) if lines else text
    return text
