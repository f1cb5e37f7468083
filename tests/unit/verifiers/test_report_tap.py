"""TAP 12 to 14 from four harnesses."""

from __future__ import annotations

import pytest
from report_stage import by_id, outcomes, read

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode


def codes(text: str) -> list[ProblemCode]:
    return [problem.code for problem in read("tap/", text.encode()).problems]


@pytest.mark.parametrize("name", ["node-red", "node-all"])
def test_node(name: str) -> None:
    report = read(f"tap/{name}.txt")
    cases = by_id(report)
    assert cases["adds"].place == "test/calc.test.js:7"
    assert cases["adds"].message == "the sum\n\n-1 !== 3"
    assert cases["adds"].seconds == pytest.approx(0.003, abs=0.002)
    assert cases["texts > 日本語"].outcome is CaseOutcome.failed
    assert cases["texts > a # b"].outcome is cases["texts > a \\ b"].outcome is CaseOutcome.passed
    assert cases["texts"].group
    assert cases["skipped"].outcome is CaseOutcome.skipped
    assert cases["todo fails"].outcome is CaseOutcome.xfailed
    assert cases["todo passes"].outcome is CaseOutcome.xpassed
    assert cases["broken hook > never runs"].outcome is CaseOutcome.error
    assert cases["broken hook"].message == "no pump in the house"
    assert cases["times out"].outcome is CaseOutcome.error
    assert cases["shelf > deep > is deep #2"].outcome is CaseOutcome.passed
    assert cases["empty"].group
    assert report.problems == ()


def test_a_file_of_node_that_ends_the_process_is_no_test() -> None:
    """L11: `process.exit(0)` in a test file makes node report the file itself as one passed test."""
    assert read("tap/node-exit.txt").tests_run == 0


def test_a_file_that_does_not_parse_fails() -> None:
    assert by_id(read("tap/node-all.txt"))["test/syntax.test.js"].outcome is CaseOutcome.failed


def test_version_14() -> None:
    cases = by_id(read("tap/tap14.txt"))
    assert cases["adds > the sum"].place == "taps/a.test.js:3"
    assert cases["adds"].seconds == pytest.approx(0.018937)
    assert cases["later"].outcome is CaseOutcome.xpassed


@pytest.mark.parametrize("name", ["mocha", "mocha13"])
def test_mocha_with_and_without_diagnostics(name: str) -> None:
    case = by_id(read(f"tap/{name}.txt"))["shelf puts"]
    assert case.place == "m.test.js:3"
    assert "1 !== 2" in case.message


def test_perl() -> None:
    assert outcomes(read("tap/perl.txt")) == {
        "fine": CaseOutcome.passed,
        "the sum # with a hash": CaseOutcome.failed,
        "test 3": CaseOutcome.skipped,
        "not yet": CaseOutcome.xfailed,
        "deep > test 1": CaseOutcome.passed,
        "deep > letters": CaseOutcome.failed,
    }
    assert by_id(read("tap/perl.txt"))["deep > letters"].place == "pl/a.t:6"


def test_bail_out_is_a_problem() -> None:
    assert ProblemCode.crashed in {problem.code for problem in read("tap/bail.txt").problems}


def test_buffered_subtests_belong_to_the_point_before_them() -> None:
    text = "ok 1 - parent {\n    ok 1 - one\n    not ok 2 - two\n    1..2\n}\n1..1\n"
    report = read("tap/", text.encode())
    assert outcomes(report) == {"parent > one": CaseOutcome.passed, "parent > two": CaseOutcome.failed}
    assert report.problems == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1..3\nok 1\nok 2\n", [ProblemCode.mismatch]),
        ("ok 1\n1..2\n", [ProblemCode.mismatch]),
        ("ok 1\n", [ProblemCode.incomplete]),
        ("ok 1\n    ok 1 - deep\n1..1\n", [ProblemCode.incomplete, ProblemCode.mismatch]),
        ("1..1\nnot ok 1 - a\n  ---\n  error: x\n", [ProblemCode.incomplete]),
        ("1..1\nok 1\n1..1\n", [ProblemCode.mismatch]),
        ("    1..2\n    ok 1 - a\nok 1 - parent\n1..1\n", [ProblemCode.mismatch]),
        ("hello\n", [ProblemCode.missing]),
        ("", [ProblemCode.missing]),
    ],
)
def test_plans_are_held(text: str, expected: list[ProblemCode]) -> None:
    assert codes(text) == expected


def test_a_skipped_file_ran_no_test() -> None:
    report = read("tap/", b"1..0 # SKIP no pump\n")
    assert report.tests_run == 0
    assert report.problems == ()


def test_endless_nesting_is_a_problem() -> None:
    assert ProblemCode.malformed in codes("".join("    " * depth + "ok 1\n" for depth in range(100, 0, -1)) + "1..1\n")
