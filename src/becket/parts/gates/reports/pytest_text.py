"""pytest's terminal output: short summary, verbose lines, progress, xdist; and the signs of a session that broke off.

A session counts only if pytest itself wrote its last line. Ids are pytest's node ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode
from becket.parts.gates.reports.book import CaseBook, Draft, worse
from becket.parts.gates.reports.files import with_files
from becket.parts.gates.reports.pytest_blocks import Block, blocks_of, describe
from becket.parts.gates.reports.text import lines_of
from becket.parts.gates.reports.tree import Tree

LARGEST = 64_000_000
LONGEST_ID = 4_000
MOST_SPLITS = 50

_WORDS = {
    "PASSED": CaseOutcome.passed,
    "FAILED": CaseOutcome.failed,
    "ERROR": CaseOutcome.error,
    "SKIPPED": CaseOutcome.skipped,
    "XFAIL": CaseOutcome.xfailed,
    "XPASS": CaseOutcome.xpassed,
    "SUBFAILED": CaseOutcome.failed,
    "SUBFAIL": CaseOutcome.failed,
}
_WORD = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS"
_HEADER = re.compile(r"^=+ (.{1,200}?) =+$")
_END = re.compile(
    r"^(?:=+ )?((?:\d{1,9} [a-z][a-z ]{1,30}(?:, )?)+|no tests (?:ran|collected)[^=]{0,60}?)"
    r" in [\d.]{1,20}s(?: \([\d:, a-z]{1,40}\))?(?: =+)?$"
)
_COUNT = re.compile(r"(\d{1,9}) ([a-z]+)")
_NESTED = re.compile(
    r"^(?:_+ .{1,300} _+|-+ Captured .{1,60} -+"
    r"|=+ (?:ERRORS|FAILURES|PASSES|XPASSES|warnings summary.*|short test summary info) =+)$"
)
_PERCENT = re.compile(r"\s*\[\s*\d{1,3}%\]$")
_XDIST = re.compile(rf"^\[gw\d+\] \[\s*\d+%\] ({_WORD}) (\S.*?)\s*$")
_SUMMARY = re.compile(rf"^({_WORD}|SUBFAIL(?:ED)?)(?:[\[(].{{0,200}}?[\])])? (\S.*)$")
_SKIPS = re.compile(r"^SKIPPED \[(\d{1,9})\] ")
_COLLECTED = re.compile(
    r"^(?:collecting \.\.\. )?collected (\d{1,9}) items?(?: / .*?(\d{1,9}) selected)?"
    r"|^\d+ workers? \[(\d{1,9}) items?\]"
)
_STOPPED = re.compile(r"^!{3,} (.{1,300}?) !{3,}$")


@dataclass(slots=True)
class _Session:
    """One run of pytest within the output."""

    lines: Sequence[str]
    end: int | None  # index of the line that pytest writes last
    counts: Counter[str] = field(default_factory=Counter)


def read_pytest(output: bytes, tree: Tree, book: CaseBook) -> None:
    if len(output) > LARGEST:
        book.problem(ProblemCode.too_large, "pytest's output is too large to read; let it write `--junitxml` instead")
        return
    drafts: dict[str, Draft] = {}
    for session in _sessions(list(lines_of(output))):
        for name, draft in _read_session(session, tree, book).items():
            known = drafts.get(name)
            drafts[name] = draft if known is None else replace(draft, outcome=worse(known.outcome, draft.outcome))
    for draft in with_files(drafts.values()):
        book.add(draft)


def _sessions(lines: list[str]) -> Iterator[_Session]:
    """Sessions one after another. A last line that more of a session follows belongs to a pytest that a test ran."""
    ends = [index for index, line in enumerate(lines) if _END.match(line)]
    start = 0
    for number, end in enumerate(ends):
        until = ends[number + 1] if number + 1 < len(ends) else len(lines)
        if _goes_on(lines, end + 1, until):
            continue
        yield _Session(lines[start : end + 1], end - start, _counts(lines[end]))
        start = end + 1
    rest = lines[start:]
    if start == 0 or any((match := _HEADER.match(line)) and match[1] == "test session starts" for line in rest):
        yield _Session(rest, None)


def _goes_on(lines: list[str], start: int, until: int) -> bool:
    for line in lines[start:until]:
        header = _HEADER.match(line)
        if header and header[1] == "test session starts":
            return False
        if _NESTED.match(line):
            return True
    return False


def _counts(end_line: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    match = _END.match(end_line)
    for number, word in _COUNT.findall(match[1] if match else ""):
        counts[word.removesuffix("s") if word in ("errors", "warnings") else word] += int(number)
    return counts


def _read_session(session: _Session, tree: Tree, book: CaseBook) -> dict[str, Draft]:
    progress, middle, summary = _parts(session)
    outcomes: dict[str, CaseOutcome] = {}
    messages: dict[str, str] = {}
    passed = set()
    skips = 0
    for name, outcome in _verbose(progress):
        outcomes[name] = worse(outcomes.get(name, outcome), outcome)
        passed |= {name} if outcome is CaseOutcome.passed else set()
    for line in summary:
        skipped = _SKIPS.match(line)
        match = None if skipped else _SUMMARY.match(line)
        skips += int(skipped[1]) if skipped else 0
        if match is None or (match[1] == "ERROR" and match[2].startswith(": ")):
            continue
        name, message = _split(match[2], outcomes)
        outcome = _WORDS[match[1]]
        outcomes[name] = worse(outcomes.get(name, outcome), outcome)
        passed |= {name} if outcome is CaseOutcome.passed else set()
        messages.setdefault(name, message)
    found = blocks_of(middle)
    details = describe(found, [name for name, outcome in outcomes.items() if outcome.bad], tree)
    for name, block in _only_in_blocks(found, outcomes, details, tree):
        outcomes[name] = CaseOutcome.error if block.is_error else CaseOutcome.failed
    _count_the_rest(session, outcomes, passed, book)
    _find_problems(session, progress, outcomes, book)
    return {
        name: _draft(name, outcome, messages.get(name, ""), details.get(name)) for name, outcome in outcomes.items()
    }


def _draft(name: str, outcome: CaseOutcome, message: str, detail: Draft | None) -> Draft:
    file = name.partition("::")[0]
    own = file if file.endswith(".py") else None
    if detail is None:
        return Draft(id=name, outcome=outcome, message=message, file=own)
    return replace(detail, id=name, outcome=outcome, message=detail.message or message, file=detail.file or own)


def _parts(session: _Session) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Progress, then failures and the like, then the short summary: the last one before the end."""
    lines = session.lines[: session.end]
    first = last = None
    for index, line in enumerate(lines):
        header = _HEADER.match(line)
        if header is None or header[1] == "test session starts":
            continue
        if first is None:
            first = index
        if header[1] == "short test summary info":
            last = index
    if first is None:
        return lines, (), ()
    return (
        (lines[:first], lines[first:last], lines[last + 1 :])
        if last is not None
        else (lines[:first], lines[first:], ())
    )


def _verbose(progress: Sequence[str]) -> Iterator[tuple[str, CaseOutcome]]:
    for line in progress:
        if match := _XDIST.match(line):
            yield match[2], _WORDS[match[1]]
        elif "::" in line and (told := _told_verbosely(line)) is not None:
            yield told


def _told_verbosely(line: str) -> tuple[str, CaseOutcome] | None:
    """`id WORD (reason)   [ 12%]`. Taken from the end: a parameter may hold any of the words."""
    line = _PERCENT.sub("", line[-LONGEST_ID:]).rstrip()
    for word in _WORD.split("|"):
        if line.endswith(f" {word}"):
            return line.removesuffix(f" {word}"), _WORDS[word]
    if not line.endswith(")"):
        return None
    at, word = max((line.rfind(f" {word} ("), word) for word in _WORD.split("|"))
    return (line[:at], _WORDS[word]) if at > 0 and "::" in line[:at] else None


def _split(text: str, known: dict[str, CaseOutcome]) -> tuple[str, str]:
    """`id - message`; a parameter may itself hold ` - `."""
    at = -1
    for _ in range(MOST_SPLITS):
        at = text.find(" - ", at + 1)
        if at < 0:
            break
        name = text[:at]
        if name in known or "[" not in name or name.endswith("]"):
            return name, text[at + 3 :]
    return text.rstrip(), ""


def _only_in_blocks(
    blocks: list[Block], outcomes: dict[str, CaseOutcome], details: dict[str, Draft], tree: Tree
) -> Iterator[tuple[str, Block]]:
    """Failures that only their traceback names: old versions and `-r N` write no summary."""
    for block in blocks:
        if not block.told:
            name, draft = block.standalone(tree)
            if name not in outcomes:
                details[name] = draft
                yield name, block


def _count_the_rest(session: _Session, outcomes: dict[str, CaseOutcome], passed: set[str], book: CaseBook) -> None:
    named = Counter(outcomes.values())
    counts = session.counts
    book.unnamed_passed += max(0, counts["passed"] - len(passed))
    book.unnamed_skipped += max(0, counts["skipped"] - named[CaseOutcome.skipped])
    bad = counts["failed"] + counts["error"]
    if bad and not named[CaseOutcome.failed] + named[CaseOutcome.error]:
        book.problem(ProblemCode.mismatch, f"pytest counts {bad} failures and names none of them; run it with -rfE")


def _find_problems(
    session: _Session, progress: Sequence[str], outcomes: dict[str, CaseOutcome], book: CaseBook
) -> None:
    broken = next((line for line in reversed(progress) if line.startswith("INTERNALERROR>")), None)
    if broken:
        book.problem(ProblemCode.crashed, f"pytest broke: {broken.removeprefix('INTERNALERROR>').strip()}")
    if session.end is None:
        if not broken:
            _never_ended(session, book)
        return
    for line in session.lines[max(0, session.end - 6) : session.end]:
        if stopped := _STOPPED.match(line):
            book.problem(ProblemCode.incomplete, f"pytest stopped early: {stopped[1]}")
            return
    collected = next((match for line in progress if (match := _COLLECTED.match(line))), None)
    expected = int(collected[3] or collected[2] or collected[1]) if collected else 0
    told = sum(session.counts[word] for word in ("passed", "failed", "skipped", "xfailed", "xpassed", "error"))
    if told < expected:
        book.problem(ProblemCode.incomplete, f"pytest collected {expected} tests and reports on {told}")


def _never_ended(session: _Session, book: CaseBook) -> None:
    telling = [line for line in session.lines if line.startswith(("E   ", "ERROR", "Error:", "ImportError while"))]
    fatal = [line for line in session.lines if "Fatal Python error" in line]
    last = (fatal or telling or [line for line in session.lines if line.strip()] or [""])[-1]
    why = last.removeprefix("E   ").strip()
    book.problem(ProblemCode.incomplete, f"pytest did not come to its end: {why or 'it wrote nothing'}")
