"""JUnit XML in the dialects of pytest, surefire, gradle, gotestsum, jest, mocha, node and others."""

from __future__ import annotations

import re
from dataclasses import replace

from becket.kernel.engine.junit_xml import Element, XmlCase, read_xml
from becket.parts.gates.ports.report import CaseOutcome, ProblemCode
from becket.parts.gates.reports.book import CaseBook, Draft, worse
from becket.parts.gates.reports.places import FailurePlace, find_place, go_file, go_module
from becket.parts.gates.reports.text import first_line, line_number, seconds_of
from becket.parts.gates.reports.tree import Tree

_FRAME = re.compile(r"^\s*(?:=== (?:RUN|PAUSE|CONT|NAME) |--- (?:PASS|FAIL|SKIP): )")
_GO_LINE = re.compile(r"^\S{1,300}\.go:\d{1,8}: ")
_ALL_TODO = ("todo", "pytest.xfail")
_NOT_RUN = frozenset({"notrun", "disabled", "skipped", "suppressed", "ignored"})
_SAYS_NOTHING = frozenset({"", "failed", "failure", "error", "assertion failed"})


def read_junit(raw: bytes, name: str, tree: Tree, book: CaseBook, *, one_of_many: bool = False) -> list[Draft] | None:
    """The cases of one file; None if it is no JUnit file, which is a problem only where it stands alone."""
    xml = read_xml(raw)
    if not xml.is_junit and (one_of_many or not xml.fault):
        if not one_of_many:
            book.problem(ProblemCode.malformed, f"{name} is not a JUnit report: it has no testsuite")
        return None
    if xml.fault:
        book.problem(ProblemCode.malformed, f"{name} cannot be read to its end: {xml.fault}")
    for problem in filter(None, (suite.problem for suite in xml.suites)):
        book.problem(ProblemCode.mismatch, f"{name}: {problem}")
    folder = name.rpartition("/")[0]
    return _with_groups(_joined([_draft(case, tree, folder) for case in xml.cases]))


def junit_within(output: bytes) -> bytes | None:
    """The XML inside a step's own output, where the report has no file."""
    starts = [at for mark in (b"<?xml", b"<testsuites", b"<testsuite") if (at := output.find(mark)) >= 0]
    if not starts:
        return None
    ends = [at + len(mark) for mark in (b"</testsuites>", b"</testsuite>") if (at := output.rfind(mark)) >= 0]
    return output[min(starts) : max(ends)] if ends and max(ends) > min(starts) else output[min(starts) :]


def _draft(case: XmlCase, tree: Tree, folder: str) -> Draft:
    outcome = _outcome(case)
    verdict = case.first("error", "failure") or case.first("skipped", "flakyFailure", "flakyError")
    text = _text_of(case, verdict)
    name, place = _identity(case, tree, folder)
    own = place.file if place else None
    if outcome.bad:
        place = _failure_place(text, case.attributes.get("classname", ""), tree) or place
    return Draft(
        id=name,
        outcome=outcome,
        where=case.attributes.get("file", "") or " > ".join(case.suites),
        seconds=seconds_of(case.attributes.get("time")),
        message=_message(verdict, text, outcome),
        file=place.file if place else None,
        line=place.line if place else None,
        excerpt=text,
        defined_in=own,
    )


def _outcome(case: XmlCase) -> CaseOutcome:
    skipped = case.first("skipped")
    todo = skipped is not None and skipped.attributes.get("type", "") in _ALL_TODO
    if todo and skipped is not None:
        ran = case.failed or skipped.attributes["type"] == "pytest.xfail"
        return CaseOutcome.xfailed if ran else CaseOutcome.xpassed
    if case.first("error") is not None:
        return CaseOutcome.error
    if case.first("failure") is not None:
        return CaseOutcome.failed
    states = {case.attributes.get("status", "").lower(), case.attributes.get("result", "").lower()}
    if skipped is not None or states & _NOT_RUN:
        return CaseOutcome.skipped
    return CaseOutcome.passed


def _text_of(case: XmlCase, verdict: Element | None) -> str:
    if verdict is None:
        return ""
    parts = [verdict.text] if verdict.text.strip() else [verdict.attributes.get("message", "")]
    parts += [
        f"--- {element.tag} ---\n{element.text}"
        for element in case.elements
        if element.tag in ("system-out", "system-err") and element.text.strip()
    ]
    return "\n".join(parts)


def _message(verdict: Element | None, text: str, outcome: CaseOutcome) -> str:
    if verdict is None:
        return ""
    message = verdict.attributes.get("message", "").strip()
    if verdict.tag.startswith("flaky"):
        return f"passed only when it was run again: {message or first_line(text)}"
    if message.lower() not in _SAYS_NOTHING or not outcome.bad:
        return message
    telling = [line.strip() for line in verdict.text.splitlines() if line.strip() and not _FRAME.match(line)]
    located = [line for line in telling if line.startswith("panic: ") or _GO_LINE.match(line)]
    return "\n".join(located[-1:] or telling[:4])[:600] or verdict.attributes.get("type", "")


def _failure_place(text: str, about: str, tree: Tree) -> FailurePlace | None:
    _, _, cause = text.partition("\n  cause: ")  # node wraps what was thrown
    place = (find_place(cause, tree, about) if cause else None) or find_place(text, tree, about)
    if place is not None and place.file.endswith(".go"):
        return FailurePlace(go_file(place.file, about, go_module(tree), tree), place.line)
    return place


def _identity(case: XmlCase, tree: Tree, folder: str) -> tuple[str, FailurePlace | None]:
    """The id, and where the test itself is defined as far as the report tells."""
    name = case.attributes.get("name", "").strip()
    group = case.attributes.get("classname", "").strip()
    file = case.attributes.get("file", "").strip()
    path = tree.relative(file) if file else ""
    line = line_number(case.attributes.get("line"))
    if path.endswith(".py"):
        return _node_id(path, group, name), FailurePlace(path, None if line is None else line + 1)
    found = _python_file(group or name, tree, folder, of_pytest=case.suites[:1] == ("pytest",))
    if found is not None:
        inside, shown = found
        return _node_id(inside, group, name), FailurePlace(shown, None)
    place = FailurePlace(path, line) if path else None
    name = tree.relative(name) if name.startswith("/") else name
    if group in ("", "test", "suite"):  # node names no class; its suites tell where a test belongs
        return " > ".join([*case.suites, name]) if name else group, place
    return (group if not name else name if name == group else f"{group}::{name}"), place


def _python_file(dotted: str, tree: Tree, folder: str, of_pytest: bool) -> tuple[str, str] | None:
    """The file behind `tests.test_calc.TestShelf`: as pytest names it, and as the repository does."""
    parts = dotted.split(".")
    if not 0 < len(parts) <= 24 or not all(part.isidentifier() for part in parts):
        return None
    for end in range(len(parts), 0, -1):
        inside = "/".join(parts[:end]) + ".py"
        if not of_pytest and not parts[end - 1].startswith("test_") and not parts[end - 1].endswith("_test"):
            continue  # classes of other languages have dotted names as well
        for shown in (inside, f"{folder}/{inside}") if folder else (inside,):
            if tree.has(shown):
                return inside, shown
    return None


def _node_id(path: str, dotted: str, name: str) -> str:
    """pytest's own id, which its command line takes: `tests/test_calc.py::TestShelf::test_put`."""
    module = path.removesuffix(".py").replace("/", ".")
    if not dotted:
        return path if name in ("", module) else f"{path}::{name}"
    classes = dotted.removeprefix(module).strip(".")
    return "::".join([path, *(classes.split(".") if classes else []), name])


def _with_groups(drafts: list[Draft]) -> list[Draft]:
    """Go's parents of subtests: `TestTable` of `TestTable/plain`."""
    ids = {draft.id for draft in drafts}
    parents = {parent for name in ids if "/" in name and (parent := name.rpartition("/")[0]) in ids}
    return [replace(draft, group=True) if draft.id in parents else draft for draft in drafts]


def _joined(drafts: list[Draft]) -> list[Draft]:
    """pytest writes a test that fails and then cannot be torn down twice; it is one test."""
    result: list[Draft] = []
    for draft in drafts:
        last = result[-1] if result else None
        if (
            last
            and last.id == draft.id
            and last.where == draft.where
            and draft.message.startswith("failed on teardown")
        ):
            text = f"{last.excerpt}\n{draft.excerpt}"
            message = last.message or draft.message
            result[-1] = Draft(
                last.id,
                worse(last.outcome, draft.outcome),
                last.where,
                last.seconds,
                message,
                last.file,
                last.line,
                text,
            )
        else:
            result.append(draft)
    return result
