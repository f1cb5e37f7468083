"""The proof that every test ran."""

from __future__ import annotations

from report_stage import read

from becket.parts.gates.ports.report import CaseOutcome, TestCase, TestReport
from becket.parts.gates.reports.compare import every_id_ran


def report(**outcomes: str) -> TestReport:
    return TestReport(
        format="x", cases=tuple(TestCase(id=name, outcome=CaseOutcome(outcome)) for name, outcome in outcomes.items())
    )


def test_every_id_must_run_unskipped() -> None:
    after = report(a="passed", b="skipped", c="failed", d="xfailed")
    missing = every_id_ran(["b", "z", "a", "c", "d", "a"], after)
    assert missing == (("z",), ("b",))
    assert not missing.none
    assert every_id_ran(["a", "c"], after).none


def test_a_report_that_only_counts_proves_no_id() -> None:
    wanted = {case.id for case in read("pytest/green-v.txt").executed}
    assert set(every_id_ran(wanted, read("pytest/green.txt")).missing) == wanted
