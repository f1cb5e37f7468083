"""Contract of the store: a clock that is set and a machine that slept move what is due along, and nothing else."""

from __future__ import annotations

import pytest
from store_worlds import START, ManualClock, asleep, claimed, contents, every_store, started, wait_for, worker

from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import Approval
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import Leap, Store
from becket.kernel.store import leaping

HOURS = 25 * 3600.0
DECADE = 10 * 365 * 86_400.0


async def watched(store: Store) -> None:
    """From now on there is an engine that adopts leaps."""
    assert await store.adopt_leap() is None


@every_store
async def test_without_an_engine_the_clock_is_simply_followed(store: Store, clock: ManualClock) -> None:
    clock.jump(HOURS)
    assert await store.now() == START + HOURS


@every_store
async def test_a_leap_is_held_back_until_it_is_adopted_and_small_corrections_are_not(
    store: Store, clock: ManualClock
) -> None:
    await watched(store)
    clock.jump(10)
    assert await store.now() == START + 10
    for jump in (HOURS, -HOURS, DECADE):
        before = await store.now()
        clock.jump(jump)
        clock.forward(5)
        assert await store.now() == before + 5
        leap = await store.adopt_leap()
        assert leap == Leap(jump=jump, slept=0.0, since=before + 5, at=before + 5)
        assert await store.now() == before + 5 + jump
        assert await store.adopt_leap() is None


@every_store
async def test_time_at_work_knows_neither_leaps_nor_sleep(store: Store, clock: ManualClock) -> None:
    await watched(store)
    began = await store.work_time()
    clock.forward(7)
    clock.jump(HOURS)
    await store.adopt_leap()
    clock.suspend(HOURS)
    clock.forward(3)
    assert await store.work_time() - began == pytest.approx(10)


@every_store
async def test_a_run_at_work_keeps_its_lease_and_the_time_to_its_deadline(store: Store, clock: ManualClock) -> None:
    await watched(store)
    for jump, slept in ((HOURS, 0.0), (-HOURS, 0.0), (DECADE, 0.0), (0.0, HOURS), (-2 * HOURS, HOURS)):
        claim = await claimed(store, group=f"g{jump}{slept}")
        left = claim.run.deadline_at - await store.now()
        clock.jump(jump)
        clock.suspend(slept)
        assert await store.requeue_lost() == ()
        await store.adopt_leap()
        assert await store.requeue_lost() == ()
        run = await store.get_run(claim.run.run_id)
        assert run.deadline_at - await store.now() == pytest.approx(left)
        clock.forward(31)
        assert run.run_id in await store.requeue_lost(), "nobody beats for it"


@every_store
async def test_a_wait_comes_neither_early_nor_late_by_a_jump(store: Store, clock: ManualClock) -> None:
    await watched(store)
    for jump in (HOURS, -HOURS, DECADE):
        now = await store.now()
        claim = await claimed(store)
        await asleep(store, claim, wait_for("approval", now + 600))
        clock.jump(jump)
        assert await store.wake_due() == ()
        await store.adopt_leap()
        clock.forward(599)
        assert await store.wake_due() == ()
        clock.forward(2)
        assert await store.wake_due() == (claim.run.run_id,)


@every_store
async def test_while_the_machine_sleeps_time_goes_on_for_what_people_are_asked(
    store: Store, clock: ManualClock
) -> None:
    await watched(store)
    claim = await claimed(store)
    await asleep(store, claim, wait_for("approval", START + 600))
    clock.suspend(HOURS)
    await store.adopt_leap()
    assert await store.wake_due() == (claim.run.run_id,)


@every_store
async def test_a_question_keeps_its_time_and_its_seal(store: Store, clock: ManualClock) -> None:
    await watched(store)
    claim = await claimed(store)
    question = Approval(
        approval_id="apr_1", run_id=claim.run.run_id, question="Well?", bound_to="x", role="owner", asked_at=START,
        expires_at=START + 600,
    )  # fmt: skip
    await store.ask_approval(claim.run.run_id, claim.run.epoch, question)
    clock.jump(HOURS)
    await store.adopt_leap()
    assert (await store.get_approval("apr_1")).expires_at == START + 600 + HOURS
    told = [event for event in await store.events(claim.run.run_id) if event.kind is EventKind.clock_leapt]
    seals = await store.seals(claim.run.run_id)
    assert [event.data["seals"]["approval apr_1"] for event in told] == [seals["approval apr_1"]]


@every_store
async def test_two_workers_that_see_one_leap_move_what_is_due_once(store: Store, clock: ManualClock) -> None:
    await watched(store)
    run_id = await started(store)
    await store.join(worker("w2"), alone=False)
    clock.jump(HOURS)
    leap = await store.adopt_leap()
    assert leap is not None
    before = await contents(store)
    assert await store._db.write(leaping.adopt_leap, leap) is False  # type: ignore[attr-defined]
    assert await contents(store) == before
    run = await store.get_run(run_id)
    assert (run.status, run.deadline_at) == (RunStatus.queued, START + 3600 + HOURS)
