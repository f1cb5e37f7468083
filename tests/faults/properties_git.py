"""The repository itself: our refs name whole things, main moved as the reflog says, no work tree is half-moved."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from becket.app.state import StateFolder

_PROMOTED = re.compile(r"^becket: promote (?P<key>[0-9a-f]+)$")


@dataclass(frozen=True, slots=True)
class Moved:
    """One move of main that was ours. `key` is its effect's, where it is known."""

    old: str
    new: str
    key: str = ""


def moves_of(state: StateFolder) -> list[Moved]:
    """As the reflog tells. Git writes it first: an entry counts if the next one, or the ref, begins where it ends."""
    try:
        lines = (state.common / "logs" / "refs" / "heads" / "main").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    entries = [(*fields.split(" ", 2)[:2], words) for fields, _, words in (line.partition("\t") for line in lines)]
    follows = [*(old for old, _, _ in entries[1:]), _git(state, "rev-parse", "refs/heads/main").out.strip()]
    return [
        Moved(old, new, found["key"])
        for (old, new, words), following in zip(entries, follows, strict=True)
        if (found := _PROMOTED.match(words)) and new == following
    ]


def git_problems(state: StateFolder, dirty: frozenset[str], *, busy: bool) -> Iterator[str]:
    yield from _refs(state)
    if not busy:  # while a promotion is under way its work tree is between two commits
        yield from _work_tree(state, dirty)


def _refs(state: StateFolder) -> Iterator[str]:
    listed = _git(state, "for-each-ref", "--format=%(refname)", "refs/becket/")
    for ref in listed.out.split():
        whole = _git(state, "rev-list", "--objects", "--quiet", ref)
        if whole.code:
            yield f"{ref} names something that is not whole: {whole.said}"
    checked = _git(state, "fsck", "--connectivity-only", "--no-dangling", "--no-progress")
    if checked.code:
        yield f"git fsck finds: {checked.said}"


def _work_tree(state: StateFolder, dirty: frozenset[str]) -> Iterator[str]:
    head = _git(state, "symbolic-ref", "HEAD").out.strip()
    if head != "refs/heads/main":
        yield f"HEAD is {head or 'detached'}, not main"
    for line in _git(state, "status", "--porcelain", "--untracked-files=no").out.splitlines():
        if line[3:] not in dirty:
            yield f"the work tree differs from main and nobody left it so: {line}"


@dataclass(frozen=True, slots=True)
class _Said:
    code: int
    out: str
    said: str


def _git(state: StateFolder, *command: str) -> _Said:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(state.root), *command], capture_output=True, text=True, errors="replace", check=False,
        env={**clean, "GIT_OPTIONAL_LOCKS": "0"},
    )  # fmt: skip
    return _Said(done.returncode, done.stdout, " ".join((done.stderr + done.stdout).split())[:300])
