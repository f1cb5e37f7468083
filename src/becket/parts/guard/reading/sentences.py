"""The guard's findings as sentences: for the agent that made the change, and for the person who is asked about it."""

from __future__ import annotations

from collections.abc import Sequence

from becket.kernel.contract.guard import ChangeClass, ClassFinding, Classification, GuardRule, Refusal
from becket.parts.guard.reading import words

MOST_TOLD = 20
MOST_ASKED = 5
LONGEST = 300


def against(refusals: Sequence[Refusal], reading: Classification) -> list[str]:
    """Which rule or power, which file and line, and the way out: what does not let a change pass by itself."""
    told = [*map(str, refusals), *(_power(one) for one in reading.findings if one.kind is ChangeClass.powerful)]
    return _first([_line(each) for each in told], MOST_TOLD)


def asked(refusals: Sequence[Refusal]) -> str:
    """The first line of the question; what comes first is what would run before all else."""
    rules = {refusal.rule for refusal in refusals}
    if GuardRule.setup_files in rules:
        return words.MAY_CHANGE_SETUP
    return words.MAY_CHANGE_GATE if GuardRule.gate_definition in rules else words.MAY_CHANGE_TESTS


def question(refusals: Sequence[Refusal], reading: Classification) -> str:
    """What a person is asked about: one line for each of the first findings, and how many more there are.

    A yes is about the whole change, so what it newly can do is told as well.
    """
    tests = _first([_line(f"{_place(one)} {one.rule}: {one.message}") for one in refusals], MOST_ASKED)
    can = [one for one in reading.findings if one.kind is reading.kind]
    return "\n".join((*tests, *_first([_line(f"{one.kind}: {one}") for one in can], MOST_ASKED)))


def _power(finding: ClassFinding) -> str:
    shown = f": {finding.shown}" if finding.shown else ""
    return f"{_place(finding)}: {finding.power}: {finding.message}{shown}"


def _place(item: Refusal | ClassFinding) -> str:
    return f"{item.path}:{item.line}" if item.line else item.path


def _line(text: str) -> str:
    """One line that every store can hold, whatever a file is called."""
    shown = " ".join(text.replace("\0", "\ufffd").encode(errors="replace").decode().split())
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _first(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]
