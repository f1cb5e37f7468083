"""Two trees of files, and the change between them as the guard reads it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from becket.kernel.contract.guard import Change, ChangedFile, ChangeStatus

Tree = Mapping[str, bytes]
"""Path and content of every file."""


def tree_of(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in texts.items()}


def change_between(before: Tree, after: Tree) -> Change:
    """Without renames: what moved is told as gone and come."""
    paths = sorted({*before, *after})
    files = (_changed(path, before.get(path), after.get(path)) for path in paths)
    return Change(tuple(file for file in files if file is not None), len(before), frozenset(before))


def _changed(path: str, old: bytes | None, new: bytes | None) -> ChangedFile | None:
    if old == new:
        return None
    status = ChangeStatus.added if old is None else ChangeStatus.deleted if new is None else ChangeStatus.modified
    return ChangedFile(
        path, path, status, _mode(old), _mode(new), len(old or b""), len(new or b""),
        partial(bytes, old or b""), partial(bytes, new or b""),
    )  # fmt: skip


def _mode(content: bytes | None) -> str:
    return "000000" if content is None else "100644"
