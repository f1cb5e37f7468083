"""A bounded summary of why one step failed (L15): failing tests, what they assert, where, and windows of the log.

Its text is the step's own and untrusted; whoever puts it into a prompt or a message redacts and fences it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from becket.kernel.contract.base import Record
from becket.kernel.contract.text import cap_text
from becket.parts.gates.log_windows import LogWindow, find_windows, last_lines, log_size
from becket.parts.gates.ports.report import CaseOutcome, TestCase, TestReport

CAP = 12_000
MOST_TESTS = 40
TESTS_SHARE, EXCERPTS_SHARE = 0.4, 0.4
LONGEST_ASSERTION = 400
TAIL_LINES = 20

LONGEST_HEAD, LARGEST_LOG = 100_000, 64_000_000
_GO_EVENT = re.compile(rb'(?m)^\{"(?:Time|Action|ImportPath)":"[^"]{1,300}",.{0,2000}"(?:Action|Package|Output)":')
_MASK = re.compile(r"\d+|0x[0-9a-f]+")


class FailingTest(Record):
    """One failure; `like` counts further tests that fail with the same words at the same place."""

    id: str
    message: str
    place: str
    like: int = 0


class Excerpt(Record):
    """A piece of evidence: a test's own traceback, or lines of the log."""

    title: str
    text: str


class FailureSummary(Record):
    """Everything within the cap; `text` is how it reads."""

    step: str
    failing: int  # how many tests fail in all
    tests: tuple[FailingTest, ...]
    more_tests: int  # failures that are not listed, one by one or as the like of another
    problems: tuple[str, ...]
    excerpts: tuple[Excerpt, ...]

    @property
    def text(self) -> str:
        lines = [f"step {self.step}: " + (f"{self.failing} failing" if self.failing else "failed")]
        lines += [f"problem: {problem}" for problem in self.problems]
        for test in self.tests:
            lines += _shown_test(test)
        if self.more_tests:
            lines.append(f"and {self.more_tests} more failing")
        for excerpt in self.excerpts:
            lines += ["", f"--- {excerpt.title} ---", excerpt.text]
        return "\n".join(lines)


def summarise(step: str, report: TestReport, log: Path | bytes, cap: int = CAP) -> FailureSummary:
    """Why the step failed, in at most `cap` bytes of text."""
    log = _as_printed(log)
    cases = list(_telling(report))
    tests = _tests(cases, int(cap * TESTS_SHARE))
    listed = sum(1 + test.like for test in tests)
    summary = FailureSummary(
        step=step,
        failing=len(cases),
        tests=tuple(tests),
        more_tests=len(cases) - listed,
        problems=tuple(cap_text(problem.text, 300) for problem in report.problems[:5]),
        excerpts=(),
    )
    room = int(cap * EXCERPTS_SHARE)
    excerpts = list(_case_excerpts(cases, room))
    room = cap - _size(summary.model_copy(update={"excerpts": tuple(excerpts)}).text)
    excerpts += _log_excerpts(log, cases, excerpts, room)
    return _within(summary.model_copy(update={"excerpts": tuple(excerpts)}), cap)


def _as_printed(log: Path | bytes) -> Path | bytes:
    """The events of `go test -json` as the text that they carry; any other log as it is."""
    if isinstance(log, Path):
        with log.open("rb") as file:
            head = file.read(LONGEST_HEAD)
        return _as_printed(log.read_bytes()[:LARGEST_LOG]) if _GO_EVENT.search(head) else log
    if not _GO_EVENT.search(log[:LONGEST_HEAD]):
        return log
    return b"".join(_printed(line) for line in log.splitlines(keepends=True))


def _printed(line: bytes) -> bytes:
    if not _GO_EVENT.match(line):
        return line
    try:
        event = json.loads(line)
    except ValueError:
        return line
    told = event.get("Output", "") if isinstance(event, dict) else ""
    return str(told).encode("utf-8", "replace")


def _telling(report: TestReport) -> Iterator[TestCase]:
    """Tests before containers; a container speaks only where it failed by itself."""
    failing = report.failing
    yield from (case for case in failing if not case.group)
    yield from (case for case in failing if case.group and (case.outcome is CaseOutcome.error or len(failing) == 1))


def _tests(cases: list[TestCase], room: int) -> list[FailingTest]:
    kinds: dict[tuple[str, str], FailingTest] = {}
    for case in cases:
        message = cap_text(case.message, LONGEST_ASSERTION)
        key = (_MASK.sub("#", message) or case.id, case.place)
        known = kinds.get(key)
        if known is None and len(kinds) < MOST_TESTS:
            kinds[key] = FailingTest(id=case.id, message=message, place=case.place)
        elif known is not None:
            kinds[key] = known.model_copy(update={"like": known.like + 1})
    shown: list[FailingTest] = []
    for test in kinds.values():
        room -= _size("\n".join(_shown_test(test))) + 1
        if room < 0 and shown:
            break
        shown.append(test)
    return shown


def _shown_test(test: FailingTest) -> list[str]:
    like = f"  (and {test.like} more like it)" if test.like else ""
    lines = [f"FAIL {cap_text(test.id, 300)}" + (f"  at {test.place}" if test.place else "") + like]
    return lines + [f"    {line}" for line in test.message.splitlines() if line.strip()]


def _case_excerpts(cases: Iterable[TestCase], room: int) -> Iterator[Excerpt]:
    seen = set()
    for case in cases:
        kind = _MASK.sub("#", case.excerpt)
        if not case.excerpt or kind in seen:
            continue
        seen.add(kind)
        room -= _size(case.excerpt) + _size(case.id) + 10
        if room < 0 and len(seen) > 1:
            return
        yield Excerpt(title=cap_text(case.id, 300), text=case.excerpt)


def _log_excerpts(log: Path | bytes, cases: list[TestCase], given: list[Excerpt], room: int) -> list[Excerpt]:
    """A short log as a whole; else windows that add to the excerpts, and its end where there are few of them."""
    whole = last_lines(log, room) if log_size(log) <= room else ""
    if whole and not given:
        return [Excerpt(title="the whole log", text=whole)]
    unexplained = [_last_name(case.id) for case in cases if not case.excerpt]
    told = "\n".join(excerpt.text for excerpt in given)
    chosen: list[LogWindow] = []
    for window in find_windows(log, unexplained):
        if window.mark in told or any(window.mark in other.text for other in chosen):
            continue
        size = _size(window.text) + 40
        if size > room:
            break
        room -= size
        chosen.append(window)
    chosen.sort(key=lambda window: window.line)
    excerpts = [Excerpt(title=_title(window), text=window.text) for window in chosen]
    tail = "" if given else last_lines(log, TAIL_LINES).strip()
    if tail and (not chosen or _size(tail) + 40 < room):
        excerpts.append(Excerpt(title="the end of the log", text=tail))
    return excerpts


def _title(window: LogWindow) -> str:
    often = f", {window.seen} times the like" if window.seen > 1 else ""
    return f"log from line {window.line}{often}"


def _last_name(test_id: str) -> str:
    return re.split(r"::| > ", test_id)[-1][:200]


def _within(summary: FailureSummary, cap: int) -> FailureSummary:
    """The last word on the cap: whole excerpts go first, from the end, then listed tests."""
    while _size(summary.text) > cap and summary.excerpts:
        over = _size(summary.text) - cap
        last = summary.excerpts[-1]
        shorter = cap_text(last.text, max(0, _size(last.text) - over))
        kept = (
            (*summary.excerpts[:-1], last.model_copy(update={"text": shorter}))
            if len(shorter) > 200
            else summary.excerpts[:-1]
        )
        summary = summary.model_copy(update={"excerpts": kept})
    while _size(summary.text) > cap and len(summary.tests) > 1:
        dropped = summary.tests[-1]
        update = {"tests": summary.tests[:-1], "more_tests": summary.more_tests + 1 + dropped.like}
        summary = summary.model_copy(update=update)
    return summary


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
