"""What colour a step is. Zero tests, a crash, a missing report and a lie of the exit code are all red (L11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from becket.parts.gates.ports.report import Color, ProblemCode, RedCode, RedReason, TestReport
from becket.parts.gates.reports.formats import PLAIN_ID

MOST_NAMES = 5


class ReportVerdict(NamedTuple):
    """Green has no reasons; red has at least one."""

    color: Color
    reasons: tuple[RedReason, ...]


def verdict_of(report: TestReport, exit_code: int | None, min_tests: int) -> ReportVerdict:
    """Judge one step by its report and its exit code; None is a command that was stopped before it ended."""
    reasons = tuple(_reasons(report, exit_code, min_tests))
    if exit_code != 0 and not reasons:
        text = f"the command ended with exit code {exit_code}, although no test failed"
        reasons = (RedReason(code=RedCode.unexplained, text=text),)
    return ReportVerdict(Color.red if reasons else Color.green, reasons)


def _reasons(report: TestReport, exit_code: int | None, min_tests: int) -> Iterator[RedReason]:
    crash = _crash(exit_code)
    if crash:
        yield RedReason(code=RedCode.crashed, text=crash)
    for problem in report.problems:
        missing = problem.code is ProblemCode.missing
        yield RedReason(code=RedCode.no_report if missing else RedCode.bad_report, text=problem.text)
    if report.failing:
        yield RedReason(code=RedCode.failing, text=_failing(report))
    if report.tests_run == 0:
        yield RedReason(code=RedCode.no_tests, text="no test was executed")
    elif report.tests_run < min_tests:
        text = f"{report.tests_run} tests were executed, and the step asks for at least {min_tests}"
        yield RedReason(code=RedCode.too_few_tests, text=text)


def _failing(report: TestReport) -> str:
    if report.format == "plain":
        return f"{report.failing[0].message}, no tests counted"
    names = [case.id for case in report.failing if not case.group] or [case.id for case in report.failing]
    if names == [PLAIN_ID]:  # the command itself: it has no tests
        return report.failing[0].message or "it fails"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    verb = "fails" if len(names) == 1 else "fail"
    return f"{len(names)} of {max(report.tests_run, len(names))} {verb}: {', '.join(names[:MOST_NAMES])}{more}"


def _crash(exit_code: int | None) -> str:
    if exit_code is None:
        return "the command was stopped before it ended"
    signal = -exit_code if exit_code < 0 else exit_code - 128 if 128 < exit_code <= 192 else 0
    return f"the command was ended by signal {signal}" if signal else ""
