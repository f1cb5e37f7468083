"""JUnit XML as a stream: what stood in each `testcase`, with every bound that hostile XML calls for.

A document type is refused, so no entity can expand; what was read before a fault is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

LARGEST_TEXT = 16_000
MOST_CASES = 200_000
DEEPEST = 200

_CONTROL = bytes(range(0x09)) + b"\x0b\x0c" + bytes(range(0x0E, 0x20))
_BAD_REFERENCE = re.compile(rb"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]));", re.IGNORECASE)
_VERDICTS = frozenset({"failure", "error", "skipped", "flakyFailure", "flakyError", "rerunFailure", "rerunError"})
_TEXTS = _VERDICTS | {"system-out", "system-err"}


@dataclass(slots=True)
class Element:
    """A verdict or an output inside a test case."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass(slots=True)
class XmlCase:
    suites: tuple[str, ...]
    attributes: dict[str, str]
    elements: list[Element] = field(default_factory=list)
    bad: int = 0  # failures and errors in it: pytest counts each subtest, and they share one case

    def first(self, *tags: str) -> Element | None:
        return next((element for element in self.elements if element.tag in tags), None)

    @property
    def failed(self) -> bool:
        return self.first("failure", "error") is not None


@dataclass(slots=True)
class XmlSuite:
    """A suite's own claim about itself, to be held against its cases."""

    name: str
    declared_bad: int
    bad: int = 0

    @property
    def problem(self) -> str:
        """Some writers count a suite that could not load and list no case for it."""
        title = f"the suite {self.name}" if self.name else "the report"
        wrong = self.declared_bad > self.bad
        return f"{title} counts {self.declared_bad} failures, but its cases show {self.bad}" if wrong else ""


@dataclass(slots=True)
class XmlReport:
    cases: list[XmlCase] = field(default_factory=list)
    suites: list[XmlSuite] = field(default_factory=list)
    is_junit: bool = False
    fault: str = ""

    @property
    def problem(self) -> str:
        """Why it cannot be believed as it stands, or nothing."""
        said = (self.fault, "" if self.is_junit else "it has no testsuite", *(suite.problem for suite in self.suites))
        return next(filter(None, said), "")


class _Refused(Exception):
    """The document asks for something no test report needs."""


def read_xml(raw: bytes) -> XmlReport:
    """Never raises: a fault is part of the answer."""
    reader = _Reader()
    try:
        reader.feed(_mended(raw))
    except (expat.ExpatError, _Refused, LookupError, ValueError) as fault:
        reader.report.fault = str(fault) or type(fault).__name__
    return reader.report


def _mended(raw: bytes) -> bytes:
    """Without the control characters that tests print and that writers forget to leave out."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw
    return _BAD_REFERENCE.sub(b"", raw.translate(None, _CONTROL).lstrip())


class _Reader:
    def __init__(self) -> None:
        self.report = XmlReport()
        self._open: list[str] = []
        self._suites: list[XmlSuite] = []
        self._case: XmlCase | None = None
        self._element: Element | None = None
        self._text: list[str] = []
        self._text_size = 0

    def feed(self, raw: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.Parse(raw, True)

    def _doctype(self, *_: object) -> None:
        raise _Refused("it has a document type, which test reports do not need")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if not self._open:
            self.report.is_junit = tag in ("testsuite", "testsuites")
        self._open.append(tag)
        if len(self._open) > DEEPEST:
            raise _Refused(f"its elements nest deeper than {DEEPEST}")
        if tag in ("testsuite", "testsuites"):
            self._suites.append(
                XmlSuite(attributes.get("name", "") if tag == "testsuite" else "", _declared(attributes))
            )
        elif tag == "testcase" and self._case is None:
            self._begin_case(attributes)
        elif self._case is not None and self._element is None and tag in _TEXTS:
            self._element = Element(tag, attributes)
            self._text, self._text_size = [], 0

    def _begin_case(self, attributes: dict[str, str]) -> None:
        if len(self.report.cases) >= MOST_CASES:
            raise _Refused(f"it has more than {MOST_CASES} test cases")
        self._case = XmlCase(tuple(suite.name for suite in self._suites if suite.name), attributes)

    def _end(self, name: str) -> None:
        tag = self._open.pop()
        if tag in ("testsuite", "testsuites") and self._case is None:
            self.report.suites.append(self._suites.pop())
        elif tag == "testcase" and "testcase" not in self._open and self._case is not None:
            self._end_case(self._case)
        elif self._element is not None and tag == self._element.tag and self._case is not None:
            self._element.text = "".join(self._text)
            self._case.bad += tag in ("failure", "error")
            if len(self._case.elements) < 20:
                self._case.elements.append(self._element)
            self._element = None

    def _end_case(self, case: XmlCase) -> None:
        self.report.cases.append(case)
        self._case = None
        for suite in self._suites:
            suite.bad += case.bad

    def _characters(self, data: str) -> None:
        if self._element is not None and self._text_size < LARGEST_TEXT:
            self._text.append(data[: LARGEST_TEXT - self._text_size])
            self._text_size += len(data)


def _declared(attributes: dict[str, str]) -> int:
    total = 0
    for key in ("failures", "errors"):
        value = attributes.get(key, "")
        total += int(value) if value.isascii() and value.isdigit() and len(value) < 9 else 0
    return total
