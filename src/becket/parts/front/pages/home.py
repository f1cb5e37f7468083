"""The first page: what is asked of me, what is going on, how are we."""

from __future__ import annotations

import asyncio

from becket.app.record.overview import overview
from becket.app.record.status import Snapshot, take
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page


async def home(asked: Asked) -> Page:
    return Page("home.html", {"now": await snapshot_of(asked)})


async def snapshot_of(asked: Asked) -> Snapshot:
    """As `becket status` has it."""
    if asked.app.config.database:
        return await overview(asked.app)
    return await asyncio.to_thread(take, asked.app.state)
