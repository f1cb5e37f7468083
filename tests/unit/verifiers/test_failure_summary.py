"""Failure summaries: the failure is in them, and they stay small whatever the log (L15)."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_stage import all_names, read, stored

from becket.parts.gates.log_windows import CHUNK, REACH, find_windows
from becket.parts.gates.ports.report import CaseOutcome, TestCase, TestReport
from becket.parts.gates.summary import CAP, summarise

NOTHING = TestReport(format="plain")


def size(text: str) -> int:
    return len(text.encode())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pytest/q.txt", ["tests/test_calc.py::test_add", "tests/test_calc.py:10", "assert -1 == 3"]),
        (
            "junit/surefire",
            ["calc.CalcTest::adds", "src/test/java/calc/CalcTest.java:13", "expected: <3> but was: <-1>"],
        ),
        ("go/red.txt", ["calc::TestAdd", "calc/calc_test.go:11", "Add(1, 2) = -1, want 3"]),
        ("go/broken.txt", ["example.com/calc/broken", "broken/broken.go:3", "cannot use"]),
        ("cargo/red.txt", ["tests::adds", "src/lib.rs:31", "sum of 1 and 2"]),
        ("cargo/compile.txt", ["build", "src/lib.rs:2", "cannot add `&str` to `i32`"]),
        ("tap/node-red.txt", ["shelf > puts", "test/calc.test.js:29", "strictly deep-equal"]),
    ],
)
def test_name_assertion_and_place_of_every_tool(name: str, words: list[str]) -> None:
    log = stored(name) if not name.startswith("junit") else b""
    text = summarise("unit", read(name), log).text
    assert all(word in text for word in words), text


@pytest.mark.parametrize("as_file", [False, True])
def test_the_events_of_go_are_shown_as_the_text_that_they_carry(tmp_path: Path, as_file: bool) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"go: downloading x\n" + stored("go/new-red.txt"))
    text = summarise("unit", NOTHING, log if as_file else log.read_bytes()).text
    assert "go: downloading x" in text
    assert "    calc_test.go:11: Add(1, 2) = -1, want 3\n--- FAIL: TestAdd" in text
    assert '"Action"' not in text


def test_containers_do_not_repeat_what_their_tests_say() -> None:
    summary = summarise("unit", read("go/red.txt"), stored("go/red.txt"))
    assert {test.id for test in summary.tests} == {
        "example.com/calc/calc::TestAdd",
        "example.com/calc/calc::TestTable/日本語",
        "example.com/calc/calc::ExampleAdd",
    }


def test_problems_of_the_report_are_told() -> None:
    assert (
        "pytest did not come to its end" in summarise("unit", read("pytest/crash.txt"), stored("pytest/crash.txt")).text
    )


def test_many_tests_with_the_same_failure_are_told_once() -> None:
    cases = tuple(
        TestCase(id=f"t{n}", outcome=CaseOutcome.failed, message=f"no pump number {n}", file="a.py", line=3)
        for n in range(300)
    )
    summary = summarise("unit", TestReport(format="x", cases=cases), b"")
    assert len(summary.tests) == 1
    assert summary.tests[0].like == 299
    assert summary.more_tests == 0


def test_every_failure_is_counted_even_if_it_is_not_listed() -> None:
    names = [chr(97 + n % 26) * (n // 26 + 3) for n in range(500)]
    cases = tuple(TestCase(id=name, outcome=CaseOutcome.failed, message=f"broke {name}") for name in names)
    summary = summarise("unit", TestReport(format="x", cases=cases), b"")
    assert summary.failing == 500
    assert sum(1 + test.like for test in summary.tests) + summary.more_tests == 500
    assert f"and {summary.more_tests} more failing" in summary.text


def test_no_summary_exceeds_its_cap() -> None:
    names = [name for name in all_names() if not name.startswith("junit")]
    sizes = {
        (name, cap): size(summarise("unit", read(name), stored(name) * 3, cap).text)
        for name in names
        for cap in (500, 2_000, CAP)
    }
    assert len(sizes) > 150
    assert {each: found for each, found in sizes.items() if found > each[1]} == {}


def test_long_texts_of_one_test_do_not_exceed_the_cap() -> None:
    case = TestCase(id="x" * 5000, outcome=CaseOutcome.failed, message="é" * 5000, excerpt="日" * 9000)
    for cap in (1_000, CAP):
        assert size(summarise("unit", TestReport(format="x", cases=(case,)), b"error: y\n" * 9000, cap).text) <= cap


def test_a_short_log_is_shown_as_a_whole() -> None:
    summary = summarise("lint", NOTHING, b"first line\nsomething odd\nlast line\n")
    assert [excerpt.title for excerpt in summary.excerpts] == ["the whole log"]
    assert "first line\nsomething odd\nlast line" in summary.text


def test_a_long_log_without_any_mark_shows_its_end() -> None:
    log = b"".join(b"step %d was fine\n" % n for n in range(5000)) + b"goodbye\n"
    summary = summarise("lint", NOTHING, log)
    assert [excerpt.title for excerpt in summary.excerpts] == ["the end of the log"]
    assert summary.text.endswith("goodbye")


def test_windows_keep_the_lines_around_a_mark() -> None:
    log = b"".join(b"line %d\n" % n for n in range(1, 3000))
    log = log.replace(b"line 1500\n", b"AssertionError: the needle\n")
    (window,) = find_windows(log)
    assert window.line == 1496
    assert window.text.splitlines()[:5] == [
        "line 1496",
        "line 1497",
        "line 1498",
        "line 1499",
        "AssertionError: the needle",
    ]
    assert window.text.splitlines()[-1] == "line 1510"


def test_the_like_is_shown_once_and_counted() -> None:
    log = b"".join(b"2026-01-01T00:00:%02d.1Z --- FAIL: TestA (0.%02ds)\n" % (n % 60, n % 100) for n in range(5000))
    (window,) = find_windows(log)
    assert window.seen == 5000


def test_strong_marks_come_before_weak_ones() -> None:
    log = b"the pump failed to warm up\n" + b"fine\n" * 50 + b"panic: the house is on fire\n"
    assert [window.strong for window in find_windows(log)] == [True, False]


def test_names_of_failing_tests_are_marks() -> None:
    log = b"fine\n" * 3000 + b"checking test_pump now: it leaks\n" + b"fine\n" * 3000
    case = TestCase(id="a.py::test_pump", outcome=CaseOutcome.failed)
    assert "it leaks" in summarise("unit", TestReport(format="x", cases=(case,)), log).text


@pytest.mark.parametrize("shift", [-REACH - 1, -REACH, -REACH + 1, -60, -12, -1, 0, 1, 40])
def test_a_mark_at_the_seam_of_two_chunks_is_found_once_with_its_line(shift: int) -> None:
    """The log is read in pieces; no piece may cut a mark, a window or the count of lines."""
    line = b"a quiet line of the log\n"
    before = (CHUNK + shift) // len(line)
    log = line * before + b"E   AssertionError: needle\n" + line * 400_000
    windows = find_windows(log)
    assert [(window.line, window.seen) for window in windows] == [(before + 1 - 4, 1)]
    assert windows[0].text.splitlines()[4] == "E   AssertionError: needle"


def test_a_log_on_disk_is_read_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    with log.open("wb") as file:
        for number in range(300_000):
            file.write(b"request %d served in 12 ms with status 200\n" % number)
            if number == 250_000:
                file.write(b'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: the needle\n')
    text = summarise("unit", NOTHING, log).text
    assert "ValueError: the needle" in text
    assert size(text) <= CAP


@pytest.mark.parametrize(
    "log", [b"", b"\n", b"\xff\xfe\x00" * 50, b"error:" * 900_000, b"\r" * 9_000, b"E   " + b"x" * 900_000]
)
def test_strange_logs_do_not_raise(log: bytes) -> None:
    assert size(summarise("unit", NOTHING, log).text) <= CAP
