"""What a gate step's tests said: cases with stable ids, and what is wrong with the report itself.

The text in these records comes from the step and is untrusted; whoever shows or stores it redacts it first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from becket.kernel.contract.base import Record
from becket.kernel.contract.text import cap_text

MESSAGE_CAP = 1_000
EXCERPT_CAP = 4_000


Message = Annotated[str, AfterValidator(lambda text: cap_text(text, MESSAGE_CAP))]
Excerpt = Annotated[str, AfterValidator(lambda text: cap_text(text, EXCERPT_CAP))]


class CaseOutcome(StrEnum):
    """How one test ended. `error` is a test that could not be judged: set-up, crash, timeout, build."""

    passed = "passed"
    failed = "failed"
    error = "error"
    skipped = "skipped"
    xfailed = "xfailed"
    xpassed = "xpassed"

    @property
    def bad(self) -> bool:
        return self in (CaseOutcome.failed, CaseOutcome.error)

    @property
    def held(self) -> bool:
        """Did the test run, and did everything it asserts hold?"""
        return self in (CaseOutcome.passed, CaseOutcome.xpassed)


class TestCase(Record):
    """One test of a step. `group` marks a container (a file, a package, a suite) whose result is that of its tests."""

    __test__: ClassVar[bool] = False  # its name would make pytest collect it

    id: str
    outcome: CaseOutcome
    seconds: float | None = None
    message: Message = ""
    file: str | None = None
    line: int | None = None
    excerpt: Excerpt = ""
    defined_in: str | None = None  # the test's own file, where the report tells it; `file` is where it failed
    group: bool = False

    @property
    def place(self) -> str:
        if self.file is None:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class ProblemCode(StrEnum):
    """What can be wrong with a report itself."""

    missing = "missing"
    malformed = "malformed"
    incomplete = "incomplete"
    crashed = "crashed"
    mismatch = "mismatch"
    too_large = "too_large"


class Problem(Record):
    """Why a report cannot be believed as it stands. A report with a problem is never green."""

    code: ProblemCode
    text: Message

    def __str__(self) -> str:
        return self.text


class TestReport(Record):
    """All cases of one step, in the order of the report; ids are unique.

    Some outputs only count the tests that passed or were skipped: `unnamed_passed` and `unnamed_skipped`.
    """

    __test__: ClassVar[bool] = False

    format: str
    cases: tuple[TestCase, ...] = ()
    problems: tuple[Problem, ...] = ()
    unnamed_passed: int = Field(default=0, ge=0)
    unnamed_skipped: int = Field(default=0, ge=0)

    @property
    def executed(self) -> tuple[TestCase, ...]:
        """The cases that ran, containers included."""
        return tuple(case for case in self.cases if case.outcome is not CaseOutcome.skipped)

    @property
    def failing(self) -> tuple[TestCase, ...]:
        return tuple(case for case in self.cases if case.outcome.bad)

    @property
    def tests_run(self) -> int:
        """How many tests were executed, named or not; containers do not count."""
        return sum(not case.group for case in self.executed) + self.unnamed_passed

    @property
    def names_every_test(self) -> bool:
        """Whether ids can prove what ran; a report that only counts its passed tests cannot."""
        return self.unnamed_passed == 0 and self.unnamed_skipped == 0

    def count(self, outcome: CaseOutcome) -> int:
        """Tests of this outcome, without containers."""
        named = sum(case.outcome is outcome and not case.group for case in self.cases)
        unnamed = {CaseOutcome.passed: self.unnamed_passed, CaseOutcome.skipped: self.unnamed_skipped}
        return named + unnamed.get(outcome, 0)


class Color(StrEnum):
    """What one step's result says. Reruns that disagree make `undecided` out of it, elsewhere."""

    green = "green"
    red = "red"


class RedCode(StrEnum):
    """Why a step is red."""

    failing = "failing"
    bad_report = "bad_report"
    no_report = "no_report"
    no_tests = "no_tests"
    too_few_tests = "too_few_tests"
    crashed = "crashed"
    unexplained = "unexplained"


class RedReason(Record):
    code: RedCode
    text: Message

    def __str__(self) -> str:
        return self.text
