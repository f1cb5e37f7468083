"""A store that cannot be written for a while is waited for; one that is gone is not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from becket.kernel.contract.errors import StoreBusy, StoreUnavailable
from becket.kernel.contract.store import Store
from becket.kernel.engine.heartbeat import StepHeartbeat
from becket.kernel.engine.patience import patient


class Locked:
    """Fails so often before it answers."""

    def __init__(self, times: int, error: type[StoreUnavailable] = StoreBusy) -> None:
        self.left, self.error = times, error

    async def now(self) -> float:
        self.left -= 1
        if self.left >= 0:
            raise self.error("database is locked")
        return 7.0


def store(locked: Locked) -> Store:
    return patient(cast("Store", locked))


def test_a_locked_store_is_waited_for() -> None:
    locked = Locked(2)
    assert asyncio.run(store(locked).now()) == 7.0
    assert locked.left == -1


def test_what_may_have_been_written_is_not_written_again() -> None:
    locked = Locked(1, StoreUnavailable)
    with pytest.raises(StoreUnavailable):
        asyncio.run(store(locked).now())
    assert locked.left == 0


def test_waiting_for_the_store_is_not_the_steps_time() -> None:
    async def story() -> SimpleNamespace:
        context = SimpleNamespace(timer=None, ends_at=0.0, stood_still=0.0)
        async with asyncio.timeout(0.3) as context.timer:
            with StepHeartbeat(context):
                await asyncio.create_task(store(Locked(2)).now())
        return context

    context = asyncio.run(story())
    assert context.stood_still > 0.3
    assert context.ends_at > 0.3


def test_whoever_waits_can_be_stopped() -> None:
    async def story() -> None:
        waiting = asyncio.create_task(store(Locked(1_000)).now())
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait_for(asyncio.gather(waiting, return_exceptions=True), 5)

    asyncio.run(story())
