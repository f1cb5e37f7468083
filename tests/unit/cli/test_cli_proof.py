"""What `becket runs show` tells of a proof, and how reports write what is not theirs."""

from __future__ import annotations

import pytest
from rich.console import Group
from tales import TESTS, decision, story, text_of

from becket.app.record.report import model as told_by
from becket.app.record.report.collect import CurrentFacts, report_of
from becket.app.record.report.html import html_of
from becket.app.record.report.markdown import code, markdown_of, plain, table
from becket.app.record.report.plain import took
from becket.cli.proof import MOST_DIFF_LINES, MOST_SUMMARY_LINES, proof_sections
from becket.cli.story import render_story


class Nothing:
    """No artifact is there."""

    def check(self, digest: str) -> bool:
        return False

    def read(self, digest: str, limit: int | None = None) -> bytes:
        raise AssertionError("nothing is read that was not checked")


SHORT = story(TESTS, decision("again", "stop_conditions_unmet"))
PLAIN = report_of(SHORT, Nothing(), CurrentFacts({"usd": 0.5, "tokens": 0.0}))


def test_a_run_without_gates_is_told_as_before() -> None:
    assert list(proof_sections(PLAIN)) == []
    assert text_of(render_story(SHORT, report=PLAIN)) == text_of(render_story(SHORT))


def test_a_run_without_gates_has_a_report_too() -> None:
    text, page = markdown_of(PLAIN), html_of(PLAIN)
    for shown in (text, page):
        assert "At work" in shown
        assert "0.5000" in shown
        assert "discover" in shown
        assert "Gates" not in shown
    assert "tokens" not in PLAIN.spend, "what was not spent is not told"


def gate(color: str, summary: str = "") -> told_by.GateFacts:
    step = told_by.GateStepFacts(
        step="unit", color=color, tests_run=3, seconds=1.5, exit_code=1, end="exited", failing=("t",), failed=1,
        reasons=(),
        receipt="c" * 64, log="d" * 64, reused_from="run_0",
    )  # fmt: skip
    return told_by.GateFacts(
        iteration=1, action="bf", of="base", gate="fast", commit="a" * 40, defined_by="a" * 40, color=color,
        receipt="e" * 64, steps=(step,), summary=summary,
    )  # fmt: skip


def change(diff: str, left_out: int = 0) -> told_by.ChangeFacts:
    return told_by.ChangeFacts(
        iteration=1, action="cand", kind="repair", commit="b" * 40, parent="a" * 40, patch="f" * 64, files=(),
        diff=diff, left_out=left_out,
    )  # fmt: skip


def shown(**parts: object) -> str:
    return text_of(Group(*proof_sections(PLAIN.model_copy(update=parts))), width=120)


def test_a_step_of_an_exit_code_claims_no_test_in_any_form() -> None:
    counted = gate("green")
    uncounted = counted.model_copy(
        update={"steps": (counted.steps[0].model_copy(update={"counts_tests": False, "tests_run": 1}),)}
    )
    text = " ".join(shown(gates=(uncounted,)).split())
    assert "exit code 1, no tests counted" in text
    assert "1 test" not in text
    report = PLAIN.model_copy(update={"gates": (uncounted,)})
    assert "exit code 1, no tests counted" in markdown_of(report)
    assert "exit code 1, no tests counted" in html_of(report)


def test_a_red_step_shows_its_summary_and_a_green_one_does_not() -> None:
    text = shown(gates=(gate("red", "step unit: 1 failing\n\x1b[31mFAIL t\n"),))
    assert "base fast red  at aaaaaaaa" in text
    assert "unit  red  3 tests, 1 failing  1.50s  receipt cccccccc of run_0" in text
    assert "FAIL t" in text
    assert "\x1b" not in text
    assert "step unit" not in shown(gates=(gate("green", "step unit: 1 failing"),))


def test_long_summaries_and_diffs_are_cut_and_say_so() -> None:
    text = shown(
        gates=(gate("red", "x\n" * (MOST_SUMMARY_LINES + 2)),), changes=(change("+y\n" * MOST_DIFF_LINES + "+y", 4),)
    )
    assert "... 2 lines more" in text
    assert "... 5 lines more; `becket runs report run_1` has them" in text


def test_evidence_that_is_gone_is_said() -> None:
    assert "the patch is gone" in shown(lost=("the patch is gone",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case stays", "snake_case stays"),
        ("_not_ this", r"\_not\_ this"),
        ("# heading", r"\# heading"),
        ("[a](javascript:x) <b> & `c`", r"\[a\](javascript:x) \<b\> \& \`c\`"),
        ("two\nlines\x1b[1m", "two lines"),
    ],
)
def test_untrusted_text_is_text_in_markdown(text: str, expected: str) -> None:
    """L24."""
    assert plain(text) == expected


def test_code_spans_and_cells_hold_what_they_are_given() -> None:
    assert code("a `b` ``c``") == "``` a `b` ``c`` ```"
    assert table(("x",), [(code("a|b"),), (plain("a|b"),)]).splitlines()[2:] == [r"| `a\|b` |", r"| a\|b |"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(-1, "0.00 s"), (9.999, "10.0 s"), (59.99, "1 min 00 s"), (3661, "1 h 01 min")]
)
def test_durations(seconds: float, said: str) -> None:
    assert took(seconds) == said
