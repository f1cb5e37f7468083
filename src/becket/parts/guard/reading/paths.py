"""Rules that need only paths and modes: protected paths, odd names, links, submodules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from becket.kernel.contract.globs import matches
from becket.kernel.contract.guard import SUBMODULE, SYMLINK, Change, ChangedFile, GuardRule, Refusal
from becket.parts.guard.reading import words

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|\\x[0-9a-f]{2}")
_GIT_NAME = re.compile(r"^(?:\.git|git~[0-9]+)[ .]*(?::.*)?$", re.IGNORECASE)
_LONGEST_LINK = 4096


def refused(rule: GuardRule, path: str, message: str, line: int = 0, *, asks: bool = False) -> Refusal:
    return Refusal(rule=rule, path=path, line=line, message=message, fix=words.FIXES[rule], asks=asks)


def judge_protected(change: Change, protected: Sequence[str]) -> Iterator[Refusal]:
    for file in change.files:
        for path in dict.fromkeys((file.old_path, file.path)):
            if matches(path, protected):
                yield refused(GuardRule.protected_path, path, words.PROTECTED)


def judge_names(change: Change) -> Iterator[Refusal]:
    """Names that git, another file system or a reader's eye takes for something else."""
    arriving = [file for file in change.files if file.in_candidate and file.path not in change.base_paths]
    for file in arriving:
        if problem := _odd(file.path):
            yield refused(GuardRule.path_oddity, file.path, problem)
    yield from _collisions(change, arriving)


def _odd(path: str) -> str | None:
    parts = path.split("/")
    if any(_GIT_NAME.match(part) for part in parts):
        return words.NAMED_LIKE_GIT
    if any(part in {"", ".", ".."} for part in parts):
        return words.NAME_CLIMBS
    if _CONTROL.search(path):
        return words.NAME_INVISIBLE
    if any(part != part.strip() or part.endswith(".") for part in parts):
        return words.NAME_ENDS_ODDLY
    return words.NAME_BACKSLASH if "\\" in path else None


def _collisions(change: Change, arriving: Sequence[ChangedFile]) -> Iterator[Refusal]:
    if not arriving:
        return
    leaving = {file.old_path for file in change.files if not file.in_candidate or file.old_path != file.path}
    owners = {_folded(path): path for path in change.base_paths - leaving}
    for file in sorted(arriving, key=lambda file: file.path):
        owner = owners.setdefault(_folded(file.path), file.path)
        if owner != file.path:
            yield refused(GuardRule.path_oddity, file.path, words.name_collides(owner))


def _folded(path: str) -> str:
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def judge_links(change: Change) -> Iterator[Refusal]:
    for file in change.files:
        if SUBMODULE in (file.old_mode, file.new_mode):
            yield refused(GuardRule.submodule_changed, file.path, words.SUBMODULE)
        elif file.new_mode == SYMLINK and file.in_candidate:
            target = file.new()[:_LONGEST_LINK].decode("utf-8", "backslashreplace")
            if problem := _escapes(file.path, target):
                yield refused(GuardRule.symlink_escape, file.path, problem, 1)


def _escapes(path: str, target: str) -> str | None:
    """Judged by the text alone; a `..` behind a name could pass through another link, so it is refused as well."""
    if not target or target.startswith(("/", "~", "\\")) or re.match(r"^[A-Za-z]:", target):
        return words.LINK_ABSOLUTE
    here = path.split("/")[:-1]
    named = False
    for part in target.split("/"):
        if part == "..":
            if named or not here:
                return words.LINK_CLIMBS
            here.pop()
        elif part not in {"", "."}:
            named = True
            here.append(part)
    return words.LINK_TO_GIT if any(_GIT_NAME.match(part) for part in here) else None
