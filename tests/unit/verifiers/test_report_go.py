"""The event stream of `go test -json`, from go 1.19 and go 1.27."""

from __future__ import annotations

import json

import pytest
from report_stage import by_id, outcomes, read, stored

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode

CALC = "example.com/calc/calc"


def stream(*events: dict[str, object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize("name", ["red", "new-red"])
def test_tests_subtests_and_packages(name: str) -> None:
    report = read(f"go/{name}.txt")
    cases = by_id(report)
    assert cases[f"{CALC}::TestAdd"].message == "Add(1, 2) = -1, want 3"
    assert cases[f"{CALC}::TestAdd"].place == "calc/calc_test.go:11"
    assert cases[f"{CALC}::TestTable/日本語"].message == "not 日本語"
    assert cases[f"{CALC}::TestTable/日本語"].place == "calc/calc_test.go:20"
    assert cases[f"{CALC}::TestTable"].group
    assert cases[f"{CALC}::TestSkip"].outcome is CaseOutcome.skipped
    assert cases[f"{CALC}::ExampleAdd"].message == "got:\n-1\nwant:\n3"
    assert cases["example.com/calc/empty"].outcome is CaseOutcome.skipped
    assert report.tests_run == 10
    assert report.problems == ()


@pytest.mark.parametrize("name", ["red", "new-red"])
def test_a_pass_that_a_test_prints_takes_no_failure_back(name: str) -> None:
    """L21: `--- PASS: TestAdd` on standard output became a pass event in older versions."""
    assert b"--- PASS: TestAdd" in stored(f"go/{name}.txt")
    assert outcomes(read(f"go/{name}.txt"))[f"{CALC}::TestAdd"] is CaseOutcome.failed


@pytest.mark.parametrize("name", ["broken", "new-broken"])
def test_a_package_that_does_not_build_fails_as_a_whole(name: str) -> None:
    report = read(f"go/{name}.txt")
    package = by_id(report)["example.com/calc/broken"]
    assert package.outcome is CaseOutcome.error
    assert package.place == "broken/broken.go:3"
    assert "cannot use" in package.message
    assert outcomes(report)["example.com/calc/green::TestOne"] is CaseOutcome.passed


@pytest.mark.parametrize("name", ["panic", "new-panic"])
def test_a_panic_names_its_line_in_the_tree(name: str) -> None:
    case = by_id(read(f"go/{name}.txt"))["example.com/calc/panics::TestPanics"]
    assert case.message.startswith("panic: assignment to entry in nil map")
    assert case.place == "panics/panics_test.go:9"


@pytest.mark.parametrize("name", ["timeout", "new-timeout"])
def test_a_test_without_an_end_is_an_error(name: str) -> None:
    case = by_id(read(f"go/{name}.txt"))["example.com/calc/timeout::TestHangs"]
    assert case.outcome is CaseOutcome.error
    assert "test timed out after 1s" in case.message


def test_a_failed_test_counts_although_its_package_passed() -> None:
    """L11: TestMain may throw the result away and exit with 0."""
    assert outcomes(read("go/lies.txt")) == {"example.com/calc/prints::TestLies": CaseOutcome.failed}


@pytest.mark.parametrize("name", ["green", "cached", "new-green", "new-cached", "mixed", "count2"])
def test_green_streams(name: str) -> None:
    report = read(f"go/{name}.txt")
    assert report.problems == ()
    assert report.failing == ()
    assert report.tests_run == 2


@pytest.mark.parametrize("name", ["setup", "text"])
def test_no_event_is_a_missing_report(name: str) -> None:
    assert [problem.code for problem in read(f"go/{name}.txt").problems] == [ProblemCode.missing]


def test_benchmarks_are_no_tests() -> None:
    assert read("go/bench.txt").tests_run == 0


def test_a_package_without_an_end_is_incomplete() -> None:
    events = stream({"Action": "run", "Package": "p", "Test": "T"}, {"Action": "pass", "Package": "p", "Test": "T"})
    assert [problem.code for problem in read("go/", events).problems] == [ProblemCode.incomplete]


def test_an_event_after_other_text_on_its_line_is_read() -> None:
    events = stream({"Action": "pass", "Package": "p", "Test": "T"}, {"Action": "pass", "Package": "p"})
    report = read("go/", b"warning without a line break" + events)
    assert outcomes(report) == {"p::T": CaseOutcome.passed}


def test_a_cut_event_is_a_problem() -> None:
    events = stream({"Action": "pass", "Package": "p", "Test": "T"}, {"Action": "pass", "Package": "p"})
    report = read("go/", events + b'{"Action":"fail","Package":"p","Te')
    assert [problem.code for problem in report.problems] == [ProblemCode.malformed]


def test_strange_values_do_not_raise() -> None:
    events = [
        {"Action": 5},
        {"Action": "pass", "Package": ["p"]},
        {"Action": "output", "Package": "p", "Test": "\ud800", "Output": {"a": 1}},
        {"Action": "fail", "Package": "p", "Test": "\ud800", "Elapsed": "long"},
        {"Action": "pass", "Package": "p", "Elapsed": 1e300},
    ]
    report = read("go/", stream(*events) + b'{"Action":' + b"[" * 100_000)
    assert by_id(report)["p::?"].outcome is CaseOutcome.failed
