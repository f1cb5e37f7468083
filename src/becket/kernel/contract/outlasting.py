"""Work that is not left half done; here, so that every room can have it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work` however often we are cancelled meanwhile; who was cancelled leaves afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:  # by a person, by the clock, by a stop of ours: perhaps all three
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # it was seen: nobody has to warn of it
        raise cancelled
    return task.result()
