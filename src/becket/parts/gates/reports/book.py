"""Where a parser writes down its cases; gives every case an id of its own, whatever the tool named twice."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from becket.kernel.engine.junit_xml import MOST_CASES
from becket.parts.gates.ports.report import CaseOutcome, Problem, ProblemCode, TestCase, TestReport
from becket.parts.gates.reports.text import clean

MOST_PROBLEMS = 20
LONGEST_ID = 1_000

_SEVERITY = {
    CaseOutcome.error: 5,
    CaseOutcome.failed: 4,
    CaseOutcome.xfailed: 3,
    CaseOutcome.xpassed: 2,
    CaseOutcome.passed: 1,
    CaseOutcome.skipped: 0,
}


def worse(one: CaseOutcome, other: CaseOutcome) -> CaseOutcome:
    """The outcome that counts where one test was reported twice: no later `ok` takes a failure back."""
    return one if _SEVERITY[one] >= _SEVERITY[other] else other


@dataclass(frozen=True, slots=True)
class Draft:
    """A case as a tool reported it. `where` tells cases of one id apart: the suite or the file it stood in."""

    id: str
    outcome: CaseOutcome
    where: str = ""
    seconds: float | None = None
    message: str = ""
    file: str | None = None
    line: int | None = None
    excerpt: str = ""
    group: bool = False
    defined_in: str | None = None


class CaseBook:
    """Cases and problems of one report, bounded."""

    def __init__(self, format_name: str, redact: Callable[[str], str] = str) -> None:
        self._format = format_name
        self._redact = redact
        self._drafts: list[Draft] = []
        self._problems: list[Problem] = []
        self.unnamed_passed = 0
        self.unnamed_skipped = 0

    @property
    def empty(self) -> bool:
        return not self._drafts and not self._problems

    def add(self, draft: Draft) -> None:
        if len(self._drafts) < MOST_CASES:
            self._drafts.append(draft)
        else:
            self.problem(ProblemCode.too_large, f"the report has more than {MOST_CASES} tests; the rest was not read")

    def problem(self, code: ProblemCode, text: str) -> None:
        found = Problem(code=code, text=self._redact(clean(text)))
        if found not in self._problems and len(self._problems) < MOST_PROBLEMS:
            self._problems.append(found)

    def report(self) -> TestReport:
        drafts = _without_secrets(self._drafts, self._redact)
        return TestReport(
            format=self._format,
            cases=tuple(_case(draft, self._redact) for draft in _with_ids_of_their_own(drafts)),
            problems=tuple(self._problems),
            unnamed_passed=max(0, self.unnamed_passed),
            unnamed_skipped=max(0, self.unnamed_skipped),
        )


def _case(draft: Draft, redact: Callable[[str], str]) -> TestCase:
    return TestCase(
        id=draft.id,
        outcome=draft.outcome,
        seconds=draft.seconds,
        message=redact(clean(draft.message).strip()),
        file=clean(draft.file) if draft.file else None,
        line=draft.line,
        excerpt=redact(clean(draft.excerpt).strip("\n")) if draft.outcome.bad else "",
        group=draft.group,
        defined_in=clean(draft.defined_in) if draft.defined_in else None,
    )


def _without_secrets(drafts: list[Draft], redact: Callable[[str], str]) -> list[Draft]:
    """What names a case, before names are compared: a parameter of a test may be a secret. Each by itself, so that it
    has the same name in every report; where nothing is found in all of them, there is nothing to do.
    """
    drafts = [replace(draft, id=clean(draft.id), where=clean(draft.where)) for draft in drafts]
    names = dict.fromkeys(name for each in drafts for name in (each.id, each.where, each.file, each.defined_in) if name)
    if redact(told := "\n".join(names)) == told:
        return drafts

    def hidden(name: str | None) -> str | None:
        return redact(name) if name else name

    return [
        replace(
            draft,
            id=redact(draft.id),
            where=redact(draft.where),
            file=hidden(draft.file),
            defined_in=hidden(draft.defined_in),
        )
        for draft in drafts
    ]


def _with_ids_of_their_own(drafts: list[Draft]) -> list[Draft]:
    """Doubles are told apart by where they stood, then by their order there; never by the order of suites."""
    named = [replace(draft, id=_short(draft.id.strip() or "unnamed test")) for draft in drafts]
    places: dict[str, set[str]] = defaultdict(set)
    for draft in named:
        places[draft.id].add(draft.where)
    named = [
        replace(draft, id=_short(f"{draft.where} > {draft.id}")) if draft.where and len(places[draft.id]) > 1 else draft
        for draft in named
    ]
    taken = {draft.id for draft in named}
    seen: Counter[str] = Counter()
    result, given = [], set()
    for draft in named:
        name = draft.id
        while name in given or (name != draft.id and name in taken):
            seen[draft.id] += 1
            name = f"{draft.id} #{seen[draft.id] + 1}"
        given.add(name)
        result.append(draft if name == draft.id else replace(draft, id=name))
    return result


def _short(name: str) -> str:
    if len(name) <= LONGEST_ID:
        return name
    return f"{name[:LONGEST_ID]}... {hashlib.sha256(name.encode()).hexdigest()[:12]}"
