"""TAP, versions 12 to 14: plans, nested subtests, directives, diagnostics, bail out. Ids are paths of descriptions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode
from becket.parts.gates.reports.book import CaseBook, Draft
from becket.parts.gates.reports.places import find_place
from becket.parts.gates.reports.tap_yaml import diagnostics, place_of
from becket.parts.gates.reports.text import lines_of, seconds_of
from becket.parts.gates.reports.tree import Tree

DEEPEST = 40
MOST_LINES = 200
MOST_POINTS = 200_000

_POINT = re.compile(r"^(not )?ok\b(?: +(\d{1,9})\b)?(?: *- *| +|$)(.*)$")
_PLAN = re.compile(r"^1\.\.(\d{1,9})(?:\s*#\s*(.*))?$")
_BAIL = re.compile(r"^Bail out!\s*(.*)$", re.IGNORECASE)
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)\S*(?:\s+(.*))?$", re.IGNORECASE)
_TIME = re.compile(r"(?<!\\)#\s*time=([\d.]{1,20})(ms|s)\s*$")
_NOT_ASSERTED = frozenset(
    {
        "hookFailed",
        "cancelledByParent",
        "parentAlreadyFinished",
        "testTimeoutFailure",
        "testAborted",
        "uncaughtException",
        "unhandledRejection",
    }
)


@dataclass(slots=True)
class _Point:
    ok: bool
    number: int | None
    name: str
    directive: str = ""
    reason: str = ""
    seconds: float | None = None
    children: list[_Point] = field(default_factory=list)
    yaml: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """The points at one depth that no parent has claimed yet, and the plan for them."""

    points: list[_Point] = field(default_factory=list)
    plan: int | None = None
    skip_all: str | None = None


class _Reader:
    def __init__(self, book: CaseBook) -> None:
        self._book = book
        self._levels: list[_Level] = [_Level()]
        self._count = 0
        self._yaml: tuple[int, _Point] | None = None
        self.is_tap = False

    def feed(self, line: str) -> None:
        if self._yaml is not None:
            self._diagnostic(*self._yaml, line)
            return
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        depth = indent // 4
        if depth >= DEEPEST:
            self._book.problem(ProblemCode.malformed, f"the subtests nest deeper than {DEEPEST}")
        elif point := _POINT.match(text):
            self._point(depth, point)
        elif plan := _PLAN.match(text):
            self._plan(depth, plan)
        elif bail := _BAIL.match(text):
            self.is_tap = True
            self._book.problem(ProblemCode.crashed, f"the tests bailed out: {bail[1] or 'no reason was given'}")
        elif text == "}" and depth + 1 < len(self._levels):
            self._close(depth)
        else:
            self._note(indent, text)

    def _point(self, depth: int, match: re.Match[str]) -> None:
        self.is_tap = True
        self._count += 1
        if self._count > MOST_POINTS:
            self._book.problem(ProblemCode.too_large, f"the TAP output has more than {MOST_POINTS} points")
            return
        while len(self._levels) <= depth:
            self._levels.append(_Level())
        point = _described(match)
        self._claim(depth, point)
        self._levels[depth].points.append(point)

    def _claim(self, depth: int, point: _Point) -> None:
        """The deeper points before a point are its subtests."""
        while len(self._levels) > depth + 1:
            level = self._levels.pop()
            self._settle(level, point.name or f"test {point.number}")
            if len(self._levels) > depth + 1:
                self._levels[-1].points += level.points  # a depth was left out; keep its points all the same
            else:
                point.children = level.points

    def _close(self, depth: int) -> None:
        """The brace after a buffered subtest: its parent came first."""
        if self._levels[depth].points:
            self._claim(depth, self._levels[depth].points[-1])

    def _plan(self, depth: int, plan: re.Match[str]) -> None:
        self.is_tap = True
        while len(self._levels) <= depth:
            self._levels.append(_Level())
        level = self._levels[depth]
        if level.plan is not None and depth == 0:
            self._book.problem(ProblemCode.mismatch, "the TAP output has more than one plan")
        level.plan = int(plan[1])
        if plan[1] == "0":
            level.skip_all = plan[2] or ""

    def _settle(self, level: _Level, name: str) -> None:
        if level.plan is not None and level.plan != len(level.points):
            text = f"{name} planned {level.plan} tests and has {len(level.points)}"
            self._book.problem(ProblemCode.mismatch, text)

    def _note(self, indent: int, text: str) -> None:
        points = self._levels[-1].points
        if not points:
            return
        if text == "---" and indent >= 2:
            self._yaml = (indent, points[-1])
        elif text and len(points[-1].notes) < MOST_LINES and not text.startswith("# Subtest"):
            points[-1].notes.append(text.removeprefix("#").strip())

    def _diagnostic(self, indent: int, point: _Point, line: str) -> None:
        if line.strip() == "..." and len(line) - len(line.lstrip(" ")) <= indent:
            self._yaml = None
        elif len(point.yaml) < MOST_LINES:
            point.yaml.append(line)

    def end(self) -> list[_Point]:
        if self._yaml is not None:
            self._book.problem(ProblemCode.incomplete, "the TAP output ends inside the diagnostics of a test")
        if len(self._levels) > 1:
            self._book.problem(ProblemCode.incomplete, "the TAP output ends inside a subtest")
            orphans = _Point(False, None, "unfinished test")
            self._claim(0, orphans)
            self._levels[0].points.append(orphans)
        top = self._levels[0]
        if self.is_tap and top.plan is None:
            self._book.problem(
                ProblemCode.incomplete, "the TAP output has no plan, so nobody can tell whether all tests ran"
            )
        self._settle(top, "the TAP output")
        if top.skip_all is not None and not top.points:
            top.points.append(_Point(True, None, "all tests", "skip", top.skip_all))
        return top.points


def read_tap(output: bytes, tree: Tree, book: CaseBook) -> None:
    reader = _Reader(book)
    for line in lines_of(output):
        reader.feed(line.rstrip().replace("\t", "    "))
    points = reader.end()
    if not reader.is_tap:
        book.problem(ProblemCode.missing, "there is no TAP in the step's output")
    _add(points, (), tree, book)


def _add(points: list[_Point], path: tuple[str, ...], tree: Tree, book: CaseBook) -> None:
    for position, point in enumerate(points, 1):
        name = point.name or f"test {point.number if point.number is not None else position}"
        is_file = name.startswith("/")  # node's runner: a file without a test of its own stands as a point
        name = tree.relative(name) if is_file else name
        _add(point.children, (*path, name), tree, book)
        draft = _draft(point, " > ".join((*path, name)), tree)
        book.add(replace(draft, group=True) if is_file and point.ok else draft)


def _draft(point: _Point, name: str, tree: Tree) -> Draft:
    found = diagnostics(point.yaml)
    own = place_of(found, tree)
    outcome = _outcome(point, found.get("failureType", ""))
    text = "\n".join(point.yaml or point.notes)
    place = (find_place(found.get("stack", "") or "\n".join(point.notes), tree) or own) if outcome.bad else None
    message = found.get("error") or found.get("message") or found.get("diff") or "\n".join(point.notes[:6])
    return Draft(
        id=name,
        outcome=outcome,
        seconds=point.seconds if point.seconds is not None else seconds_of(found.get("duration_ms"), 0.001),
        message=message if outcome.bad else point.reason,
        file=place.file if place else None,
        line=place.line if place else None,
        excerpt=text,
        group=bool(point.children) or found.get("type") == "suite",
        defined_in=own.file if own and found.get("location") else None,
    )


def _outcome(point: _Point, failure: str) -> CaseOutcome:
    if point.directive == "skip":
        return CaseOutcome.skipped
    if point.directive == "todo":
        return CaseOutcome.xpassed if point.ok else CaseOutcome.xfailed
    if point.ok:
        return CaseOutcome.passed
    return CaseOutcome.error if failure in _NOT_ASSERTED else CaseOutcome.failed


def _described(match: re.Match[str]) -> _Point:
    text = match[3].removesuffix(" {")
    seconds = None
    if timed := _TIME.search(text):
        seconds = seconds_of(timed[1], 0.001 if timed[2] == "ms" else 1.0)
        text = text[: timed.start()].rstrip()
    directive = _DIRECTIVE.search(text)
    if directive:
        text = text[: directive.start()]
    return _Point(
        ok=match[1] is None,
        number=int(match[2]) if match[2] else None,
        name=re.sub(r"\\([#\\])", r"\1", text.strip()),
        directive=directive[1].lower() if directive else "",
        reason=(directive[2] or "").strip() if directive else "",
        seconds=seconds,
    )
