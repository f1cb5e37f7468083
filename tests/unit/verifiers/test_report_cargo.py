"""The text of `cargo test`."""

from __future__ import annotations

import pytest
from report_stage import by_id, outcomes, read, stored

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode

LIB = "calc:src/lib.rs::tests::"


@pytest.mark.parametrize("name", ["red", "backtrace", "color", "nocapture"])
def test_units_integration_and_documentation(name: str) -> None:
    report = read(f"cargo/{name}.txt")
    cases = by_id(report)
    assert cases[f"{LIB}adds"].outcome is CaseOutcome.failed
    assert cases[f"{LIB}adds"].message == "assertion `left == right` failed: sum of 1 and 2\nleft: -1\nright: 3"
    assert cases[f"{LIB}adds"].place == "src/lib.rs:31"
    assert cases[f"{LIB}result"].message == 'Error: "no pump"'
    assert cases[f"{LIB}pump"].outcome is CaseOutcome.skipped
    assert cases[f"{LIB}panics"].outcome is CaseOutcome.passed
    assert cases[f"{LIB}should_but_does_not"].outcome is CaseOutcome.failed
    assert cases[f"{LIB}größe"].outcome is CaseOutcome.passed
    assert cases["api:tests/api.rs::api_adds"].place == "tests/api.rs:4"
    assert report.tests_run == 11
    assert report.problems == ()


@pytest.mark.parametrize("name", ["red", "backtrace", "color", "nocapture", "stdout"])
def test_what_a_test_prints_is_no_result(name: str) -> None:
    assert not any("forged" in case.id for case in read(f"cargo/{name}.txt").cases)


def test_documentation_tests_keep_their_ids_in_any_order_and_when_lines_move() -> None:
    expected = {
        "calc:doc::src/lib.rs - add": CaseOutcome.failed,
        "calc:doc::src/lib.rs - add #2": CaseOutcome.passed,
        "calc:doc::src/lib.rs - add #3": CaseOutcome.skipped,
        "calc:doc::src/lib.rs - add #4": CaseOutcome.passed,
    }
    for name in ("red", "backtrace", "color"):
        found = outcomes(read(f"cargo/{name}.txt"))
        assert {test: found[test] for test in found if ":doc::" in test} == expected
    moved = stored("cargo/red.txt")
    for line in (17, 13, 9, 5):
        moved = moved.replace(f"(line {line})".encode(), f"(line {line + 3})".encode())
    assert set(outcomes(read("cargo/red.txt", moved))) == set(outcomes(read("cargo/red.txt")))


def test_quiet_output_names_failures_and_counts_the_rest() -> None:
    report = read("cargo/q.txt")
    assert len(report.failing) == 5
    assert (report.unnamed_passed, report.unnamed_skipped) == (6, 2)
    assert report.problems == ()


def test_a_build_that_fails_is_a_case_and_one_that_works_passes() -> None:
    build = by_id(read("cargo/compile.txt"))["build"]
    assert build.outcome is CaseOutcome.error
    assert (build.message, build.place) == ("cannot add `&str` to `i32`", "src/lib.rs:2")
    assert outcomes(read("cargo/green.txt"), groups=True) == {"build": CaseOutcome.passed}


@pytest.mark.parametrize(("name", "test"), [("abort", "aborts"), ("exit", "b_exits")])
def test_a_binary_that_breaks_off_is_a_problem_and_its_test_an_error(name: str, test: str) -> None:
    """L11: `process::exit(0)` inside a test leaves exit code 0 behind."""
    report = read(f"cargo/{name}.txt")
    assert [problem.code for problem in report.problems] == [ProblemCode.incomplete]
    assert by_id(report)[f"calc:src/lib.rs::{test}"].outcome is CaseOutcome.error


def test_no_test_ran() -> None:
    assert read("cargo/none.txt").tests_run == 0


def test_output_of_something_else_is_a_missing_report() -> None:
    report = read("cargo/", b"error: no test target named `x`\n")
    assert [problem.code for problem in report.problems] == [ProblemCode.missing]
    assert "no test target" in report.problems[0].text


def test_a_harness_in_a_failing_tests_output_does_not_begin_a_new_binary() -> None:
    inner = b"running 1 test\ntest inner ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n"
    output = (
        b"running 1 test\ntest outer ... FAILED\n\nfailures:\n\n---- outer stdout ----\n" + inner + b"\nfailures:\n"
        b"    outer\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
    )
    assert outcomes(read("cargo/", output)) == {"binary 1::outer": CaseOutcome.failed}
