"""Whose work a fast-forward would meet: modified, staged, untracked or ignored, hidden by a mark or not."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from becket.kernel.contract.promote import WhyNot
from becket.kernel.git.program import shown
from becket.parts.promote.adapters.paths import ChangedPath, Files, IndexMarks, PathSide, PathState
from becket.parts.promote.adapters.places import PromotionRefused

_NAMED = 5


async def refuse_dirty(
    files: Files, index: Path, touched: Sequence[ChangedPath], entries: Mapping[bytes, IndexMarks]
) -> None:
    """Every path that would change must be exactly as the old commit has it, in the index and in the work tree."""
    present = await files.look(touched)
    dirty = {item.path: "staged" for item in touched if _staged(item, entries.get(item.path))}
    for item in touched:
        if item.old is not None and not _as_old(files, present[item.path], entries.get(item.path)):
            dirty.setdefault(item.path, "modified" if files.seen(item.path) else "deleted")
    doubtful = [path for path, how in dirty.items() if how == "modified" and not _marked(entries.get(path))]
    if doubtful:
        clean = set(doubtful) - await files.modified(index, doubtful)
        dirty = {path: how for path, how in dirty.items() if path not in clean}
    dirty |= in_the_way(files, touched)
    if dirty:
        raise _refusal(dirty)


def refuse_in_the_way(files: Files, touched: Sequence[ChangedPath]) -> None:
    if found := in_the_way(files, touched):
        raise _refusal(found)


def in_the_way(files: Files, touched: Sequence[ChangedPath]) -> dict[bytes, str]:
    """What nobody ever committed and lies where a file would be added. Git would overwrite it if it is ignored."""
    leaving = {item.path for item in touched if item.new is None}
    added = (item.path for item in touched if item.old is None)
    found = (_obstacle(files, path, leaving) for path in added)
    return dict.fromkeys((path for path in found if path is not None), "untracked")


def _staged(item: ChangedPath, entry: IndexMarks | None) -> bool:
    return (None if entry is None else entry.entry or "conflict") != item.old


def _marked(entry: IndexMarks | None) -> bool:
    return entry is not None and (entry.skip_worktree or entry.assume_unchanged)


def _as_old(files: Files, present: PathState, entry: IndexMarks | None) -> bool:
    left_out = files.settings.sparse and entry is not None and entry.skip_worktree
    return present.side is PathSide.old or (left_out and present.side is PathSide.vacant)


def _obstacle(files: Files, path: bytes, leaving: set[bytes]) -> bytes | None:
    parts = path.split(b"/")
    for depth in range(1, len(parts) + 1):
        here, last = b"/".join(parts[:depth]), depth == len(parts)
        twin = _twin(files, here) if files.settings.ignorecase else None
        if here in leaving or (twin is not None and twin in leaving):
            return None
        found = files.seen(twin or here)
        if found is None:
            return None
        if not stat.S_ISDIR(found.st_mode):
            return twin or here
        if last:
            return _stray(files, twin or here, leaving)
    return None


def _twin(files: Files, path: bytes) -> bytes | None:
    """What is there under a name that differs only by case, where git was told that this is the same name."""
    folder, _, name = path.rpartition(b"/")
    try:
        names = [os.fsencode(entry.name) for entry in files.full(folder).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    if name in names:
        return None
    folded = os.fsdecode(name).casefold()
    twins = (other for other in names if os.fsdecode(other).casefold() == folded)
    return next((folder + b"/" + twin if folder else twin for twin in twins), None)


def _stray(files: Files, folder: bytes, leaving: set[bytes]) -> bytes | None:
    """The first thing in a folder that will not go away with the old commit's files; empty folders are nothing."""
    for place, folders, names in os.walk(files.full(folder)):
        here = Path(place)
        for file in (here / name for name in (*names, *folders)):
            path = os.fsencode(file.relative_to(files.root))
            if path not in leaving and (file.is_symlink() or not file.is_dir()):
                return path
    return None


def _refusal(dirty: Mapping[bytes, str]) -> PromotionRefused:
    named = [f"{shown(path)} ({how})" for path, how in sorted(dirty.items())]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return PromotionRefused(
        WhyNot.main_dirty,
        f"work that is not committed lies where the new commit changes files: {', '.join(named[:_NAMED])}{more}; "
        "commit it, stash it or move it away",
        paths=tuple(shown(path) for path in sorted(dirty)),
    )
