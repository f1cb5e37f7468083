"""`becket agent spend` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.cli.output import columns, note, say
from becket.cli.plain import clock, money, took
from becket.parts.agents import words

if TYPE_CHECKING:
    from becket.app.record.agent_spend import BudgetLeft, Spending, SpendTotal

_PERIODS = {"day": "today", "month": "this month"}


def show(found: Spending) -> None:
    if not found.total.calls:
        note(words.SPEND_NONE.format(since=clock(found.since)))
    else:
        head = (found.by.value, "calls", "time", "turns", "tokens", "cached", "money", "outcomes")
        rows = [*found.rows, found.total] if len(found.rows) > 1 else found.rows
        columns(head, [_row(each) for each in rows])
    for left in found.budgets:
        say(_left(left))
    if found.total.unpriced:
        note(words.SPEND_UNPRICED.format(count=_calls(found.total.unpriced)))
    if found.total.open:
        note(words.SPEND_OPEN.format(count=_calls(found.total.open)))


def _row(spent: SpendTotal) -> tuple[str, ...]:
    outcomes = [f"{count} {name.replace('_', ' ')}" for name, count in spent.outcomes.items()]
    outcomes += [f"{spent.open} open"] if spent.open else []
    outcomes += [f"{spent.overshot} over a limit"] if spent.overshot else []
    return (
        spent.key, str(spent.calls), took(spent.seconds), str(spent.turns),
        f"{spent.tokens:,}" if spent.tokens or spent.calls > spent.unpriced else words.NOT_TOLD,
        f"{spent.cached_tokens:,}", money(spent.usd, not spent.unpriced), ", ".join(outcomes),
    )  # fmt: skip


def _left(left: BudgetLeft) -> str:
    scope = f", {left.scope}" if left.scope else ""
    return words.SPEND_LEFT.format(
        period=_PERIODS[left.period], scope=scope, left=amount(left.kind, left.left), most=amount(left.kind, left.most)
    )


def amount(kind: str, value: float) -> str:
    """So much of one kind of budget."""
    if kind == "usd":
        return money(value)
    return took(value) if kind == "agent_time" else f"{value:,.0f} tokens"


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"
