"""What the doctor looks at: does git know the remote?"""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks.configuration import place_of
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.parts.promote.section import REMOTE

NONE = "no remote is followed"
THERE = "git knows the remote {name}"
UNKNOWN = "git knows no remote {name}, so nothing is fetched from it or pushed to it"
UNKNOWN_MEND = "git remote add {name} URL, or correct `remote.name`{known}"


def remote(exam: Exam) -> Iterator[Diagnosis]:
    if exam.config is None:
        return
    found = exam.config.section(REMOTE)
    if found is None:
        yield Diagnosis(name="remote", level=Level.ok, what=NONE)
        return
    known = exam.facts.remotes()
    if found.name in known:
        yield Diagnosis(name="remote", level=Level.ok, what=THERE.format(name=found.name))
        return
    what = UNKNOWN.format(name=found.name)
    mend = UNKNOWN_MEND.format(name=found.name, known=f"; there is {', '.join(known)}" if known else "")
    yield Diagnosis(name="remote", level=Level.error, what=what, mend=mend, where=place_of(exam, "remote:"))
