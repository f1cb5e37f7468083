"""Checks of what gates find around them: toolchains, places to read, submodules and large files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from becket.kernel.checks import words
from becket.kernel.checks.configuration import place_of
from becket.kernel.checks.containment import used_for
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.contract.config import Config
from becket.kernel.contract.toolchains import find
from becket.kernel.contract.variables import expanded, place_to_show

MOST_NAMED = 5


def toolchains(exam: Exam) -> Iterator[Diagnosis]:
    """Those that are found below HOME; and places of becket.yaml that are not there."""
    config = exam.config or Config(version=1)
    names = find(exam.facts.env).names
    what = words.TOOLCHAINS_FOUND.format(names=", ".join(names)) if names else words.TOOLCHAINS_NONE
    yield Diagnosis(name="toolchains", level=Level.ok, what=what)
    for written in config.sandbox.readable:
        if not expanded(written, Path.home()).exists():
            what = words.READABLE_NONE.format(place=written)
            where = place_of(exam, written)
            yield Diagnosis(name="toolchains", level=Level.warn, what=what, mend=words.READABLE_MEND, where=where)


def unseen(exam: Exam, config: Config, user: str, word: str) -> Iterator[Diagnosis]:
    """A program that is there, and that no contained command can start: said before the run, not by a red gate."""
    used = used_for(exam, config.sandbox.use)
    hidden = exam.facts.unseen(config, word) if used is not None and used.holds.files else None
    if hidden is None:
        if said := exam.facts.trouble(config, word):
            what = words.TOOL_TROUBLE.format(tool=word, user=user, said=said)
            yield Diagnosis(name="tools", level=Level.error, what=what, mend=words.TOOL_TROUBLE_MEND)
        return
    place = place_to_show(hidden, Path.home())
    what = words.TOOL_UNSEEN.format(tool=word, user=user, place=hidden)
    mend = words.TOOL_UNSEEN_MEND.format(place=place)
    yield Diagnosis(name="tools", level=Level.error, what=what, mend=mend)


def contents(exam: Exam) -> Iterator[Diagnosis]:
    """What a checkout of Becket's has not, and a person's may have."""
    found = exam.facts.contents()
    if found.submodules:
        what = words.SUBMODULES_NONE.format(names=", ".join(found.submodules))
        yield Diagnosis(name="contents", level=Level.warn, what=what, mend=words.SUBMODULES_MEND)
    if found.large:
        names = ", ".join(found.large[:MOST_NAMED]) + (", ..." if len(found.large) > MOST_NAMED else "")
        what = (words.LFS_ABSENT if found.lfs else words.LFS_NONE).format(names=names)
        mend = words.LFS_MEND if found.lfs else words.install("git-lfs")
        yield Diagnosis(name="contents", level=Level.warn, what=what, mend=mend)
    if not found.submodules and not found.large:
        yield Diagnosis(name="contents", level=Level.ok, what=words.CONTENTS_OK)
