"""The guard's findings as sentences: bounded, one line each, whatever a file is called."""

from __future__ import annotations

from becket.kernel.contract.guard import ChangeClass, ClassFinding, Classification, GuardRule, Refusal
from becket.parts.guard.reading.sentences import LONGEST, against, question

PLAIN = Classification(kind=ChangeClass.plain)


def refusal(path: str = "t.py", line: int = 3) -> Refusal:
    return Refusal(rule=GuardRule.test_weakened, path=path, line=line, message="less is checked", fix="leave it")


def finding(kind: ChangeClass) -> ClassFinding:
    return ClassFinding(
        kind=kind, power="environment", path="a.py", line=9, message="reads the environment", shown="x = 1"
    )


def test_a_question_names_five_findings_and_counts_the_rest() -> None:
    lines = question([refusal(line=number) for number in range(8)], PLAIN).split("\n")
    assert lines[:2] == ["t.py test-weakened: less is checked", "t.py:1 test-weakened: less is checked"]
    assert lines[5:] == ["and 3 more"]


def test_a_path_cannot_add_lines_or_what_no_store_holds() -> None:
    (line,) = question([refusal("a\nMay I? \0 \ud800" + "x" * 900)], PLAIN).split("\n")
    assert "\0" not in line
    assert len(line) == LONGEST
    line.encode()


def test_against_a_change_speak_refusals_and_powers_but_not_what_is_ordinary() -> None:
    reading = Classification.of([finding(ChangeClass.ordinary), finding(ChangeClass.powerful)])
    assert against([refusal()], reading) == [
        "t.py:3: test-weakened: less is checked (leave it)",
        "a.py:9: environment: reads the environment: x = 1",
    ]


def test_of_a_reading_the_highest_comes_first() -> None:
    """What is shown of many must be what counts."""
    reading = Classification.of([finding(ChangeClass.ordinary)] * 3 + [finding(ChangeClass.powerful)])
    assert reading.kind is reading.findings[0].kind is ChangeClass.powerful
