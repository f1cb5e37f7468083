"""What was begun comes to its end, however often whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
import gc

import pytest

from becket.kernel.contract.outlasting import to_its_end


@pytest.mark.parametrize("fails", [False, True])
def test_who_is_cancelled_leaves_when_the_work_is_over(fails: bool) -> None:
    warned: list[object] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: warned.append(told))
        begun, may_end, done = asyncio.Event(), asyncio.Event(), []

        async def work() -> None:
            begun.set()
            await may_end.wait()
            done.append("all of it")
            if fails:
                raise ValueError("at the end")

        waiting = asyncio.create_task(to_its_end(work()))
        await begun.wait()
        for _ in range(3):
            waiting.cancel()
            await asyncio.wait([waiting], timeout=0)
            assert not waiting.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert done == ["all of it"]
        gc.collect()

    asyncio.run(story())
    assert warned == []


def test_what_it_came_to_is_told() -> None:
    async def three() -> int:
        return 3

    async def fails() -> int:
        raise ValueError("no")

    assert asyncio.run(to_its_end(three())) == 3
    with pytest.raises(ValueError, match="no"):
        asyncio.run(to_its_end(fails()))
