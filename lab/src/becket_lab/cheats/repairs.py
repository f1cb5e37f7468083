"""Honest repairs in five languages, each with the class that a careful reviewer gives it by the table of classes.

A file under `honest/` holds projects. `### NAME` begins one; `=== PATH` begins a file of it, as it is before a repair;
`--- NAME | CLASS | WHY` begins a repair. A repair is hunks as in a patch, without line numbers: lines that begin with a
blank stay, `-` go, `+` come. What stays and goes is found exactly once. `@@` begins another hunk, `@@ PATH` one in
another file; the first hunk is in the first file of the project that holds it. Hunks of `+` alone make a new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

from becket.kernel.contract.guard import ChangeClass
from becket_lab.cheats.trees import Tree, tree_of


@dataclass(frozen=True, slots=True)
class Repair:
    name: str
    wanted: ChangeClass  # by a careful reviewer
    why: str
    old: dict[str, str]
    new: dict[str, str]

    @property
    def language(self) -> str:
        return self.name.partition("-")[0]

    def before(self) -> Tree:
        return tree_of(self.old)

    def after(self) -> Tree:
        return tree_of(self.new)


@cache
def honest_repairs() -> tuple[Repair, ...]:
    """All of them, in the order of their files."""
    folder = files("becket_lab.cheats") / "honest"
    texts = sorted((entry.name, entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name.endswith(".txt"))
    return tuple(repair for _, text in texts for repair in read_repairs(text))


def read_repairs(text: str) -> Iterator[Repair]:
    _, *projects = ("\n" + text).split("\n### ")
    for project in projects:
        head, *told = project.split("\n--- ")
        before = _files(head)
        for part in told:
            title, _, hunks = part.partition("\n")
            name, wanted, why = title.split(" | ", 2)
            yield Repair(name, ChangeClass(wanted), why, before, _repaired(name, before, hunks))


def _files(head: str) -> dict[str, str]:
    _, *parts = head.split("\n=== ")
    named = (part.partition("\n") for part in parts)
    return {path: text.rstrip("\n") + "\n" for path, _, text in named}


def _repaired(name: str, before: dict[str, str], text: str) -> dict[str, str]:
    after = dict(before)
    path = ""
    for mark, lines in groupby(_numbered(text), key=lambda pair: pair[0]):
        hunk = [line for _, line in lines]
        path = mark.partition(" ")[2].strip() or path
        old = "\n".join(line[1:] for line in hunk if line[:1] != "+")
        new = "\n".join(line[1:] for line in hunk if line[:1] != "-")
        if not old:
            after[path] = new + "\n"
            continue
        path = path or next((each for each in before if old in before[each]), "")
        if after.get(path, "").count(old) != 1:
            raise ValueError(f"{name}: this stands not exactly once in {path or 'any file'}:\n{old}")
        after[path] = after[path].replace(old, new)
    return after


def _numbered(text: str) -> Iterator[tuple[str, str]]:
    """Each line with the head of its hunk: a number, then the path where one is named."""
    number, path = 0, ""
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("@@"):
            number, path = number + 1, line[2:].strip()
        else:
            yield f"{number} {path}", line
