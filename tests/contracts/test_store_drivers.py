"""Contract of the store: workers beside each other, each with runs of its own."""

from __future__ import annotations

import pytest
from store_worlds import START, ManualClock, asleep, claimed, every_store, started, wait_for, worker

from becket.kernel.contract.errors import WorkerDeclaredDead
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import Store
from becket.testing.people import person


@every_store
async def test_what_the_living_have_at_work_is_renewed_for_them_and_the_gone_are_buried(
    store: Store, clock: ManualClock
) -> None:
    for name in ("w1", "w2", "w3"):
        await store.join(worker(name), alone=False)
    await claimed(store, "run_living", worker="w1", group="g")
    await started(store, "run_behind", group="g")
    await claimed(store, "run_gone", worker="w2")
    await claimed(store, "run_unwanted", worker="w1")
    await store.ask_cancel("run_unwanted", person("ann"), "")
    clock.forward(29)
    await store.attend(alive=("w1",), gone=("w2",), ttl=30)
    clock.forward(20)
    assert await store.requeue_lost() == ("run_gone", "run_unwanted"), "whoever does not hear must not keep it"
    assert await store.claim("run_behind", 1, "w3", 30) is None, "the lease of the group was renewed too"
    assert (await store.get_run("run_living")).lease_until == START + 59
    with pytest.raises(WorkerDeclaredDead):
        await store.beat("w2", 30, {"run_gone": 1})


@every_store
async def test_children_of_runs_that_the_living_have_at_work_are_left_out(store: Store, clock: ManualClock) -> None:
    mine, other = ChildRef(pid=7, started=1, boot="b"), ChildRef(pid=8, started=1, boot="b")
    for run_id, name, child in (("run_a", "w1", mine), ("run_b", "w2", other)):
        await claimed(store, run_id, worker=name)
        await store.child_started(run_id, 1, child, ["sleep"])
    assert await store.live_children(("w1",)) == (other,)
    await store.give_back("run_a", 1)
    assert await store.live_children(("w1", "w2")) == (mine,), "a queued run has nobody who would end it"


@every_store
async def test_only_the_runs_that_are_asked_for_are_woken_and_startable(store: Store, clock: ManualClock) -> None:
    for run_id in ("run_a", "run_b"):
        await asleep(store, await claimed(store, run_id), wait_for("clock", START + 10, expires=START + 90))
    clock.forward(10)
    assert await store.wake_due(among=("run_b",)) == ("run_b",)
    assert (await store.get_run("run_a")).status is RunStatus.waiting
    await started(store, "run_c")
    assert await store.startable(10, ("run_a", "run_b")) == (("run_b", 2),)
    assert len(await store.startable(10)) == 2
