"""Many look at one page while somebody writes without end."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import make_key
from becket.parts.front.safety import cookie_name
from front_stage import make_front
from front_wire import begin

MANY = 30


def test_many_who_look_at_one_page_share_what_is_made_for_one_of_them(tmp_path: Path) -> None:
    async def story() -> None:
        stage = make_front(tmp_path)
        front = stage.front
        secret = await stage.world.app.port(TableStore).write(make_key, "session", "", 3600.0)
        mine = [("cookie", f"{cookie_name(front.address)}={secret}")]

        async def write() -> None:
            while True:
                await front.feed.ring()
                await asyncio.sleep(0.005)

        async def noted() -> None:
            number = 0
            while True:
                number += 1
                await stage.world.store.raise_alert("noise", f"It is {number} o'clock", {})
                await asyncio.sleep(0.05)

        writing = [asyncio.create_task(write()), asyncio.create_task(noted())]
        pages = [begin(front, "GET", "/live?path=/", mine) for _ in range(MANY)]
        seen = [[await page.event() for _ in range(4)] for page in pages]
        shown = {event for each in seen for event in each}
        assert len(shown) < MANY
        for task in writing:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for page in pages:
            await page.leave()
        await stage.close()

    asyncio.run(story())
