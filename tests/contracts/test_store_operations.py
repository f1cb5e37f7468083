"""Contract of the store: the triggers' cursors, money, alerts, time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from store_worlds import START, ManualClock, World, claimed, contents, every_store, every_world, new_run

from becket.kernel.contract.errors import Fenced, NotFound
from becket.kernel.contract.store import AlertState, Cursor, SpendLimit, Store
from becket.kernel.store import open_sqlite


@every_store
async def test_time_is_the_stores(store: Store, clock: ManualClock) -> None:
    assert await store.now() == START
    clock.forward(1.5)
    assert await store.now() == START + 1.5


@every_store
async def test_a_cursor_moves_only_from_where_it_stands(store: Store, clock: ManualClock) -> None:
    """L43: two processes that see the same fire start it once."""
    first = Cursor(name="schedule:heal", value="1", due_at=START + 60)
    begun = await store.fire(None, first, [new_run("run_a"), new_run("run_b")])
    assert begun is not None
    assert [item.run and item.run.run_id for item in begun] == ["run_a", "run_b"]
    assert await store.next_due() == START + 60
    [stored] = await store.cursors()
    assert stored == first.model_copy(update={"updated_at": START})
    clock.forward(60)
    second = Cursor(name="schedule:heal", value="2", due_at=None)
    before = await contents(store)
    elsewhere = [first.model_copy(update=change) for change in ({"value": "0"}, {"due_at": START}, {"due_at": None})]
    for wrong in (None, *elsewhere):
        assert await store.fire(wrong, second, [new_run("run_c")]) is None
    assert await contents(store) == before
    done = await store.fire(first, second, [new_run("run_c")])
    assert done is not None
    assert done[0].created
    assert await store.fire(stored, second, [new_run("run_d")]) is None
    assert await store.next_due() is None


@every_store
async def test_a_cursor_that_is_not_there_cannot_be_moved(store: Store, clock: ManualClock) -> None:
    old = Cursor(name="c", value="1")
    assert await store.fire(old, Cursor(name="c", value="2"), [new_run()]) is None
    assert await store.cursors() == ()


@every_store
async def test_a_fire_may_find_its_run_started_already(store: Store, clock: ManualClock) -> None:
    await store.start_run(new_run("run_a", origin_key="fire-1"))
    done = await store.fire(None, Cursor(name="c", value="1"), [new_run(origin_key="fire-1")])
    assert done is not None
    assert (done[0].created, done[0].run and done[0].run.run_id) == (False, "run_a")


@every_store
async def test_cursors_are_listed_by_prefix_and_dropped(store: Store, clock: ManualClock) -> None:
    for name in ("commit:b", "schedule:x", "commit:a", "commit%"):
        await store.fire(None, Cursor(name=name, value="v"), ())
    assert [cursor.name for cursor in await store.cursors("commit:")] == ["commit:a", "commit:b"]
    await store.drop_cursors(["commit:a", "nothing"])
    await store.drop_cursors([])
    assert {cursor.name for cursor in await store.cursors()} == {"commit%", "commit:b", "schedule:x"}


def limit(most: float, **scope: object) -> SpendLimit:
    return SpendLimit.model_validate({"name": f"at most {most}", "kind": "usd", "most": most, **scope})


@every_store
async def test_money_is_booked_before_the_call_within_every_limit(store: Store, clock: ManualClock) -> None:
    """L23: budgets are reserved, not regretted."""
    await claimed(store, "run_a")
    await claimed(store, "run_b", loop_id="task")
    run_limit, loop_limit, day = limit(1.0, run_id="run_a"), limit(2.0, loop_id="heal"), limit(2.5, since=START - 5)
    all_limits = (run_limit, loop_limit, day)
    assert await store.reserve("k1", "run_a", 1, {"usd": 0.7, "tokens": 100}, all_limits) is None
    before = await contents(store)
    assert await store.reserve("k1", "run_a", 1, {"usd": 99.0}, all_limits) is None, "the same key books once"
    assert await store.reserve("k2", "run_a", 1, {"usd": 0.4}, all_limits) == "at most 1.0"
    assert await contents(store) == before
    assert await store.reserve("k2", "run_a", 1, {"usd": 0.3}, all_limits) is None, "up to the limit, roundings aside"
    assert await store.reserve("k3", "run_b", 1, {"usd": 1.6}, (limit(9.0, run_id="run_b"), day)) == "at most 2.5"
    assert await store.reserve("k3", "run_b", 1, {"usd": 1.5}, (day,)) is None
    assert await store.spent() == {"usd": pytest.approx(2.5), "tokens": 100.0}
    assert await store.spent(run_id="run_a") == {"usd": pytest.approx(1.0), "tokens": 100.0}
    assert await store.spent(loop_id="task") == {"usd": 1.5}
    clock.forward(100)
    assert await store.reserve("k4", "run_b", 1, {"usd": 2.0}, (limit(2.5, since=START + 50),)) is None, "a new day"
    assert await store.spent(since=START + 50) == {"usd": 2.0}
    with pytest.raises(Fenced):
        await store.reserve("k5", "run_a", 7, {"usd": 0.0}, ())


@every_store
async def test_what_was_reserved_is_replaced_by_what_was_used(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await store.reserve("k", "run_a", 1, {"usd": 5.0, "tokens": 900}, ())
    clock.forward(10)
    for _ in range(2):
        await store.settle_spend("k", {"usd": 7.25, "agent_time": 3.0})
    assert await store.spent(since=START) == {"usd": 7.25, "agent_time": 3.0}
    assert await store.spent(since=START + 1) == {}, "it stays booked when it was booked"
    assert await store.reserve("more", "run_a", 1, {"tokens": 1}, (limit(7.0),)) == "at most 7.0", "already over"
    await store.reserve("nothing", "run_a", 1, {}, ())
    await store.settle_spend("nothing", {"usd": 1.0})
    assert (await store.spent(run_id="run_a"))["usd"] == 8.25
    with pytest.raises(NotFound, match="reserve before"):
        await store.settle_spend("unknown", {"usd": 1.0})


@every_store
async def test_only_a_delivery_mutes_an_alert(store: Store, clock: ManualClock) -> None:
    """L42: a failed reaction re-opens the alert."""
    raised = await store.raise_alert("k", "disk full", {"at": "/"})
    assert (raised.state, raised.count, raised.first_at, raised.told_at) == (AlertState.open, 1, START, None)
    assert (await store.alert_told("k", delivered=False)).state is AlertState.open
    clock.forward(1)
    told = await store.alert_told("k", delivered=True)
    assert (told.state, told.told_at) == (AlertState.told, START + 1)
    again = await store.raise_alert("k", "disk still full", {"at": "/tmp"})
    assert (again.state, again.count, again.text, again.data) == (AlertState.told, 2, "disk still full", {"at": "/tmp"})
    assert (again.first_at, again.last_at) == (START, START + 1)
    void = await store.alert_told("k", delivered=False)
    assert (void.state, void.told_at) == (AlertState.open, None)


@every_store
async def test_a_closed_alert_opens_again_as_a_new_one(store: Store, clock: ManualClock) -> None:
    await store.raise_alert("k", "x", {})
    await store.raise_alert("k", "x", {})
    await store.alert_told("k", delivered=True)
    closed = await store.close_alert("k")
    assert closed is not None
    assert closed.state is AlertState.closed
    assert (await store.alert_told("k", delivered=False)).state is AlertState.closed
    clock.forward(5)
    again = await store.raise_alert("k", "x", {})
    assert (again.state, again.count, again.first_at, again.told_at) == (AlertState.open, 1, START + 5, None)
    assert await store.close_alert("unknown") is None
    with pytest.raises(NotFound, match="becket status"):
        await store.alert_told("unknown", delivered=True)
    await store.raise_alert("l", "y", {})
    assert [alert.key for alert in await store.alerts((AlertState.open,))] == ["k", "l"]
    assert await store.alerts((AlertState.closed,)) == ()
    assert len(await store.alerts()) == 2


@every_world
def test_version_changed_tells_of_other_writers(world: World) -> None:
    """The safety net behind the doorbell: a SQLite file knows, memory has no others, Postgres always looks."""

    async def story(store: Store, clock: ManualClock) -> None:
        expected = {"memory": [False, False, False], "sqlite": [False, True, False], "postgres": [True, True, True]}
        await store.raise_alert("own", "x", {})
        seen = [await store.version_changed()]
        if world.kind != "memory":
            other = world.open()
            await other.raise_alert("k", "x", {})
            await other.close()
        seen += [await store.version_changed(), await store.version_changed()]
        assert seen == expected[world.kind]

    world.play(story)


def test_without_a_clock_sqlite_goes_by_the_computers(tmp_path: Path) -> None:
    async def story() -> None:
        store = open_sqlite(tmp_path / "j.db")
        assert abs(await store.now() - time.time()) < 60
        await store.close()

    asyncio.run(story())
