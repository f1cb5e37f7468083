"""The event stream of `go test -json`, with whatever else the go tool prints between the events."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode
from becket.parts.gates.reports.book import CaseBook, Draft, worse
from becket.parts.gates.reports.places import FailurePlace, find_place, go_file, go_module
from becket.parts.gates.reports.text import clean, first_line, line_number, seconds_of
from becket.parts.gates.reports.tree import Tree

LONGEST_EVENT = 1_000_000
MOST_OUTPUT = 8_000
MOST_TESTS = 200_000

_EVENT = re.compile(rb'\{"(?:Time|Action|ImportPath|Package)":')
_PACKAGE_FAILED = re.compile(r"^FAIL\t(\S{1,500})(?: \[(build|setup) failed\]|\t)")
_BUILD_OF = re.compile(r"^# (\S{1,500})(?: \[(\S{1,500}?)\])?$")
_LOCATED = re.compile(r"^\s+([^\s:]{1,300}\.go):(\d{1,8}): (.*)$")
_FRAME = re.compile(r"^\s*(?:=== (?:RUN|PAUSE|CONT|NAME) |--- (?:PASS|FAIL|SKIP|BENCH): )")
_ENDS = {
    "pass": CaseOutcome.passed,
    "bench": CaseOutcome.passed,
    "fail": CaseOutcome.failed,
    "skip": CaseOutcome.skipped,
}


@dataclass(slots=True)
class _Unit:
    """A test, a package or a build: how it ended, and the beginning and the end of what it printed."""

    outcome: CaseOutcome | None = None
    seconds: float | None = None
    running: bool = False
    head: list[str] = field(default_factory=list)
    tail: deque[str] = field(default_factory=deque)
    head_size: int = 0
    tail_size: int = 0
    marked: list[str] = field(default_factory=list)  # what the tool itself calls an error, in newer versions

    def end(self, outcome: CaseOutcome, seconds: float | None) -> None:
        self.outcome = outcome if self.outcome is None else worse(self.outcome, outcome)
        self.seconds = seconds
        self.running = False

    def write(self, text: str, is_error: bool = False) -> None:
        text = text[:MOST_OUTPUT]
        if self.head_size < MOST_OUTPUT:
            self.head.append(text)
            self.head_size += len(text)
        else:
            self.tail.append(text)
            self.tail_size += len(text)
            while self.tail_size > MOST_OUTPUT and len(self.tail) > 1:
                self.tail_size -= len(self.tail.popleft())
        if is_error and len(self.marked) < 20:
            self.marked.append(text)

    @property
    def text(self) -> str:
        return "".join([*self.head, *self.tail])

    @property
    def blamed(self) -> bool:
        return self.running or self.outcome is None or self.outcome.bad


class _Stream:
    def __init__(self) -> None:
        self.packages: dict[str, _Unit] = {}
        self.tests: dict[tuple[str, str], _Unit] = {}
        self.builds: dict[str, _Unit] = {}
        self.loose: list[str] = []
        self._open_build: _Unit | None = None
        self.torn = 0
        self.told_anything = False
        self.too_many = False

    def event(self, event: dict[str, object]) -> None:
        action = event.get("Action")
        if not isinstance(action, str):
            return
        if action.startswith("build-"):
            self._build(action, event)
            return
        package, test = event.get("Package"), event.get("Test")
        if not isinstance(package, str):
            return
        self.told_anything = True
        whole = self.packages.setdefault(package, _Unit())
        unit = whole
        if isinstance(test, str) and test:
            self.too_many = self.too_many or len(self.tests) >= MOST_TESTS
            unit = self.tests.setdefault((package, test), _Unit()) if not self.too_many else whole
        if action == "run":
            unit.running = True
        elif action == "output":
            unit.write(_text(event.get("Output")), event.get("OutputType") == "error")
        elif action in _ENDS:
            elapsed = event.get("Elapsed")
            unit.end(_ENDS[action], seconds_of(elapsed) if isinstance(elapsed, int | float) else None)
            failed_build = event.get("FailedBuild")
            if isinstance(failed_build, str) and failed_build in self.builds:
                whole.write(self.builds[failed_build].text)

    def _build(self, action: str, event: dict[str, object]) -> None:
        build = self.builds.setdefault(_text(event.get("ImportPath")), _Unit())
        if action == "build-output":
            build.write(_text(event.get("Output")))
        elif action == "build-fail":
            build.outcome = CaseOutcome.error

    def line(self, line: str) -> None:
        """A line that is no event: older go tools report a failed build this way."""
        failed = _PACKAGE_FAILED.match(line)
        if failed:
            self.told_anything = self.told_anything or failed[2] is not None
            unit = self.packages.setdefault(failed[1], _Unit())
            own = self.builds.get(failed[1])
            for build in [own] if own else self.builds.values():
                unit.write(build.text)
            unit.end(CaseOutcome.failed, None)
        elif begun := _BUILD_OF.match(line):
            self._open_build = self.builds.setdefault(begun[1], _Unit(outcome=CaseOutcome.error))
        elif self._open_build is not None and line:
            self._open_build.write(line + "\n")
        elif line and len(self.loose) < 20:
            self.loose.append(line)


def read_go(output: bytes, tree: Tree, book: CaseBook) -> None:
    stream = _Stream()
    for found in _read(output, stream):
        stream.event(found)
    if stream.torn:
        book.problem(ProblemCode.malformed, f"{stream.torn} events of the stream are cut off or cannot be read")
    if stream.too_many:
        book.problem(ProblemCode.too_large, f"the stream has more than {MOST_TESTS} tests")
    if not stream.told_anything:
        said = first_line("\n".join([unit.text for unit in stream.builds.values()] + stream.loose))
        book.problem(ProblemCode.missing, f"there is no event of `go test -json`{': ' + said if said else ''}")
    module = go_module(tree)
    parents = {(package, test[:at]) for package, test in stream.tests for at in _slashes(test)}
    for (package, test), unit in stream.tests.items():
        _add_test(package, test, unit, (package, test) in parents, stream.packages[package], tree, module, book)
    blamed = {package for (package, _), unit in stream.tests.items() if unit.blamed}
    for package, unit in stream.packages.items():
        _add_package(package, unit, package in blamed, tree, book)


def _read(output: bytes, stream: _Stream) -> Iterator[dict[str, object]]:
    start = 0
    while start < len(output):
        end = output.find(b"\n", start)
        end = len(output) if end < 0 else end
        line = output[start : min(end, start + LONGEST_EVENT)]
        start = end + 1
        begin = _EVENT.search(line)
        if begin is None:
            stream.line(clean(line[:2_000]).rstrip())
            continue
        if begin.start():
            stream.line(clean(line[: min(begin.start(), 2_000)]))
        try:
            event = json.loads(line[begin.start() :])
        except (ValueError, RecursionError):
            stream.torn += 1
            continue
        if isinstance(event, dict):
            yield event


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _slashes(test: str) -> list[int]:
    return [at for at, letter in enumerate(test[:2_000]) if letter == "/"][:20]


def _add_test(
    package: str, test: str, unit: _Unit, group: bool, whole: _Unit, tree: Tree, module: str, book: CaseBook
) -> None:
    outcome = unit.outcome
    message = ""
    if outcome is None or unit.running:
        benchmark = test.startswith("Benchmark") and whole.outcome is CaseOutcome.passed
        outcome = CaseOutcome.passed if benchmark else CaseOutcome.error
        message = "" if benchmark else f"it did not come to its end: {_panic(unit.text) or 'no result was reported'}"
    place = None
    if outcome.bad:
        found, place = _assertion(unit, package, module, tree)
        message = message or found
    book.add(
        Draft(
            id=f"{package}::{test}",
            outcome=outcome,
            seconds=unit.seconds,
            message=message if outcome.bad else "",
            file=place.file if place else None,
            line=place.line if place else None,
            excerpt=unit.text,
            group=group,
        )
    )


def _assertion(unit: _Unit, package: str, module: str, tree: Tree) -> tuple[str, FailurePlace | None]:
    """The last line that names a place: `t.Log` looks the same, and what ends a test comes after what it logs."""
    panic = _panic(unit.text)
    if panic:
        return panic, find_place(unit.text, tree)
    lines = [line for text in (unit.marked or [unit.text]) for line in text.splitlines()]
    located = [(index, match) for index, line in enumerate(lines) if (match := _LOCATED.match(line))]
    if not located:
        return "\n".join(line for line in lines if not _FRAME.match(line))[:600], None
    index, match = located[-1]
    more = [line.strip() for line in lines[index + 1 : index + 8] if line.startswith("        ")]
    return "\n".join([match[3], *more]), FailurePlace(go_file(match[1], package, module, tree), line_number(match[2]))


def _panic(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.startswith(("panic: ", "fatal error: "))), "")


def _add_package(package: str, unit: _Unit, a_test_is_blamed: bool, tree: Tree, book: CaseBook) -> None:
    """A package is a case too: it can fail to build or to come to its end while no test of it fails."""
    outcome = unit.outcome
    if outcome is None:
        book.problem(ProblemCode.incomplete, f"the stream ends before the package {package} does")
        outcome = CaseOutcome.error
    if outcome is CaseOutcome.failed and not a_test_is_blamed:
        outcome = CaseOutcome.error
    text = unit.text
    place = find_place(text, tree) if outcome is CaseOutcome.error else None
    telling = [
        line for line in text.splitlines() if line.strip() and not line.startswith(("# ", "FAIL", "PASS", "exit"))
    ]
    book.add(
        Draft(
            id=package,
            outcome=outcome,
            seconds=unit.seconds,
            message="\n".join(telling[:4]) if outcome is CaseOutcome.error else "",
            file=place.file if place else None,
            line=place.line if place else None,
            excerpt=text,
            group=True,
        )
    )
