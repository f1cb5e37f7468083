"""Amounts of calls: what is booked, what counts as used, what was overshot."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from becket.kernel.contract.agent import Limits, Usage
from becket.kernel.contract.calls import AgentCall, BudgetSpent, CallGrant, CallRequest, amounts_used, booking, overshot

LIMITS = Limits(seconds=60.0, turns=3, tokens=100, usd=0.5)


def test_a_call_is_booked_at_all_it_may_use() -> None:
    assert booking(LIMITS) == {"agent_time": 60.0, "tokens": 100.0, "usd": 0.5}
    assert booking(Limits(seconds=1.5)) == {"agent_time": 1.5}, "what has no limit cannot be booked"


def test_all_tokens_count_and_what_a_call_overshot_is_counted_and_told() -> None:
    usage = Usage(seconds=64.0, turns=3, input_tokens=90, cached_tokens=80, output_tokens=20, usd=0.75)
    assert amounts_used(usage, LIMITS) == {"agent_time": 64.0, "tokens": 110.0, "usd": 0.75}
    assert overshot(usage, LIMITS) == ("seconds: 64 of 60", "tokens: 110 of 100", "usd: 0.75 of 0.5")
    assert overshot(usage, Limits(seconds=61.0)) == (), "to end a program takes a moment"


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf, -0.01])
def test_a_figure_that_is_no_amount_counts_as_all_that_was_booked(figure: float) -> None:
    """L21: NaN makes every comparison false; a negative price would earn money."""
    said = Usage(seconds=figure, usd=figure)
    assert amounts_used(said, LIMITS) == {"agent_time": 60.0, "tokens": 0.0, "usd": 0.5}
    assert amounts_used(said, Limits(seconds=9.0)) == {"agent_time": 9.0, "tokens": 0.0, "usd": 0.0}


def test_a_spent_budget_is_said_in_plain_words_and_never_tried_again() -> None:
    error = BudgetSpent("the usd budget of today", 4.98, 5.0)
    assert str(error) == "the usd budget of today is used up (4.98 of 5)"
    assert (error.kind, error.retryable) == ("budget_exhausted", False)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.01, math.nan])
def test_a_share_is_a_part_of_what_is_left(share: float) -> None:
    with pytest.raises(ValidationError):
        CallRequest(label="a", agent="fixer", driver="codex", limits=LIMITS, share=share)


def test_a_call_that_was_left_open_can_be_settled_with_what_the_journal_knows() -> None:
    call = AgentCall(
        call_id="c", run_id="r", loop_id="heal", iteration=1, step_id="fix", agent="fixer", driver="codex", model="",
        limits=LIMITS, began_at=1.0,
    )  # fmt: skip
    assert call.grant == CallGrant(call_id="c", limits=LIMITS)
