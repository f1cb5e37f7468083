"""Checks of Becket's own refs in the repository: are they whole, and do they hold too much?"""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.contract.base import show_size

MUCH = 1_000_000_000


def refs(exam: Exam) -> Iterator[Diagnosis]:
    found = exam.facts.refs()
    for ref in found.broken:
        what = words.REF_BROKEN.format(sha=ref.sha[:12], missing=ref.missing)
        yield Diagnosis(name="refs", level=Level.error, what=what, mend=words.REF_MEND, where=ref.ref)
    if found.bytes > MUCH:
        what = words.RESCUES_MUCH.format(count=found.rescues, size=show_size(found.bytes))
        yield Diagnosis(name="refs", level=Level.warn, what=what, mend=words.RESCUES_MEND)
    elif not found.broken:
        yield Diagnosis(name="refs", level=Level.ok, what=words.REFS_OK)
