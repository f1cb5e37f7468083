"""Many moves become few acts: at once or when it is quiet, always on the newest, none lost (L2)."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from trigger_stage import ManualTime

from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.contract.spec import Edge
from becket.kernel.engine.debounce import LONGEST_RETRY, MOST_WINDOWS, Debounce, Key

KEY: Key = ("loop", "main")


class Acts:
    """Writes down what the debounce acts on, and fails when told to."""

    def __init__(self) -> None:
        self.time = ManualTime()
        self.done: list[tuple[float, str]] = []
        self.failing: list[BaseException] = []
        self.debounce = Debounce(self.act, self.time, self.time.sleep)

    async def act(self, key: Key, value: str) -> None:
        if self.failing:
            raise self.failing.pop(0)
        self.done.append((round(self.time() - 100, 3), value))

    async def push(self, value: str, edge: Edge = Edge.leading, length: float = 1.0) -> None:
        await self.debounce.push(KEY, value, length, edge)


def test_leading_acts_at_once_and_on_the_newest_at_the_end_of_the_window() -> None:
    async def story() -> None:
        acts = Acts()
        await acts.push("1")
        assert acts.done == [(0, "1")]
        await acts.time.pass_(0.2)
        await acts.push("2")
        await acts.time.pass_(0.2)
        await acts.push("3")
        await acts.time.pass_(5)
        assert acts.done == [(0, "1"), (1, "3")]
        assert not acts.debounce.busy(KEY)
        await acts.push("4")
        assert acts.done[-1] == (5.4, "4")
        await acts.debounce.close()

    asyncio.run(story())


def test_leading_acts_once_per_window_while_it_never_rests() -> None:
    """L2: a branch that moves all the time is handled all the time, but not for every move."""

    async def story() -> None:
        acts = Acts()
        for number in range(50):
            await acts.push(str(number))
            await acts.time.pass_(0.1)
        await acts.time.pass_(10)
        assert [when for when, _ in acts.done] == [0, 1, 2, 3, 4, 5]
        assert acts.done[-1] == (5, "49")

    asyncio.run(story())


def test_trailing_waits_until_it_is_quiet() -> None:
    async def story() -> None:
        acts = Acts()
        for value in "123":
            await acts.push(value, Edge.trailing)
            await acts.time.pass_(0.8)
        assert acts.done == []
        await acts.time.pass_(5)
        assert acts.done == [(2.6, "3")]
        assert not acts.debounce.busy(KEY)

    asyncio.run(story())


def test_trailing_does_not_starve_while_it_never_rests() -> None:
    """L2: main moved every 105 seconds and the loop starved for weeks."""

    async def story() -> None:
        acts = Acts()
        for number in range(300):
            await acts.push(str(number), Edge.trailing, length=300)
            await acts.time.pass_(105)
        longest = MOST_WINDOWS * 300 + 105
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(acts.done)]
        assert len(acts.done) >= 300 * 105 // longest
        assert max(gaps) <= longest
        await acts.time.pass_(1000)
        assert acts.done[-1][1] == "299"

    asyncio.run(story())


@pytest.mark.parametrize("edge", list(Edge))
def test_a_window_of_nothing_acts_on_each(edge: Edge) -> None:
    async def story() -> None:
        acts = Acts()
        for value in "12":
            await acts.push(value, edge, length=0)
            await acts.time.pass_(0.01)
        assert [value for _, value in acts.done] == ["1", "2"]

    asyncio.run(story())


@pytest.mark.parametrize("edge", list(Edge))
def test_a_move_during_the_act_is_not_lost(edge: Edge) -> None:
    async def story() -> None:
        acts = Acts()
        gate = asyncio.Event()
        done: list[str] = []

        async def slow(key: Key, value: str) -> None:
            await gate.wait()
            done.append(value)

        debounce = Debounce(slow, acts.time, acts.time.sleep)
        first = asyncio.create_task(debounce.push(KEY, "1", 1, edge))
        await acts.time.pass_(2)
        await debounce.push(KEY, "2", 1, edge)
        gate.set()
        await acts.time.pass_(5)
        await first
        assert done == ["1", "2"]

    asyncio.run(story())


def test_an_act_that_fails_is_repeated_with_the_newest_and_ever_more_rarely() -> None:
    async def story() -> None:
        acts = Acts()
        acts.failing = [StoreUnavailable("away")] * 12
        with pytest.raises(StoreUnavailable):
            await acts.push("1")
        await acts.time.pass_(5)
        await acts.push("2")
        await acts.time.pass_(12 * LONGEST_RETRY)
        assert [value for _, value in acts.done] == ["2"]
        assert acts.failing == []
        assert acts.done[0][0] > 4 * LONGEST_RETRY

    asyncio.run(story())


def test_a_cancelled_act_is_repeated() -> None:
    async def story() -> None:
        acts = Acts()
        acts.failing = [asyncio.CancelledError()]
        with pytest.raises(asyncio.CancelledError):
            await acts.push("1")
        await acts.time.pass_(2)
        assert [value for _, value in acts.done] == ["1"]

    asyncio.run(story())


def test_keys_have_timers_of_their_own_and_close_stops_them_all() -> None:
    async def story() -> None:
        acts = Acts()
        await acts.push("1", Edge.trailing)
        await acts.debounce.push(("other", "main"), "2", 5, Edge.trailing)
        await acts.time.pass_(1)
        assert [value for _, value in acts.done] == ["1"]
        acts.debounce.drop(("other", "main"))
        await acts.time.pass_(10)
        assert [value for _, value in acts.done] == ["1"]
        await acts.push("3", Edge.trailing)
        await acts.debounce.close()
        await acts.time.pass_(10)
        assert [value for _, value in acts.done] == ["1"]

    asyncio.run(story())
