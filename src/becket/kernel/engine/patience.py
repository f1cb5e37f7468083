"""The store of a run at work: while it is locked or full, each write is retried.

What a step has made is known here and nowhere else until it is written. Giving the run back would make it twice, and
pay for it twice; only the loss of the claim, or the end of this process, ends the waiting.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

from becket.kernel.contract.errors import StoreBusy
from becket.kernel.contract.store import Store
from becket.kernel.engine.heartbeat import give_back_here

log = logging.getLogger("becket.engine")

T = TypeVar("T")

LONGEST_PAUSE = 5.0


def patient(store: Store) -> Store:
    return cast("Store", _Patient(store))


class _Patient:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @wraps(found)
        async def waits(*args: Any, **kwargs: Any) -> Any:
            return await _patiently(partial(found, *args, **kwargs))

        return waits


async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
    loop, delay = asyncio.get_running_loop(), 0.2
    while True:
        began = loop.time()
        try:
            return await call()
        except StoreBusy as error:
            log.warning("%s; nothing is lost, trying again in %.1f s", error, delay)
        give_back_here(loop.time() - began + delay)  # before the pause: the limit may fall into it
        await asyncio.sleep(delay)
        delay = min(delay * 2, LONGEST_PAUSE)
