"""pytest's terminal output, as pytest really writes it."""

from __future__ import annotations

import pytest
from report_stage import by_id, outcomes, read, stored

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode

FAILED = {
    "tests/deep/test_more.py::Case::test_diff",
    "tests/test_calc.py::test_add",
    r"tests/test_calc.py::test_text[\u65e5\u672c\u8a9e]",
    "tests/test_calc.py::test_boom",
    "tests/test_calc.py::test_xpass_strict",
    "tests/test_calc.py::TestShelf::test_put",
}
ERRORS = {"tests/test_calc.py::test_setup_error", "tests/test_calc.py::test_teardown_error"}
EVERY_WAY = ["default", "q", "v", "rA", "color", "short", "no-tb", "line", "xdist", "xdist-v"]


@pytest.mark.parametrize("way", EVERY_WAY)
def test_failing_tests_are_named_however_pytest_is_told_to_write(way: str) -> None:
    report = read(f"pytest/{way}.txt")
    found = outcomes(report)
    assert {name for name, outcome in found.items() if outcome is CaseOutcome.failed} == FAILED
    assert {name for name, outcome in found.items() if outcome is CaseOutcome.error} == ERRORS
    assert report.problems == ()


@pytest.mark.parametrize("way", ["default", "q", "v", "rA", "color", "short", "xdist", "xdist-v"])
def test_assertion_and_place_come_from_the_traceback(way: str) -> None:
    """L15: test name, assertion and file:line."""
    cases = by_id(read(f"pytest/{way}.txt"))
    added = cases["tests/test_calc.py::test_add"]
    assert added.message.startswith("assert -1 == 3")
    assert added.place == "tests/test_calc.py:10"
    assert cases["tests/test_calc.py::test_boom"].place == "calc.py:6"
    assert cases["tests/test_calc.py::test_setup_error"].message == "OSError: no pump in the house"
    assert "def test_add" in added.excerpt or way == "short"


@pytest.mark.parametrize("way", EVERY_WAY)
def test_what_a_test_prints_is_no_result(way: str) -> None:
    assert "tests/test_calc.py::test_fake" not in by_id(read(f"pytest/{way}.txt"))


@pytest.mark.parametrize("way", ["v", "xdist-v"])
def test_verbose_output_names_every_test(way: str) -> None:
    report = read(f"pytest/{way}.txt")
    found = outcomes(report)
    assert len(found) == 21
    assert report.names_every_test
    assert found["tests/test_calc.py::test_text[1 - FAILED]"] is CaseOutcome.passed
    assert found["tests/test_calc.py::test_text[a]b[]"] is CaseOutcome.passed
    assert found["tests/test_calc.py::test_skipped"] is CaseOutcome.skipped
    assert found["tests/test_calc.py::test_xfail"] is CaseOutcome.xfailed
    assert found["tests/test_calc.py::test_xpass"] is CaseOutcome.xpassed


def test_the_full_summary_names_passed_tests_and_counts_skipped_ones() -> None:
    report = read("pytest/rA.txt")
    assert outcomes(report)["tests/test_calc.py::test_text[1 - FAILED]"] is CaseOutcome.passed
    assert (report.unnamed_passed, report.unnamed_skipped) == (0, 2)


def test_quiet_output_only_counts_what_passed() -> None:
    report = read("pytest/q.txt")
    assert (report.unnamed_passed, report.unnamed_skipped) == (10, 2)
    assert not report.names_every_test


@pytest.mark.parametrize(("way", "unnamed"), [("green", 1), ("green-v", 0), ("green-rA", 0)])
def test_a_green_run_is_whole(way: str, unnamed: int) -> None:
    report = read(f"pytest/{way}.txt")
    assert report.tests_run == 1
    assert report.unnamed_passed == unnamed
    assert report.problems == ()


def test_a_file_that_cannot_be_collected_fails_as_a_whole() -> None:
    report = read("pytest/collect.txt")
    cases = by_id(report)
    assert cases["tests2/test_import.py"].outcome is CaseOutcome.error
    assert cases["tests2/test_import.py"].message == "ModuleNotFoundError: No module named 'no_such_module'"
    assert cases["tests2/test_syntax.py"].place == "tests2/test_syntax.py:1"
    assert report.tests_run == 0


def test_a_file_whose_tests_run_stands_as_passed() -> None:
    assert outcomes(read("pytest/green-v.txt"), groups=True) == {"tests/deep/test_more.py": CaseOutcome.passed}


@pytest.mark.parametrize(
    ("way", "code", "words"),
    [
        ("internal", ProblemCode.crashed, "plugin broke"),
        ("conftest", ProblemCode.incomplete, "no_such_plugin"),
        ("interrupt", ProblemCode.incomplete, "KeyboardInterrupt"),
        ("crash", ProblemCode.incomplete, "Segmentation fault"),
        ("osexit", ProblemCode.incomplete, "test_osexit"),
        ("x", ProblemCode.incomplete, "stopping after 1 failures"),
    ],
)
def test_a_session_that_broke_off_is_a_problem_that_says_why(way: str, code: ProblemCode, words: str) -> None:
    """L11: a crashed gate must not pass; `os._exit(0)` inside a test leaves exit code 0 behind."""
    problems = read(f"pytest/{way}.txt").problems
    assert [problem.code for problem in problems] == [code]
    assert words in problems[0].text


def test_a_crashed_worker_of_xdist_names_the_test_it_ran() -> None:
    case = by_id(read("pytest/xdist-crash.txt"))["tests3/test_crash.py::test_n[3]"]
    assert case.outcome is CaseOutcome.failed
    assert "crashed while running" in case.message


def test_a_pytest_that_a_test_ran_does_not_end_the_session() -> None:
    """The output of an inner pytest, shown under a passing test, is that test's own text."""
    inner = "=== test session starts ===\ncollected 1 item\n=== 1 passed in 0.01s ===\n"
    output = (
        "=== test session starts ===\ncollected 2 items\n\n"
        "a.py::test_one PASSED [ 50%]\na.py::test_two FAILED [100%]\n\n"
        "=== FAILURES ===\n___ test_two ___\nE   assert 0\n\na.py:3: AssertionError\n"
        f"--- Captured stdout call ---\n{inner}=== PASSES ===\n___ test_one ___\n--- Captured stdout call ---\n{inner}"
        "=== short test summary info ===\nFAILED a.py::test_two - assert 0\n=== 1 failed, 1 passed in 0.02s ===\n"
    )
    report = read("pytest/", output.encode())
    assert outcomes(report) == {"a.py::test_one": CaseOutcome.passed, "a.py::test_two": CaseOutcome.failed}
    assert report.tests_run == 2


def test_two_sessions_in_one_step_both_count() -> None:
    """L11: only the last result counted."""
    report = read("pytest/", stored("pytest/v.txt") + b"\n" + stored("pytest/green-v.txt"))
    assert {case.id for case in report.failing if not case.group} == FAILED | ERRORS
    assert report.problems == ()


def test_fewer_results_than_collected_tests_is_a_problem() -> None:
    output = b"=== test session starts ===\ncollected 5 items\n\na.py ..\n\n=== 2 passed in 0.02s ===\n"
    assert [problem.code for problem in read("pytest/", output).problems] == [ProblemCode.incomplete]


def test_failures_without_any_name_are_a_problem() -> None:
    assert [problem.code for problem in read("pytest/", b"F.\n1 failed, 1 passed in 0.02s\n").problems] == [
        ProblemCode.mismatch
    ]


def test_a_traceback_names_the_test_where_no_summary_does() -> None:
    output = (
        b"F.\n=== FAILURES ===\n___ TestShelf.test_put ___\n\n    def test_put(self):\n"
        b">       assert 0\nE       assert 0\n"
        b"\ntests/test_calc.py:69: AssertionError\n1 failed, 1 passed in 0.02s\n"
    )
    report = read("pytest/", output)
    assert outcomes(report) == {"tests/test_calc.py::TestShelf::test_put": CaseOutcome.failed}
    assert report.problems == ()
