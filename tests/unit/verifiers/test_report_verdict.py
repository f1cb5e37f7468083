"""The colour of a step: every way a gate once could not fail is red here (L11)."""

from __future__ import annotations

import pytest
from report_stage import read

from becket.parts.gates.ports.report import CaseOutcome, Color, Problem, ProblemCode, RedCode, TestCase, TestReport
from becket.parts.gates.reports.formats import parse
from becket.parts.gates.reports.verdict import verdict_of

PASSED = TestReport(format="x", cases=(TestCase(id="a", outcome=CaseOutcome.passed),))
FAILED = TestReport(format="x", cases=(TestCase(id="a", outcome=CaseOutcome.failed),))
SKIPPED = TestReport(format="x", cases=(TestCase(id="a", outcome=CaseOutcome.skipped),))
GROUP = TestReport(format="x", cases=(TestCase(id="a", outcome=CaseOutcome.passed, group=True),))
TORN = TestReport(
    format="x", cases=PASSED.cases, problems=(Problem(code=ProblemCode.incomplete, text="it breaks off"),)
)
NONE = TestReport(format="x", problems=(Problem(code=ProblemCode.missing, text="no report"),))


@pytest.mark.parametrize(
    ("report", "exit_code", "min_tests", "codes"),
    [
        (PASSED, 0, 0, []),
        (PASSED, 0, 1, []),
        (PASSED, 0, 2, [RedCode.too_few_tests]),
        (PASSED, 1, 0, [RedCode.unexplained]),
        (PASSED, None, 0, [RedCode.crashed]),
        (PASSED, -11, 0, [RedCode.crashed]),
        (PASSED, 139, 0, [RedCode.crashed]),
        (FAILED, 1, 0, [RedCode.failing]),
        (FAILED, 0, 0, [RedCode.failing]),
        (SKIPPED, 0, 0, [RedCode.no_tests]),
        (GROUP, 0, 0, [RedCode.no_tests]),
        (TestReport(format="x"), 0, 0, [RedCode.no_tests]),
        (TestReport(format="x"), 5, 0, [RedCode.no_tests]),
        (TestReport(format="x", unnamed_passed=3), 0, 3, []),
        (TORN, 0, 0, [RedCode.bad_report]),
        (NONE, 0, 0, [RedCode.no_report, RedCode.no_tests]),
    ],
)
def test_verdicts(report: TestReport, exit_code: int | None, min_tests: int, codes: list[RedCode]) -> None:
    verdict = verdict_of(report, exit_code, min_tests)
    assert [reason.code for reason in verdict.reasons] == codes
    assert verdict.color is (Color.red if codes else Color.green)


def test_a_color_and_its_reasons_unpack() -> None:
    color, reasons = verdict_of(FAILED, 1, 0)
    assert color is Color.red
    assert str(reasons[0]) == "1 of 1 fails: a"


def test_a_plain_step_follows_its_exit_code() -> None:
    assert verdict_of(parse("plain", b"", lambda _: None, exit_code=0), 0, 0).color is Color.green
    color, (reason,) = verdict_of(parse("plain", b"", lambda _: None, exit_code=3), 3, 0)
    assert (color, str(reason)) == (Color.red, "exit code 3, no tests counted")


@pytest.mark.parametrize(
    "name",
    ["pytest/osexit.txt", "go/lies.txt", "cargo/exit.txt", "tap/node-exit.txt"],
)
def test_real_steps_that_end_with_exit_code_0_and_are_red(name: str) -> None:
    """Each of these came from a command that really ended with 0."""
    assert verdict_of(read(name), 0, 1).color is Color.red


@pytest.mark.parametrize(
    "name",
    [
        "pytest/green.txt", "pytest/green-v.txt", "pytest/green-rA.txt", "junit/pytest-green.xml",
        "junit/jest-green.xml", "junit/node-green.xml", "go/green.txt", "go/cached.txt", "go/mixed.txt",
        "go/new-green.txt", "cargo/green.txt", "tap/node-green.txt",
    ],
)  # fmt: skip
def test_real_green_steps_are_green(name: str) -> None:
    assert verdict_of(read(name), 0, 1) == (Color.green, ())
