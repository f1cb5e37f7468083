"""From the `report:` of a gate step to a TestReport. Never raises for what a step wrote; what is wrong is a problem."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode, TestReport
from becket.parts.gates.reports.book import CaseBook, Draft
from becket.parts.gates.reports.files import with_files
from becket.parts.gates.reports.folder import LARGEST_FILE
from becket.parts.gates.reports.junit import junit_within, read_junit
from becket.parts.gates.reports.tree import FindFiles, ReadFile, Tree

PLAIN_ID = "step"
"""The id of the one case that a plain step has."""

LARGEST_OUTPUT, MOST_LINES = 256_000_000, 1_000_000

_TEXT_READERS = {
    "pytest": "pytest_text:read_pytest",
    "go": "go_json:read_go",
    "cargo": "cargo_text:read_cargo",
    "tap": "tap:read_tap",
}
"""Loaded when a step has such a report: their patterns take longer to build than most commands do."""


def parse(
    format: str,  # noqa: A002 - the word of becket.yaml
    step_output: bytes,
    read_file: ReadFile,
    *,
    find_files: FindFiles | None = None,
    exit_code: int | None = None,
    redact: Callable[[str], str] = str,
) -> TestReport:
    """What the tests of a step said.

    `format` is a step's `report:`, such as `junit:build/*.xml`, `go` or `plain`. `read_file` and `find_files` see the
    tree the step ran in, such as those of a ReportFolder. Only a plain step's report needs the exit code. `redact`
    takes the secrets out of what tests say, before it is cut: that is stored, shown and put into briefs (L25).
    """
    kind, _, path = format.partition(":")
    book = CaseBook(kind, redact)
    tree = Tree(read_file)
    if kind == "plain":
        _plain(exit_code, book)
    elif kind == "junit":
        _junit(path, step_output, tree, find_files, book)
    elif kind in _TEXT_READERS:
        content = tree.read(path) if path else step_output
        if content is None:
            book.problem(ProblemCode.missing, f"the step did not write its report {path}")
        elif _fits(content, path or "the step's output", LARGEST_OUTPUT, book, MOST_LINES):
            _reader(kind)(content, tree, book)
    else:
        book.problem(
            ProblemCode.missing, f"{kind!r} is not a report format; use junit, pytest, go, cargo, tap or plain"
        )
    return book.report()


def _reader(kind: str) -> Callable[[bytes, Tree, CaseBook], None]:
    module, _, name = _TEXT_READERS[kind].partition(":")
    reader: Callable[[bytes, Tree, CaseBook], None] = getattr(import_module(f"{__package__}.{module}"), name)
    return reader


def _plain(exit_code: int | None, book: CaseBook) -> None:
    if exit_code == 0:
        book.add(Draft(id=PLAIN_ID, outcome=CaseOutcome.passed))
    elif exit_code is None or exit_code < 0 or exit_code > 128:
        book.add(Draft(id=PLAIN_ID, outcome=CaseOutcome.error, message="the command did not end by itself"))
    else:
        book.add(Draft(id=PLAIN_ID, outcome=CaseOutcome.failed, message=f"exit code {exit_code}"))


def _junit(path: str, output: bytes, tree: Tree, find_files: FindFiles | None, book: CaseBook) -> None:
    drafts: list[Draft] = []
    if not path:
        content = junit_within(output)
        if content is None:
            book.problem(ProblemCode.missing, "the step's output holds no JUnit report; name its file: `junit:FILE`")
        elif _fits(content, "the step's output", LARGEST_FILE, book):
            drafts += read_junit(content, "the step's output", tree, book) or []
    elif (single := None if _is_pattern(path) else tree.read(path)) is not None:
        if _fits(single, path, LARGEST_FILE, book):
            drafts += read_junit(single, path, tree, book) or []
    else:
        drafts += _junit_files(path, tree, find_files, book)
    for draft in with_files(drafts):
        book.add(draft)


def _junit_files(path: str, tree: Tree, find_files: FindFiles | None, book: CaseBook) -> list[Draft]:
    pattern = path if _is_pattern(path) else path.rstrip("/") + "/**/*.xml"
    drafts: list[Draft] = []
    found = False
    for name in find_files(pattern) if find_files else ():
        content = tree.read(name)
        if content is None or not _fits(content, name, LARGEST_FILE, book):
            continue
        cases = read_junit(content, name, tree, book, one_of_many=True)
        found = found or cases is not None
        drafts += cases or []
    if not found:
        book.problem(ProblemCode.missing, f"the step did not write its report {path}")
    return drafts


def _is_pattern(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def _fits(content: bytes, name: str, most: int, book: CaseBook, lines: int = sys.maxsize) -> bool:
    if len(content) > most:
        book.problem(ProblemCode.too_large, f"{name} is larger than {most // 1_000_000} MB and was not read")
    elif content.count(b"\n") > lines:
        book.problem(ProblemCode.too_large, f"{name} has more than {lines} lines and was not read")
    else:
        return True
    return False
