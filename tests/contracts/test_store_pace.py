"""Contract of the store: how deep a chain of starts may be, and how often machines may start one loop."""

from __future__ import annotations

import asyncio

import pytest
from store_worlds import ManualClock, contents, every_store, new_run, started

from becket.kernel.contract.errors import StartRefused
from becket.kernel.contract.run import Started, StartLimits
from becket.kernel.contract.store import Cursor, RunFilter, Store

FEW = StartLimits(depth=3, per_minute=4)


@every_store
async def test_a_start_beyond_the_depth_is_refused_and_leaves_nothing(store: Store, clock: ManualClock) -> None:
    await started(store, chain=3, limits=FEW)
    before = await contents(store)
    with pytest.raises(StartRefused, match="4 starts in a row") as refused:
        await store.start_run(new_run(chain=4, limits=FEW, origin_key="event-1"))
    assert (refused.value.too_deep, refused.value.kind) == (True, "chain_too_long")
    assert await contents(store) == before


@every_store
async def test_a_person_is_held_back_by_neither_depth_nor_pace(store: Store, clock: ManualClock) -> None:
    for _ in range(10):
        await started(store, chain=7)


@every_store
async def test_a_loop_is_started_so_often_within_a_minute_and_again_in_the_next(
    store: Store, clock: ManualClock
) -> None:
    for _ in range(4):
        await started(store, limits=FEW)
    with pytest.raises(StartRefused, match="4 times within a minute") as refused:
        await store.start_run(new_run(limits=FEW))
    assert (refused.value.too_deep, refused.value.kind) == (False, "started_too_often")
    await started(store, loop_id="other", limits=FEW)
    clock.forward(61)
    await started(store, limits=FEW)


@every_store
async def test_a_clock_that_goes_back_does_not_keep_a_loop_from_starting(store: Store, clock: ManualClock) -> None:
    for _ in range(4):
        await started(store, limits=FEW)
    clock.forward(-25 * 3600)
    await started(store, limits=FEW)


@every_store
async def test_what_answers_is_not_counted_and_not_refused(store: Store, clock: ManualClock) -> None:
    for _ in range(9):
        await store.start_run(new_run(limits=FEW, origin_key="event-1"))
    again = await store.start_run(new_run(limits=FEW, origin_key="event-1", chain=9))
    assert (again.created, len(await store.list_runs(RunFilter()))) == (False, 1)


@every_store
async def test_the_children_of_one_run_count_as_one_start(store: Store, clock: ManualClock) -> None:
    parent = await started(store, loop_id="sweep")
    for _ in range(9):
        await started(store, parent=parent, chain=1, limits=FEW)
    for _ in range(3):
        await started(store, limits=FEW)
    with pytest.raises(StartRefused):
        await store.start_run(new_run(limits=FEW))


@every_store
async def test_a_refused_start_leaves_its_triggers_cursor_where_it_is(store: Store, clock: ManualClock) -> None:
    with pytest.raises(StartRefused):
        await store.fire(None, Cursor(name="commit:heal:main", value="a"), [new_run(chain=4, limits=FEW)])
    assert await store.cursors("commit:") == ()


@every_store
async def test_starts_at_the_same_time_cannot_pass_the_pace_together(store: Store, clock: ManualClock) -> None:
    ends = await asyncio.gather(*(store.start_run(new_run(limits=FEW)) for _ in range(12)), return_exceptions=True)
    assert sum(isinstance(end, Started) for end in ends) == 4
    assert sum(isinstance(end, StartRefused) for end in ends) == 8
