"""What agents used, added up; a price that nobody knows stays unknown in every sum."""

from __future__ import annotations

import time

from becket.app.record.agent_spend import SpendGrouping, added, grouped, limits_of
from becket.kernel.contract.agent import AgentOutcome, Limits, PriceSource, Usage
from becket.kernel.contract.calls import AgentCall, CallEnd
from becket.kernel.contract.config import Budgets

NOON = time.mktime((2026, 11, 16, 12, 0, 0, 0, 0, -1))


def call(number: int, agent: str = "fixer", day: int = 0, **end: object) -> AgentCall:
    known = {"outcome": AgentOutcome.changed, "usage": Usage(seconds=1, turns=2, input_tokens=3, output_tokens=4)}
    return AgentCall(
        call_id=f"c{number}", run_id=f"run_{number}", loop_id="once", iteration=1, step_id="call", agent=agent,
        driver="codex", model="", limits=Limits(seconds=9), began_at=NOON - day * 86_400,
        end=None if end.get("open") else CallEnd(**{**known, **end}),  # type: ignore[arg-type]
    )  # fmt: skip


def test_calls_add_up_and_unknown_prices_are_counted_not_hidden() -> None:
    priced = Usage(seconds=2, turns=1, input_tokens=10, usd=0.5, priced=PriceSource.table)
    total = added("all", [call(1), call(2, usage=priced, over=("turns: 3 of 2",)), call(3, open=True)])
    assert (total.calls, total.open, total.overshot) == (3, 1, 1)
    assert (total.seconds, total.turns, total.tokens) == (3, 3, 17)
    assert (total.usd, total.unpriced) == (0.5, 1)
    assert total.outcomes == {"changed": 2}


def test_calls_are_grouped_by_what_is_asked_newest_first() -> None:
    calls = [call(1), call(2, "other", outcome=AgentOutcome.crashed), call(3, day=1)]
    assert [each.key for each in grouped(calls, SpendGrouping.agent)] == ["fixer", "other"]
    assert [(each.key, each.calls) for each in grouped(calls, SpendGrouping.day)] == [
        ("2026-11-16", 2),
        ("2026-11-15", 1),
    ]
    assert [each.key for each in grouped(calls, SpendGrouping.run)] == ["run_1", "run_2", "run_3"]
    assert [each.calls for each in grouped(calls, SpendGrouping.loop)] == [3]


def test_every_bounded_budget_is_named_and_no_other() -> None:
    budgets = Budgets.model_validate(
        {"day": {"usd": 5}, "loops": {"heal": {"month": {"tokens": 9, "agent_time": "1h"}}}}
    )
    assert list(limits_of(budgets)) == [
        ("", "day", "usd", 5.0),
        ("heal", "month", "agent_time", 3600.0),
        ("heal", "month", "tokens", 9.0),
    ]
