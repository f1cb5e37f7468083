"""What agents used, and how it has been going."""

from __future__ import annotations

from becket.app.record.agent_spend import budgets_left
from becket.app.record.trends import MOST_DAYS, Trends, used, used_by
from becket.parts.front.asked import Asked
from becket.parts.front.charts import charts_of
from becket.parts.front.routes import Page

DAYS = 30
BY = ("day", "week")


async def spend(asked: Asked) -> Page:
    days = max(asked.number("days", MOST_DAYS) or DAYS, 1)
    app, spans = asked.app, await trends_of(asked).days(days)
    by_day = [used(span.date, span.agents) for span in reversed(spans)]
    everything = [item for span in spans for item in span.agents]
    return Page(
        "spend.html",
        {
            "days": days, "ranges": (7, DAYS, MOST_DAYS), "total": used("", everything),
            "by_agent": used_by(spans, lambda _, item: item.agent),
            "by_loop": used_by(spans, lambda _, item: item.loop_id),
            "by_day": [one for one in by_day if one.calls],
            "budgets": [item async for item in budgets_left(app, await app.store.now())],
            "charts": charts_of(spans, ("usd", "usd_per_change")) if everything else [],
        },
    )  # fmt: skip


async def trends(asked: Asked) -> Page:
    by = asked.query.get("by", "day")
    by = by if by in BY else "day"
    kept = trends_of(asked)
    spans = await (kept.weeks() if by == "week" else kept.days(DAYS))
    return Page("trends.html", {"by": by, "choices": BY, "charts": charts_of(spans)})


def trends_of(asked: Asked) -> Trends:
    """One for the life of the process: days that are over are added up once."""
    return asked.front.kept(Trends, lambda: Trends(asked.app))
