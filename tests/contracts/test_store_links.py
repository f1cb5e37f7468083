"""Contract of the store: parents and children. However a child was come by, its parents hear of its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from store_worlds import (
    START,
    ManualClock,
    asleep,
    check_chain,
    claim_again,
    claimed,
    contents,
    every_store,
    make_world,
    new_run,
    started,
    wait_for,
)

from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import Move, RunStatus, Started
from becket.kernel.contract.store import Carried, End, RunFilter, Store
from becket.testing.people import person

DONE = End(move=Move.complete, reason="done")


async def asked(store: Store, parent: str, subject: str, **changes: object) -> Started:
    """A start by a parent, whatever answers it."""
    return await store.start_run(new_run(parent=parent, subject=subject, **changes))


async def children(store: Store, parent: str) -> list[str]:
    found = await store.list_runs(RunFilter(parent=parent, limit=None, oldest_first=True))
    return [run.run_id for run in found]


async def signals(store: Store, run_id: str) -> list[str]:
    """The children that a run was told of."""
    events = await store.events(run_id)
    check_chain(events)
    return [event.data["payload"]["run_id"] for event in events if event.kind is EventKind.signal_received]


@every_store
async def test_a_run_that_answers_a_start_is_the_askers_child_too(store: Store, clock: ManualClock) -> None:
    for parent in ("run_p", "run_q", "run_r"):
        await started(store, parent)
    child = await claimed(store, "run_c", parent="run_p", subject="s")
    at_work = await asked(store, "run_q", "s")
    await store.end("run_c", child.run.epoch, DONE)
    completed = await asked(store, "run_r", "s", unique_subject=True)
    for answer in (at_work, completed):
        assert answer.run is not None
        assert (answer.run.run_id, answer.run.parent, answer.created) == ("run_c", "run_p", False)
    assert completed.run is not None
    assert completed.run.status is RunStatus.completed
    for parent in ("run_p", "run_q", "run_r"):
        assert await children(store, parent) == ["run_c"]
    assert await children(store, "run_c") == []


@every_store
async def test_asking_again_is_one_link_and_a_dropped_start_is_none(store: Store, clock: ManualClock) -> None:
    await started(store, "run_p")
    await started(store, "run_c", parent="run_p", subject="s", origin_key="k")
    before = await contents(store)
    for _ in range(2):
        assert (await asked(store, "run_p", "s", origin_key="k")).dropped == ""
    assert await contents(store) == before
    await started(store, "run_busy", group="g")
    assert (await asked(store, "run_p", "t", group="g", on_busy="drop")).run is None
    assert await children(store, "run_p") == ["run_c"]


@every_store
async def test_every_open_parent_hears_of_the_end(store: Store, clock: ManualClock) -> None:
    """One waits and wakes, one is at work and finds it later, one has ended and is left alone."""
    waiting = await claimed(store, "run_p")
    working = await claimed(store, "run_q")
    gone = await claimed(store, "run_r")
    child = await claimed(store, "run_c", parent="run_p", subject="s")
    await asked(store, "run_q", "s")
    await asked(store, "run_r", "s")
    await store.end("run_r", gone.run.epoch, DONE)
    await asleep(store, waiting, wait_for("child", START + 50))
    assert await store.end("run_c", child.run.epoch, DONE) == ("run_p",)
    assert [(await store.get_run(run_id)).status for run_id in ("run_p", "run_q", "run_r")] == [
        RunStatus.queued,
        RunStatus.running,
        RunStatus.completed,
    ]
    assert await store.wait("run_q", working.run.epoch, [wait_for("child", START + 50)], {}, Carried()) is False
    assert [await signals(store, run_id) for run_id in ("run_p", "run_q", "run_r")] == [["run_c"], ["run_c"], []]


@every_store
async def test_a_cancelled_child_wakes_all_its_parents(store: Store, clock: ManualClock) -> None:
    for parent in ("run_p", "run_q"):
        claim = await claimed(store, parent)
        await asked(store, parent, "s")
        await asleep(store, claim, wait_for("child", START + 50))
    (child,) = await children(store, "run_q")
    await store.ask_cancel(child, person("ann"), "")
    assert {(await store.get_run(run_id)).status for run_id in ("run_p", "run_q")} == {RunStatus.queued}


@every_store
async def test_a_run_is_never_its_own_child_nor_its_ancestors_parent(store: Store, clock: ManualClock) -> None:
    """A circle would wait for ever."""
    await started(store, "run_a", subject="a")
    await started(store, "run_b", subject="b", parent="run_a")
    await started(store, "run_x", subject="x")
    await started(store, "run_c", subject="c", parent="run_b")
    assert (await asked(store, "run_x", "b")).run is not None
    before = await contents(store)
    for parent, subject, refused in (("run_a", "a", "run_a"), ("run_c", "a", "run_a"), ("run_c", "x", "run_x")):
        answer = await asked(store, parent, subject, origin_key=f"{parent}:{subject}")
        assert (answer.run, answer.created) == (None, False)
        assert refused in answer.dropped
        assert parent in answer.dropped
    assert await contents(store) == before
    assert (await asked(store, "run_a", "c")).run is not None, "a shorter way down is no circle"
    assert await children(store, "run_a") == ["run_b", "run_c"]


@every_store
async def test_all_children_are_listed_when_no_limit_is_set(store: Store, clock: ManualClock) -> None:
    await started(store, "run_p")
    made = [await started(store, parent="run_p") for _ in range(60)]
    assert await children(store, "run_p") == made
    assert len(await store.list_runs(RunFilter(parent="run_p"))) == 50


@every_store
async def test_links_are_forgotten_with_either_run_and_an_open_parent_keeps_its_child(
    store: Store, clock: ManualClock
) -> None:
    """L44: who adopted a child may still look at what it did."""
    first = await claimed(store, "run_p")
    child = await claimed(store, "run_c", parent="run_p", subject="s")
    await started(store, "run_q")
    await asked(store, "run_q", "s")
    for run_id, epoch in (("run_c", child.run.epoch), ("run_p", first.run.epoch)):
        await store.end(run_id, epoch, DONE)
        await store.followed(run_id)
    clock.forward(100)
    await store.forget(clock(), clock())
    assert {run.run_id for run in await store.list_runs(RunFilter())} == {"run_q", "run_c"}
    assert await children(store, "run_p") == []
    assert await children(store, "run_q") == ["run_c"]
    await store.ask_cancel("run_q", person("ann"), "")
    await store.followed("run_q")
    await store.forget(clock() + 1, clock() + 1)
    assert [name for name, rows in (await contents(store)).items() if rows] == []


@every_store
async def test_newest_waits_spares_a_run_in_the_middle_of_its_life(store: Store, clock: ManualClock) -> None:
    """L2: only what never began is superseded; what woke, or lost its worker, has work behind it."""
    woken = await claimed(store, "run_woken", group="g")
    await asleep(store, woken, wait_for("x", START + 10))
    lost = await claimed(store, "run_lost", group="g")
    await started(store, "run_fresh", group="g")
    clock.forward(40)
    assert await store.wake_due() == ("run_woken",)
    assert await store.requeue_lost() == (lost.run.run_id,)
    done = await store.start_run(new_run("run_new", group="g", on_busy="newest_waits"))
    assert done.superseded == ("run_fresh",)
    statuses = {run.run_id: run.status for run in await store.list_runs(RunFilter(group="g"))}
    assert statuses.pop("run_fresh") is RunStatus.cancelled
    assert set(statuses.values()) == {RunStatus.queued}
    assert (await claim_again(store, "run_woken")).run.epoch == 2


def test_an_end_at_the_moment_of_an_adoption_is_either_seen_or_told_postgres(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A parent that found its child open will be woken by it: no end falls between the two."""
    world = make_world("postgres", tmp_path, request.config)

    async def one(store: Store, number: int) -> None:
        parent, child = f"run_p{number}", f"run_c{number}"
        await started(store, parent)
        claim = await claimed(store, child, subject=f"s{number}")
        answer, _ = await asyncio.gather(
            asked(store, parent, f"s{number}", unique_subject=True), store.end(child, claim.run.epoch, DONE)
        )
        assert answer.run is not None
        assert answer.run.run_id == child
        assert (answer.run.status is RunStatus.completed) != (await signals(store, parent) == [child])

    async def whole() -> None:
        store = world.open()
        try:
            for number in range(40):
                await one(store, number)
        finally:
            await store.close()

    asyncio.run(whole())


def test_two_runs_that_adopt_each_other_at_once_close_no_circle_postgres(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    world = make_world("postgres", tmp_path, request.config)

    async def whole() -> None:
        store = world.open()
        try:
            for number in range(20):
                names = [f"run_{side}{number}" for side in "ab"]
                for name in names:
                    await started(store, name, subject=name)
                answers = await asyncio.gather(asked(store, names[0], names[1]), asked(store, names[1], names[0]))
                assert sorted(answer.run is None for answer in answers) == [False, True]
        finally:
            await store.close()

    asyncio.run(whole())
