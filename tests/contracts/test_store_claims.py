"""Contract of the store: claims, leases, fences and workers. Concurrency is decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from store_worlds import (
    START,
    ManualClock,
    asleep,
    claim_again,
    claimed,
    contents,
    every_store,
    note,
    raised,
    recorded,
    started,
    told,
    wait_for,
    worker,
)

from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.errors import BecketError, Fenced, WorkerDeclaredDead
from becket.kernel.contract.events import COVERS, EventKind
from becket.kernel.contract.handoff import Approval
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.run import Move, RunStatus
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import ArtifactRef, AtWork, Carried, Claim, End, Store
from becket.testing.people import person


@every_store
async def test_a_claim_brings_everything_needed_to_go_on(store: Store, clock: ManualClock) -> None:
    first = await claimed(store, "run_a")
    assert (first.run.status, first.run.epoch, first.run.worker) == (RunStatus.running, 1, "w1")
    assert (first.spec_text, first.steps, first.conditions, first.carried) == ("loop_id: heal", (), (), Carried())
    done = recorded(first, "base", conditions=(raised("red", object="base", life="run"),))
    await store.record("run_a", 1, done)
    await store.record("run_a", 1, recorded(first, "more"))
    clock.forward(31)
    assert await store.requeue_lost() == ("run_a",)
    again = await claim_again(store, "run_a", "w2")
    assert [step.id for step in again.steps] == ["base", "more"]
    assert [item.ref for item in again.conditions] == ["base.red"]
    assert again.steps == await store.steps("run_a")
    claims = [event.data for event in await store.events("run_a") if event.kind is EventKind.run_claimed]
    covers = {COVERS: ["call", "spending"]}
    assert claims[0] == {"worker": "w1", "epoch": 1, "segment": 1, "iteration": 1, **covers}
    assert claims[1] == {"worker": "w2", "epoch": 3, "segment": 2, "iteration": 1, **covers}


@every_store
async def test_only_steps_of_the_current_iteration_come_with_a_claim(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await store.record("run_a", 1, recorded(claim))
    carried = Carried(outputs={"base": {"sha": "abc"}}, failures={"x": 2}, progress=("p",), last="d")
    await store.next_iteration("run_a", 1, carried, True)
    await store.leave("w1")
    again = await claim_again(store, "run_a")
    assert (again.steps, again.carried, again.run.iteration) == ((), carried, 2)


@every_store
async def test_a_stale_late_or_repeated_start_gets_nothing_and_writes_nothing(store: Store, clock: ManualClock) -> None:
    run_id = await started(store, "run_a")
    await claim_again(store, "run_a")
    ended = await started(store)
    await store.ask_cancel(ended, person("ann"), "")
    waiting = await claimed(store)
    await asleep(store, waiting, wait_for("x", START + 10))
    before = await contents(store)
    for late, segment in ((run_id, 1), (run_id, 2), (ended, 1), (waiting.run.run_id, 2), ("run_unknown", 1)):
        assert await store.claim(late, segment, "w2", 30) is None
    queued = await started(store)
    before = await contents(store)
    for segment in (0, 2):
        assert await store.claim(queued, segment, "w2", 30) is None
    assert await contents(store) == before


@every_store
async def test_a_group_has_one_run_at_work(store: Store, clock: ManualClock) -> None:
    first = await claimed(store, "run_a", group="g")
    await started(store, "run_b", group="g")
    before = await contents(store)
    assert await store.claim("run_b", 1, "w2", 30) is None
    assert await contents(store) == before
    await asleep(store, first, wait_for("x", START + 100))
    assert await store.claim("run_b", 1, "w2", 30) is not None, "a run that waits frees its group"
    await store.signal("run_a", "x", {}, "s")
    assert await store.claim("run_a", 2, "w1", 30) is None, "and must queue for it again"


@every_store
async def test_an_expired_lease_is_taken_over_and_its_holder_fenced(store: Store, clock: ManualClock) -> None:
    """L31: a lock of a dead owner blocks nobody for longer than its lease."""
    old = await claimed(store, "run_a", group="g")
    await started(store, "run_b", group="g")
    clock.forward(30)
    assert await store.startable() == (("run_b", 1),)
    new = await store.claim("run_b", 1, "w2", 30)
    assert new is not None
    run = await store.get_run("run_a")
    assert (run.status, run.epoch, run.segment, run.worker) == (RunStatus.queued, 2, 2, None)
    assert (await store.events("run_a"))[-1].data["worker"] == "w1"
    with pytest.raises(Fenced):
        await store.record("run_a", old.run.epoch, recorded(old))
    assert await store.claim("run_a", 2, "w1", 30) is None, "the group is taken"
    await store.end("run_b", new.run.epoch, End(move=Move.complete, reason="x"))
    assert await store.claim("run_a", 2, "w1", 30) is not None


@every_store
async def test_lost_runs_are_queued_again(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a", group="g")
    assert await store.requeue_lost() == ()
    clock.forward(29.9)
    assert await store.requeue_lost() == ()
    clock.forward(0.1)
    assert await store.requeue_lost() == ("run_a",)
    assert await store.requeue_lost() == ()
    run = await store.get_run("run_a")
    assert (run.status, run.epoch, run.segment) == (RunStatus.queued, 2, 2)
    assert await store.claim("run_a", 1, "w2", 30) is None, "a hint about the old segment is stale"
    assert await store.claim("run_a", 2, "w2", 30) is not None, "the lease went with the claim"


@every_store
async def test_a_heartbeat_keeps_claims_and_leases(store: Store, clock: ManualClock) -> None:
    await store.join(worker("w1"), alone=False)
    await claimed(store, "run_a", group="g")
    await started(store, "run_b", group="g")
    for _ in range(3):
        clock.forward(20)
        assert (await store.beat("w1", 30, {"run_a": 1})).lost == ()
    assert await store.requeue_lost() == ()
    assert await store.claim("run_b", 1, "w2", 30) is None
    [info] = await store.workers()
    assert (info.worker_id, info.beat_at, info.dead) == ("w1", START + 60, False)


@every_store
async def test_a_heartbeat_tells_what_was_lost_however_often_it_is_asked(store: Store, clock: ManualClock) -> None:
    await store.join(worker("w1"), alone=False)
    await claimed(store, "run_a", group="g")
    await claimed(store, "run_c")
    await started(store, "run_b", group="g")
    clock.forward(30)
    assert await store.claim("run_b", 1, "w2", 30) is not None
    for _ in range(2):
        assert (await store.beat("w1", 30, {"run_a": 1, "run_c": 1})).lost == ("run_a",)
    assert await store.requeue_lost() == ()
    assert (await store.get_run("run_c")).status is RunStatus.running, "late, but nobody took it"


@every_store
async def test_a_heartbeat_renews_what_is_at_work_and_nothing_else_of_its_worker(
    store: Store, clock: ManualClock
) -> None:
    """A claim whose answer was lost, or whose task died, is nobody's: renewing it would keep it so for ever."""
    await store.join(worker("w1"), alone=False)
    await claimed(store, "run_a", group="g")
    await claimed(store, "run_b", group="h")
    clock.forward(20)
    assert (await store.beat("w1", 30, {"run_b": 1})).lost == ()
    clock.forward(20)
    assert await store.requeue_lost() == ("run_a",)
    assert (await store.beat("w1", 30, {})).lost == ()
    await started(store, "run_c", group="h")
    clock.forward(10)
    assert await store.claim("run_c", 1, "w2", 30) is not None, "the group's lease is not renewed either"


@every_store
async def test_a_new_claim_of_the_same_worker_is_not_the_one_it_lost(store: Store, clock: ManualClock) -> None:
    """Given back and claimed again between two heartbeats: the old claim is lost, the new one is renewed."""
    await store.join(worker("w1"), alone=False)
    await claimed(store, "run_a", group="g")
    await store.give_back("run_a", 1)
    again = await claim_again(store, "run_a")
    clock.forward(20)
    assert (await store.beat("w1", 30, {"run_a": 1})).lost == ("run_a",)
    assert (await store.beat("w1", 30, {"run_a": again.run.epoch})).lost == ()
    clock.forward(20)
    assert await store.requeue_lost() == ()


@every_store
async def test_what_the_holder_itself_moved_on_is_not_lost(store: Store, clock: ManualClock) -> None:
    """A heartbeat that crosses with the end of a run, or with its wait, stops nobody; nor does it renew anything."""
    await store.join(worker("w1"), alone=False)
    await store.end((await claimed(store, "run_a")).run.run_id, 1, End(move=Move.complete, reason="x"))
    await asleep(store, await claimed(store, "run_b"), wait_for("x", START + 10))
    before = await contents(store)
    assert (await store.beat("w1", 30, {"run_a": 1, "run_b": 1, "run_gone": 1})).lost == ("run_gone",)
    assert await contents(store) == before


@every_store
async def test_what_a_worker_has_by_the_rows_is_told_with_its_claims(store: Store, clock: ManualClock) -> None:
    assert await store.at_work("w1") == ()
    await claimed(store, "run_a")
    await claimed(store, "run_b")
    await claimed(store, "run_c", worker="w2")
    await store.give_back("run_a", 1)
    await claim_again(store, "run_a")
    await store.ask_cancel("run_b", person("ann"), "")
    assert await store.at_work("w1") == (
        AtWork(run_id="run_a", epoch=3, cancel_asked=False),
        AtWork(run_id="run_b", epoch=1, cancel_asked=True),
    )


@every_store
async def test_cancelling_a_run_that_nobody_can_be_at_work_on_ends_it_at_once(store: Store, clock: ManualClock) -> None:
    """Its worker is dead, or its lease expired: nobody would hear the wish, and whoever wakes up is fenced."""
    await store.join(worker("w1"), alone=False)
    late = await claimed(store, "run_late", worker="w2", group="g")
    clock.forward(30)
    dead = await claimed(store, "run_dead", group="h")
    await store.join(worker("w3"), alone=True)
    for claim in (late, dead):
        run = await store.ask_cancel(claim.run.run_id, person("ann"), "enough")
        assert (run.status, run.reason, run.worker) == (RunStatus.cancelled, "cancelled", None)
        with pytest.raises(Fenced):
            await store.record(run.run_id, claim.run.epoch, recorded(claim))
        kinds = [event.kind for event in await store.events(run.run_id)]
        assert kinds[-3:] == [EventKind.run_requeued, EventKind.cancel_asked, EventKind.run_ended]
    assert (await store.beat("w3", 30, {"run_late": 1})).lost == ("run_late",)


@every_store
async def test_a_worker_that_joins_alone_buries_the_others(store: Store, clock: ManualClock) -> None:
    """L19: what a dead process held is queued again; were it to wake, it is told to exit."""
    await store.join(worker("w1"), alone=True)
    await claimed(store, "run_a", group="g")
    await store.join(worker("w2"), alone=True)
    assert {info.worker_id: info.dead for info in await store.workers()} == {"w1": True, "w2": False}
    assert await store.requeue_lost() == ("run_a",)
    with pytest.raises(WorkerDeclaredDead, match="must stop"):
        await store.beat("w1", 30, {"run_a": 1})
    assert await store.claim("run_a", 2, "w1", 30) is None
    assert await store.claim("run_a", 2, "w2", 30) is not None
    assert (await store.beat("w2", 30, {"run_a": 3})).lost == ()


@every_store
async def test_an_unknown_worker_has_no_heartbeat(store: Store, clock: ManualClock) -> None:
    with pytest.raises(WorkerDeclaredDead):
        await store.beat("nobody", 30, {})


@every_store
async def test_a_worker_that_leaves_gives_back_what_it_had(store: Store, clock: ManualClock) -> None:
    await store.join(worker("w1"), alone=False)
    old = await claimed(store, "run_a", group="g")
    await claimed(store, "run_b", worker="w2")
    await store.leave("w1")
    assert await store.workers() == ()
    assert (await store.get_run("run_a")).status is RunStatus.queued
    assert (await store.get_run("run_b")).status is RunStatus.running
    assert await store.startable() == (("run_a", 2),)
    with pytest.raises(Fenced):
        await store.append("run_a", old.run.epoch, [note("late")])


@every_store
async def test_next_iteration_counts_only_what_counts(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    lives = (raised("here"), raised("red", object="base", life="run"))
    await store.record("run_a", 1, recorded(claim, conditions=lives))
    await store.next_iteration("run_a", 1, Carried(), True)
    await store.next_iteration("run_a", 1, Carried(last="x"), False)
    run = await store.get_run("run_a")
    assert (run.iteration, run.counted, run.segment, run.epoch) == (3, 2, 1, 1)
    assert [item.name for item in await store.conditions("run_a")] == ["red"]
    assert await store.carried("run_a") == Carried(last="x")
    marks = [told(event) for event in await store.events("run_a") if event.kind is EventKind.iteration_started]
    assert marks == [{"iteration": 2, "counts": True}, {"iteration": 3, "counts": False}]


def fenced_calls(store: Store, claim: Claim) -> dict[str, Callable[[], Awaitable[object]]]:
    """Every method that takes an epoch, called with the claim's."""
    run_id, epoch = claim.run.run_id, claim.run.epoch
    origin = Origin(run_id=run_id, iteration=1, phase="act", action_id="a")
    call = EffectCall(name="http.post", target="u")
    approval = Approval(
        approval_id="apr_new", run_id=run_id, question="?", bound_to="b", role="member", asked_at=0, expires_at=2e6
    )
    ref = ArtifactRef(
        digest="d" * 64, name="log", size=1, run_id=run_id, iteration=1, phase="act", action_id="a"
    )  # fmt: skip
    intended, blind = EffectState.intended, EffectClass.blind
    child = ChildRef(pid=1, started=2, boot="b")
    return {
        "record": lambda: store.record(run_id, epoch, recorded(claim, "late", conditions=(raised("red"),))),
        "next_iteration": lambda: store.next_iteration(run_id, epoch, Carried(), True),
        "wait": lambda: store.wait(run_id, epoch, [wait_for("x", 2e6)], {}, Carried()),
        "end": lambda: store.end(run_id, epoch, End(move=Move.complete, reason="x", events=(note("late"),))),
        "append": lambda: store.append(run_id, epoch, [note("late")]),
        "refer": lambda: store.refer(ref, epoch),
        "child_started": lambda: store.child_started(run_id, epoch, child, ["sh"]),
        "intend": lambda: store.intend("new", origin, epoch, call, "d", blind, intended, 1.0),
        "attempt": lambda: store.attempt("known", epoch, 5.0),
        "settle": lambda: store.settle("known", epoch, EffectState.done, {}, ""),
        "ask_approval": lambda: store.ask_approval(run_id, epoch, approval),
        "use_approval": lambda: store.use_approval("apr_known", run_id, epoch, "b", "late"),
        "reserve": lambda: store.reserve("k", run_id, epoch, {"usd": 1.0}, ()),
    }


async def prepared_claim(store: Store) -> Claim:
    """A claim whose run has an effect to settle and an approval to use."""
    claim = await claimed(store, "run_a", group="g")
    origin, call = Origin(run_id="run_a"), EffectCall(name="http.post", target="u")
    await store.intend("known", origin, 1, call, "d", EffectClass.blind, EffectState.intended, 1.0)
    approval = Approval(
        approval_id="apr_known", run_id="run_a", question="go?", bound_to="b", role="member", asked_at=0, expires_at=2e6
    )
    await store.ask_approval("run_a", 1, approval)
    await store.decide_approval("apr_known", True, person("ann"), "b", "")
    return claim


async def lease_expired(store: Store, clock: ManualClock) -> None:
    clock.forward(31)
    assert await store.requeue_lost() == ("run_a",)


async def taken_by_another(store: Store, clock: ManualClock) -> None:
    await lease_expired(store, clock)
    await claim_again(store, "run_a", "w2")


async def group_taken_over(store: Store, clock: ManualClock) -> None:
    await started(store, "run_b", group="g")
    clock.forward(31)
    assert await store.claim("run_b", 1, "w2", 30) is not None


async def ended_by_its_next_holder(store: Store, clock: ManualClock) -> None:
    await lease_expired(store, clock)
    again = await claim_again(store, "run_a", "w2")
    await store.end("run_a", again.run.epoch, End(move=Move.complete, reason="x"))


async def cancelled_while_queued(store: Store, clock: ManualClock) -> None:
    await lease_expired(store, clock)
    await store.ask_cancel("run_a", person("ann"), "enough")


async def put_to_sleep_by_itself(store: Store, clock: ManualClock) -> None:
    await store.wait("run_a", 1, [wait_for("never", 2e6)], {}, Carried())


def fence_test(
    lose: Callable[[Store, ManualClock], Awaitable[None]],
) -> Callable[[Store, ManualClock], Awaitable[None]]:
    async def story(store: Store, clock: ManualClock) -> None:
        claim = await prepared_claim(store)
        await lose(store, clock)
        before = await contents(store)
        for name, call in fenced_calls(store, claim).items():
            with pytest.raises(Fenced, match="run_a"):
                await call()
            assert await contents(store) == before, name

    story.__name__ = story.__qualname__ = f"test_a_claim_that_is_{lose.__name__}_writes_nothing"
    story.__doc__ = "Every method that takes an epoch raises Fenced and leaves every table as it was."
    story.__module__ = __name__
    return story


test_lease_expired = every_store(fence_test(lease_expired))
test_taken_by_another = every_store(fence_test(taken_by_another))
test_group_taken_over = every_store(fence_test(group_taken_over))
test_ended = every_store(fence_test(ended_by_its_next_holder))
test_cancelled = every_store(fence_test(cancelled_while_queued))
test_asleep = every_store(fence_test(put_to_sleep_by_itself))


@every_store
async def test_with_a_good_claim_the_same_calls_write(store: Store, clock: ManualClock) -> None:
    """The counterpart of the fence tests: none of those calls fails for another reason."""
    claim = await prepared_claim(store)
    last = {"next_iteration", "wait", "end"}
    for name, call in fenced_calls(store, claim).items():
        if name not in last:
            before = await contents(store)
            await call()
            assert await contents(store) != before, name


@every_store
async def test_a_step_is_written_once(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await store.record("run_a", 1, recorded(claim))
    before = await contents(store)
    with pytest.raises(BecketError, match="1/discover/base is in the journal already"):
        await store.record("run_a", 1, recorded(claim))
    assert await contents(store) == before
