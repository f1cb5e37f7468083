"""How an end is told, from the report alone. What a person sees of it is in tests/acceptance/test_ends.py."""

from __future__ import annotations

import pytest
import report_samples as samples

from becket.app.record.report import model as told
from becket.app.record.report.ending import cause, ending_of
from becket.app.record.report.markdown import markdown_of

SUMMARY = "step unit: 1 failing\nFAIL tests/test_gcd.py::test_gcd  at tests/test_gcd.py:9\n    assert 1 == 2\n\n--- log"
TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nOSError: the disk is full'


def ended(reason: str, status: str = "ready_for_handoff", **more: object) -> told.EndFacts:
    run = samples.run(status, reason).model_copy(
        update={"subject": f"main@{samples.BASE}", "detail": more.pop("detail", {}), "loop_id": "heal"}
    )
    red = samples.gate("base", "red", failing=("test_gcd",), summary=SUMMARY)
    report = samples.proven().model_copy(update={"run": run, "gates": (red,), "conditions": (), **more})
    end = ending_of(report)
    assert end is not None
    return end


@pytest.mark.parametrize(
    ("reason", "headline", "following"),
    [
        ("repair_ready", "a proven repair by fixer waits for you", "becket proposals accept "),
        ("proposed", "a proven repair by fixer waits for you", "becket proposals accept "),  # as older journals have it
        ("no_agent", "no agent is configured that could repair it", "becket run heal"),
        ("agent_gave_up", "fixer gave up", "becket runs show "),
        ("never_green", "it was never green here, so no agent was called", "becket gates try"),
        ("agent.auth_missing", "fixer has no login or key", "becket doctor"),
    ],
)
def test_a_red_branch_is_named_with_its_commit_and_what_keeps_it_red(
    reason: str, headline: str, following: str
) -> None:
    end = ended(reason, calls=(samples.call("fixer", "changed"),))
    assert end.headline == f"main is red at {samples.BASE[:7]}; {headline}"
    assert end.next.startswith(following)


def test_who_repairs_by_hand_reads_the_test_the_last_words_the_guard_and_the_hosts() -> None:
    detail = {
        "agent": "fixer", "said": "I think\nthe sign is wrong.", "denied": ["pypi.org:443"], "why": TRACE,
        "against": ["the guard sent it back: gcd.py:3: adds a power", "unit: 1 of 214 fail"],
    }  # fmt: skip
    assert ended("fix_exhausted", detail=detail, calls=()).lines == (
        "FAIL tests/test_gcd.py::test_gcd at tests/test_gcd.py:9",
        "    assert 1 == 2",
        "fixer said: I think the sign is wrong.",
        "fixer was not let reach pypi.org:443 (`hosts` in becket.yaml)",
        "OSError: the disk is full",
        "the guard sent it back: gcd.py:3: adds a power",
    )


def test_of_a_stack_trace_only_the_last_line_is_a_reason() -> None:
    assert cause(TRACE) == "OSError: the disk is full"
    assert cause("one\ntwo") == "one two"


def test_the_condition_itself_may_name_the_next_command() -> None:
    assert ended("contended", detail={"next": "becket proposals accept run_1"}).next == "becket proposals accept run_1"


def test_an_open_run_has_no_end_and_a_report_begins_with_it_where_there_is_one() -> None:
    assert ending_of(samples.running()) is None
    report = samples.proven()
    told_end = markdown_of(report.model_copy(update={"end": ending_of(report)}))
    assert f"Next: `{ending_of(report).next}`" in told_end  # type: ignore[union-attr]


def test_tokens_that_nobody_told_are_not_nought() -> None:
    silent = samples.call(
        "fixer", "changed", priced="unknown", turns=0, input_tokens=0, cached_tokens=0, output_tokens=0
    )
    assert "not told" in markdown_of(samples.proven().model_copy(update={"calls": (silent,)}))
