"""The first page: what is asked of me, what is going on, how are we."""

from __future__ import annotations

import asyncio
from functools import partial

from becket.app.record.agent_spend import BudgetLeft, budgets_left
from becket.app.record.doing import doing
from becket.app.record.loops_now import loops_now
from becket.app.record.overview import overview
from becket.app.record.status import Snapshot, take
from becket.kernel.contract.ready import REASONS
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page
from becket.parts.services.desk import services


async def home(asked: Asked) -> Page:
    app, now = asked.app, await snapshot_of(asked)
    return Page(
        "home.html",
        {
            "now": now,
            "repairs": tuple(item for item in now.handoffs if item.reason in REASONS),
            "handoffs": tuple(item for item in now.handoffs if item.reason not in REASONS),
            "doing": await doing(app, now),
            "loops": await loops_now(app, now),
            "services": await asyncio.to_thread(services, app.state),
            "budgets": await budgets_of_today(asked),
        },
    )


async def budgets_of_today(asked: Asked) -> tuple[BudgetLeft, ...]:
    now = await asked.app.store.now()
    return tuple([item async for item in budgets_left(asked.app, now) if item.period == "day"])


async def snapshot_of(asked: Asked) -> Snapshot:
    """As `becket status` has it, without the counts: they are of all the runs there are."""
    if asked.app.config.database:
        return await overview(asked.app, counting=False)
    return await asyncio.to_thread(partial(take, asked.app.state, counting=False))
