"""Two reports side by side, and the proof that every test ran."""

from __future__ import annotations

from report_stage import read, stored

from becket.parts.gates.ports.report import Outcome, TestCase, TestReport
from becket.parts.gates.reports.compare import Comparison, compare, every_id_ran


def report(**outcomes: str) -> TestReport:
    return TestReport(
        format="x", cases=tuple(TestCase(id=name, outcome=Outcome(outcome)) for name, outcome in outcomes.items())
    )


def test_each_kind_of_change() -> None:
    before = report(a="failed", b="passed", c="passed", d="passed", e="error", f="passed", g="skipped", h="failed")
    after = report(a="passed", b="failed", d="skipped", e="xfailed", f="xfailed", g="failed", h="skipped", n="failed")
    assert compare(before, after) == Comparison(
        fixed=("a",),
        broken=("b", "f", "g"),
        vanished=("c",),
        appeared=("n",),
        newly_skipped=("d", "h"),
        excused=("e",),
    )


def test_an_expected_failure_fixes_nothing() -> None:
    """L21: marking the failing test as an expected failure is no repair."""
    comparison = compare(report(a="failed"), report(a="xfailed"))
    assert comparison.fixed == ()
    assert comparison.excused == ("a",)


def test_nothing_changed() -> None:
    assert compare(read("go/red.txt"), read("go/red.txt")) == Comparison()


def test_a_package_that_builds_again_is_fixed() -> None:
    before = read("go/broken.txt")
    after = read("go/green.txt", stored("go/green.txt") + stored("go/green.txt").replace(b"/green", b"/broken"))
    assert compare(before, after).fixed == ("example.com/calc/broken",)


def test_a_file_that_can_be_collected_again_is_fixed() -> None:
    after = read("pytest/", stored("pytest/green-v.txt").replace(b"tests/deep/test_more.py", b"tests2/test_import.py"))
    assert compare(read("pytest/collect.txt"), after).fixed == ("tests2/test_import.py",)


def test_every_id_must_run_unskipped() -> None:
    after = report(a="passed", b="skipped", c="failed", d="xfailed")
    missing = every_id_ran(["b", "z", "a", "c", "d", "a"], after)
    assert missing == (("z",), ("b",))
    assert not missing.none
    assert every_id_ran(["a", "c"], after).none


def test_a_report_that_only_counts_proves_no_id() -> None:
    wanted = read("pytest/green-v.txt").executed_ids
    assert set(every_id_ran(wanted, read("pytest/green.txt")).missing) == wanted
