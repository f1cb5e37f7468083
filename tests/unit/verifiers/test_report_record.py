"""Cases and reports: caps hold whoever makes them, and counts are derived."""

from __future__ import annotations

import pytest

from becket.kernel.contract.text import cap_text
from becket.parts.gates.ports.report import EXCERPT_CAP, MESSAGE_CAP, CaseOutcome, TestCase, TestReport


def test_a_text_within_the_cap_stays_as_it_is() -> None:
    assert cap_text("größe", 7) == "größe"


@pytest.mark.parametrize("most", [0, 1, 10, 60, 500])
def test_a_capped_text_never_exceeds_its_bytes(most: int) -> None:
    assert len(cap_text("日本語" * 1000, most).encode()) <= most


def test_the_cap_takes_from_the_middle_and_says_so() -> None:
    text = cap_text("begin " + "x" * 5000 + " end", 300)
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert "bytes left out" in text


def test_message_and_excerpt_are_capped_in_the_record_itself() -> None:
    case = TestCase(id="a", outcome=CaseOutcome.failed, message="m" * 9000, excerpt="é" * 9000)
    assert len(case.message.encode()) <= MESSAGE_CAP
    assert len(case.excerpt.encode()) <= EXCERPT_CAP


def test_counts_leave_containers_out_and_take_unnamed_tests_in() -> None:
    report = TestReport(
        format="go",
        cases=(
            TestCase(id="p", outcome=CaseOutcome.failed, group=True),
            TestCase(id="p::a", outcome=CaseOutcome.passed),
            TestCase(id="p::b", outcome=CaseOutcome.failed),
            TestCase(id="p::c", outcome=CaseOutcome.skipped),
        ),
        unnamed_passed=3,
    )
    assert report.tests_run == 5
    assert report.count(CaseOutcome.passed) == 4
    assert report.count(CaseOutcome.failed) == 1
    assert [case.id for case in report.executed] == ["p", "p::a", "p::b"]
    assert not report.names_every_test


def test_only_a_test_whose_assertions_held_counts_as_held() -> None:
    assert {outcome for outcome in CaseOutcome if outcome.held} == {CaseOutcome.passed, CaseOutcome.xpassed}
    assert {outcome for outcome in CaseOutcome if outcome.bad} == {CaseOutcome.failed, CaseOutcome.error}
