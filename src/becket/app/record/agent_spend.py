"""What agents used: calls of the journal added up, and what the budgets still leave."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from enum import StrEnum

from pydantic import Field

from becket.app.compose import App
from becket.kernel.contract.agent import PriceSource
from becket.kernel.contract.base import Record
from becket.kernel.contract.calls import KINDS, AgentCall
from becket.kernel.contract.config import Budgets, PeriodBudgets
from becket.kernel.engine.money import day_of, month_of

DAY = 86_400.0


class SpendGrouping(StrEnum):
    """What the calls are added up by."""

    run = "run"
    day = "day"
    agent = "agent"
    loop = "loop"


class SpendTotal(Record):
    """Some calls, added up. Money nobody can tell is not in `usd`: `unpriced` says how many calls that are."""

    key: str
    calls: int
    open: int = 0  # at work, or nobody saw their end; only their bookings count
    seconds: float = 0.0
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    overshot: int = 0  # calls that passed a limit before they could be stopped
    outcomes: dict[str, int] = Field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class BudgetLeft(Record):
    """One budget of a period that runs now. Calls at work count as what they may use."""

    scope: str  # a loop's name, or empty: all loops together
    period: str  # day | month
    kind: str
    most: float
    used: float

    @property
    def left(self) -> float:
        return max(self.most - self.used, 0.0)


class Spending(Record):
    """The answer of `becket agent spend`."""

    since: float
    by: SpendGrouping
    rows: tuple[SpendTotal, ...]
    total: SpendTotal
    budgets: tuple[BudgetLeft, ...]


async def spending(app: App, days: int, by: SpendGrouping) -> Spending:
    """The last `days` days, today included, and every budget of becket.yaml as it stands now."""
    now = await app.store.now()
    since = day_of(now - (days - 1) * DAY)
    calls = await app.store.calls(since=since)
    return Spending(
        since=since,
        by=by,
        rows=tuple(grouped(calls, by)),
        total=added("total", calls),
        budgets=tuple([item async for item in budgets_left(app, now)]),
    )


def grouped(calls: Iterable[AgentCall], by: SpendGrouping) -> Iterator[SpendTotal]:
    """Newest first, as the calls are."""
    found: dict[str, list[AgentCall]] = {}
    for call in calls:
        found.setdefault(_KEYS[by](call), []).append(call)
    for key, mine in found.items():
        yield added(key, mine)


_KEYS: dict[SpendGrouping, Callable[[AgentCall], str]] = {
    SpendGrouping.run: lambda call: call.run_id,
    SpendGrouping.day: lambda call: time.strftime("%Y-%m-%d", time.localtime(call.began_at)),
    SpendGrouping.agent: lambda call: call.agent,
    SpendGrouping.loop: lambda call: call.loop_id,
}


def added(key: str, calls: Iterable[AgentCall]) -> SpendTotal:
    everything = tuple(calls)
    ends = [call.end for call in everything if call.end is not None]
    outcomes: dict[str, int] = {}
    for end in ends:
        outcomes[end.outcome.value] = outcomes.get(end.outcome.value, 0) + 1
    return SpendTotal(
        key=key,
        calls=len(everything),
        open=len(everything) - len(ends),
        seconds=sum(end.usage.seconds for end in ends),
        turns=sum(end.usage.turns for end in ends),
        input_tokens=sum(end.usage.input_tokens for end in ends),
        cached_tokens=sum(end.usage.cached_tokens for end in ends),
        output_tokens=sum(end.usage.output_tokens for end in ends),
        usd=sum(end.usage.usd for end in ends),
        unpriced=sum(end.usage.priced is PriceSource.unknown for end in ends),
        overshot=sum(bool(end.over) for end in ends),
        outcomes=dict(sorted(outcomes.items())),
    )


async def budgets_left(app: App, now: float) -> AsyncIterator[BudgetLeft]:
    for scope, period, kind, most in limits_of(app.config.budgets):
        since = day_of(now) if period == "day" else month_of(now)
        used = await app.store.spent(loop_id=scope or None, since=since)
        yield BudgetLeft(scope=scope, period=period, kind=kind, most=most, used=used.get(kind, 0.0))


def limits_of(budgets: Budgets) -> Iterator[tuple[str, str, str, float]]:
    """(loop or empty, period, kind, most) of everything that is bounded."""
    scopes: dict[str, PeriodBudgets] = {"": budgets, **budgets.loops}
    for scope, periods in scopes.items():
        for period in ("day", "month"):
            bounds = getattr(periods, period)
            for kind in KINDS:
                most = getattr(bounds, kind)
                if most is not None:
                    yield scope, period, kind, float(most)
