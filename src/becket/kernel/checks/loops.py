"""Check of the loops: what lint says about each spec."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.contract.errors import InvalidDocument


def lint(exam: Exam) -> Iterator[Diagnosis]:
    if isinstance(exam.loaded, InvalidDocument):  # loops cannot be read without becket.yaml, whose check tells of it
        return
    try:
        findings = tuple(exam.facts.lint_loops())
    except InvalidDocument as error:
        findings = error.findings
    for absent in exam.facts.absent_branches() if not findings else ():
        what, where = words.BRANCH_ABSENT.format(branch=absent.message), f"{absent.file}:{absent.line}:{absent.column}"
        mend = words.BRANCH_ABSENT_MEND.format(branch=absent.message)
        yield Diagnosis(name="loops", level=Level.warn, what=what, mend=mend, where=where)
    for found in findings:
        what = f"{found.rule}: {found.message}"
        where = f"{found.file}:{found.line}:{found.column}"
        yield Diagnosis(name="loops", level=Level.error, what=what, mend=found.fix, where=where)
    if not findings:
        yield Diagnosis(name="loops", level=Level.ok, what=words.LOOPS_OK)
