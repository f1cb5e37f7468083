"""The text of `cargo test`: unit, integration and documentation tests, one binary after another; compile errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode
from becket.parts.gates.reports.book import CaseBook, Draft
from becket.parts.gates.reports.places import FailurePlace, find_place
from becket.parts.gates.reports.text import first_line, line_number, lines_of, seconds_of
from becket.parts.gates.reports.tree import Tree

BUILD_ID = "build"
"""The id of the case that stands for compilation: it fails when a target does not compile, else it passes."""

MOST_LINES = 200

_RUNNING = re.compile(
    r"\s{3,}Running (?:unittests )?(?:(\S{1,300}) \()?(?:\S{0,300}[/\\])?([\w-]{1,200}?)-[0-9a-f]{8,32}(?:\.exe)?\)?$"
)
_DOC_TESTS = re.compile(r"\s{3}Doc-tests (\S{1,200})$")
_BEGIN = re.compile(r"^running (\d{1,9}) tests?$")
_TEST = re.compile(r"^test (.{1,2000}?) \.\.\. ?(.*)$")
_WORD = re.compile(r"^(ok|FAILED|ignored|bench:)(?:, (.*))?(?: .*)?$")
_TERSE = re.compile(r"^(.{1,2000}) --- FAILED$")
_DETAIL = re.compile(r"^---- (.{1,2000}) std(?:out|err) ----$")
_RESULT = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;"
    r".*?(?:finished in ([\d.]{1,20})s)?$"
)
_SUFFIX = re.compile(r" - (?:should panic|compile|compile fail)$")
_DOC_NAME = re.compile(r"^(.{1,1000}?) - ?(.{0,1000}?) ?\(line (\d{1,8})\)$")
_ERROR = re.compile(r"^error(?:\[E\d{1,6}\])?: (.*)$")
_NOT_COMPILE = re.compile(r"^error: could not compile `([^`]{1,200})`")
_AT = re.compile(r"^\s*--> ([^\s:]{1,400}):(\d{1,8}):\d+$")
_ABORTED = re.compile(r"process didn't exit successfully: .{0,2000}?(\((?:signal|exit)[^)]{0,200}\))")
_WORDS = {
    "ok": CaseOutcome.passed,
    "FAILED": CaseOutcome.failed,
    "ignored": CaseOutcome.skipped,
    "bench:": CaseOutcome.passed,
}


@dataclass(slots=True)
class _Binary:
    """One test binary: what it announced, what it told, what it counted."""

    label: str
    expected: int
    outcomes: dict[str, tuple[CaseOutcome, str]] = field(default_factory=dict)
    details: dict[str, list[str]] = field(default_factory=dict)
    pending: str | None = None
    counts: tuple[int, int, int] | None = None
    seconds: float | None = None

    def told(self, name: str, outcome: CaseOutcome, note: str = "") -> None:
        known = self.outcomes.get(name)
        if known is None or not known[0].bad:
            self.outcomes[name] = (outcome, note)


class _Reader:
    """Reads line by line; a line `test x ... ok` counts only where the harness lists its tests."""

    def __init__(self) -> None:
        self.binaries: list[_Binary] = []
        self.errors: list[tuple[str, FailurePlace | None, list[str]]] = []
        self.compile_failed: list[str] = []
        self.last_error = ""
        self.aborted = ""
        self._label = ""
        self._state = "outside"  # outside | listing | details | names | passed names
        self._detail: list[str] | None = None

    def feed(self, line: str) -> None:
        if self._state in ("outside", "listing"):  # elsewhere a test's own output could pose as the harness
            self._find_label(line)
            if begin := _BEGIN.match(line):
                self._begin(int(begin[1]))
                return
        if self._state != "details" and (result := _RESULT.match(line)):
            self._result(result)
        elif self._state == "outside":
            self._outside(line)
        elif self._state == "listing":
            self._listing(line)
        else:
            self._failures(line)

    def _begin(self, expected: int) -> None:
        self.binaries.append(_Binary(self._label or f"binary {len(self.binaries) + 1}", expected))
        self._label, self._state, self._detail = "", "listing", None

    def _find_label(self, line: str) -> None:
        if running := _RUNNING.search(line):
            crate = running[2].replace("-", "_")
            self._leave(line, f"{crate}:{running[1]}" if running[1] else crate)
        elif documented := _DOC_TESTS.search(line):
            self._leave(line, f"{documented[1]}:doc")

    def _leave(self, line: str, label: str) -> None:
        """The next binary begins; a test that ended the process stands unfinished before it on the same line."""
        unfinished = _TEST.match(line)
        if self._state == "listing" and unfinished:
            self.binaries[-1].pending = unfinished[1]
        self._label, self._state = label, "outside"

    def _result(self, result: re.Match[str]) -> None:
        if self.binaries:
            self.binaries[-1].counts = (int(result[1]), int(result[2]), int(result[3]))
            self.binaries[-1].seconds = seconds_of(result[4]) if result[4] else None
        self._state = "outside"

    def _listing(self, line: str) -> None:
        binary = self.binaries[-1]
        if line in ("failures:", "successes:"):
            self._state = "details"
        elif terse := _TERSE.match(line):
            binary.told(terse[1], CaseOutcome.failed)
        elif test := _TEST.match(line):
            word = _WORD.match(test[2])
            binary.pending = None if word else test[1]
            if word:
                binary.told(test[1], _WORDS[word[1]], word[2] or "")
            elif _ERROR.search(test[2]):
                self._state = "outside"
                self._outside(test[2])
            elif test[2]:
                binary.details.setdefault(test[1], []).append(test[2])
        elif binary.pending is not None and (word := _WORD.match(line)) and " " not in line:
            binary.told(binary.pending, _WORDS[word[1]])
            binary.pending = None
        elif binary.pending is not None and len(noise := binary.details.setdefault(binary.pending, [])) < MOST_LINES:
            noise.append(line)

    def _failures(self, line: str) -> None:
        binary = self.binaries[-1]
        if detail := _DETAIL.match(line):
            self._state = "details"
            self._detail = binary.details.setdefault(detail[1], [])
        elif line in ("failures:", "successes:"):
            self._state, self._detail = ("names" if line == "failures:" else "passed names"), None
        elif self._state == "names" and line.startswith("    "):
            name = next((known for known in binary.outcomes if _SUFFIX.sub("", known) == line[4:]), line[4:])
            binary.told(name, CaseOutcome.failed)
        elif self._detail is not None and len(self._detail) < MOST_LINES:
            self._detail.append(line)

    def _outside(self, line: str) -> None:
        if aborted := _ABORTED.search(line):
            self.aborted = aborted[1]
        if failed := _NOT_COMPILE.match(line):
            self.compile_failed.append(failed[1])
        elif error := _ERROR.match(line):
            self.last_error = line
            if len(self.errors) < 20:
                self.errors.append((error[1], None, [line]))
            return
        if not self.errors:
            return
        message, place, text = self.errors[-1]
        if place is None and (at := _AT.match(line)):
            self.errors[-1] = (message, FailurePlace(at[1], line_number(at[2])), text)
        if len(text) < MOST_LINES:
            text.append(line)


def read_cargo(output: bytes, tree: Tree, book: CaseBook) -> None:
    reader = _Reader()
    for line in lines_of(output):
        reader.feed(line.rstrip())
    _add_build(reader, tree, book)
    for binary in reader.binaries:
        drafts = list(_drafts(binary, reader.aborted, tree))
        if all(_DOC_NAME.match(_SUFFIX.sub("", name)) for name in binary.outcomes):
            # documentation tests run in any order, and several share a name
            drafts.sort(key=lambda draft: (draft.id, draft.line or 0))
        for draft in drafts:
            book.add(draft)
        _check_counts(binary, reader.aborted, book)
    if not reader.binaries and not reader.compile_failed:
        said = reader.last_error or first_line(output[-2_000:].decode("utf-8", "replace"))
        book.problem(ProblemCode.missing, f"there is no result of `cargo test`{': ' + said if said else ''}")


def _add_build(reader: _Reader, tree: Tree, book: CaseBook) -> None:
    if not reader.compile_failed:
        if reader.binaries:
            book.add(Draft(id=BUILD_ID, outcome=CaseOutcome.passed, group=True))
        return
    first = next((error for error in reader.errors if error[1] is not None), None)
    message, place, _ = first or (f"could not compile {reader.compile_failed[0]}", None, [])
    book.add(
        Draft(
            id=BUILD_ID,
            outcome=CaseOutcome.error,
            message=message,
            file=tree.relative(place.file) if place else None,
            line=place.line if place else None,
            excerpt="\n".join(line for error in reader.errors for line in error[2]),
            group=True,
        )
    )


def _drafts(binary: _Binary, aborted: str, tree: Tree) -> Iterator[Draft]:
    details = {_SUFFIX.sub("", name): lines for name, lines in binary.details.items()}
    for name, (outcome, note) in binary.outcomes.items():
        plain = _SUFFIX.sub("", name)
        yield _draft(binary.label, plain, outcome, note, details.get(plain, []), tree)
    if binary.counts is None and binary.pending is not None:
        plain = _SUFFIX.sub("", binary.pending)
        note = f"it did not come to its end {aborted}".strip()
        yield _draft(binary.label, plain, CaseOutcome.error, note, details.get(plain, []), tree)


def _draft(label: str, name: str, outcome: CaseOutcome, note: str, lines: list[str], tree: Tree) -> Draft:
    text = "\n".join(lines).strip("\n")
    place = find_place(text, tree) if outcome.bad else None
    documented = _DOC_NAME.match(name)
    if documented:  # its line number moves with every edit above it; the id must not
        place = FailurePlace(documented[1], line_number(documented[3]))
        name = f"{documented[1]} - {documented[2]}".removesuffix(" - ")
    return Draft(
        id=f"{label}::{name}",
        outcome=outcome,
        message=note or (_assertion(lines) if outcome.bad else ""),
        file=tree.relative(place.file) if place else None,
        line=place.line if place else None,
        excerpt=text,
    )


def _assertion(lines: list[str]) -> str:
    """What follows `panicked at`, up to the backtrace; or the error that the test returned."""
    for index, line in enumerate(lines):
        if "panicked at " in line:
            after = []
            for text in lines[index + 1 : index + 8]:
                if not text.strip() or text.startswith(("note:", "stack backtrace")):
                    break
                after.append(text.strip())
            return "\n".join(after) or line.strip()
    return first_line("\n".join(lines))


def _check_counts(binary: _Binary, aborted: str, book: CaseBook) -> None:
    if binary.counts is None:
        why = f" {aborted}" if aborted else ""
        book.problem(ProblemCode.incomplete, f"the test binary {binary.label} did not come to its end{why}")
        return
    passed, failed, ignored = binary.counts
    named = [outcome for outcome, _ in binary.outcomes.values()]
    book.unnamed_passed += max(0, passed - named.count(CaseOutcome.passed))
    book.unnamed_skipped += max(0, ignored - named.count(CaseOutcome.skipped))
    if failed > sum(outcome.bad for outcome in named):
        book.problem(ProblemCode.mismatch, f"{binary.label} counts {failed} failures and does not name all of them")
    if passed + failed + ignored < binary.expected:
        told = passed + failed + ignored
        book.problem(ProblemCode.mismatch, f"{binary.label} announced {binary.expected} tests and counts {told}")
