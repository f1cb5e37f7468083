"""Contract of the store: waiting is a row. Signals, due times, deadlines, ends and cancelling."""

from __future__ import annotations

import pytest
from store_worlds import (
    START,
    ManualClock,
    asleep,
    claim_again,
    claimed,
    contents,
    every_store,
    new_run,
    note,
    raised,
    recorded,
    started,
    told,
    wait_for,
)

from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import Handoff, HandoffState
from becket.kernel.contract.run import IllegalMove, Move, RunStatus
from becket.kernel.contract.store import Carried, Claim, End, SignalEnd, Store
from becket.testing.people import person


async def woken_by(store: Store, run_id: str) -> dict[str, object]:
    """The evidence of the condition `woken`."""
    return next(item for item in await store.conditions(run_id) if item.name == "woken").evidence


@every_store
async def test_a_wait_gives_the_run_back_with_what_it_carries(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", group="g")
    lives = (raised("here"), raised("red", object="base", life="run"))
    await store.record("run_a", 1, recorded(claim, conditions=lives))
    waits = [wait_for("approval", START + 50, "asked"), wait_for("clock", START + 9, "quota", START + 20)]
    carried = Carried(outputs={"base": {"sha": "abc"}})
    assert await store.wait("run_a", 1, waits, {"asked": START, "quota": START - 5}, carried)
    run = await store.get_run("run_a")
    assert (run.status, run.segment, run.iteration, run.counted) == (RunStatus.waiting, 2, 2, 1)
    assert (run.worker, run.waiting_on) == (None, ("asked", "quota"))
    assert run.waits_since == {"asked": START, "quota": START - 5}
    assert [item.name for item in await store.conditions("run_a")] == ["red"]
    assert await store.carried("run_a") == carried
    assert await store.next_due() == START + 9
    assert await store.startable() == ()
    assert (await store.start_run(new_run("run_b", group="g"))).created
    assert await store.claim("run_b", 1, "w", 30) is not None


@every_store
async def test_a_signal_wakes_the_run_that_waits_for_it(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await asleep(store, claim, wait_for("approval", START + 50, "asked"), wait_for("clock", START + 9, "quota"))
    assert await store.signal("run_a", "approval", {"id": 7}, "sig-1") is SignalEnd.woke
    run = await store.get_run("run_a")
    assert (run.status, run.segment, run.iteration, run.waiting_on) == (RunStatus.queued, 2, 2, ())
    assert run.waits_since == {"asked": START, "quota": START}, "how long it waits is not forgotten"
    sent = {"name": "approval", "signal_id": "sig-1", "payload": {"id": 7}}
    assert await woken_by(store, "run_a") == {"by": "signal", "signals": [sent]}
    assert [event.kind for event in await store.events("run_a")][-2:] == [
        EventKind.signal_received,
        EventKind.run_woken,
    ]
    assert await store.next_due() is None, "its other wait is gone too"
    assert await store.startable() == (("run_a", 2),)


@every_store
async def test_the_same_signal_counts_once(store: Store, clock: ManualClock) -> None:
    """L35: an atomic insert, not check-then-set."""
    claim = await claimed(store, "run_a")
    await asleep(store, claim, wait_for("go", START + 50))
    assert await store.signal("run_a", "go", {}, "sig-1") is SignalEnd.woke
    before = await contents(store)
    assert await store.signal("run_a", "go", {}, "sig-1") is SignalEnd.duplicate
    assert await contents(store) == before
    again = await claim_again(store, "run_a")
    assert await store.wait("run_a", again.run.epoch, [wait_for("go", START + 50)], {}, Carried()), "it was received"


@every_store
async def test_a_signal_for_later_is_kept_and_the_run_does_not_sleep(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", group="g")
    assert await store.signal("run_a", "approval", {"n": 1}, "sig-1") is SignalEnd.kept
    assert await store.signal("run_a", "approval", {"n": 2}, "sig-2") is SignalEnd.kept
    assert await store.signal("run_a", "other", {}, "sig-3") is SignalEnd.kept
    waits = [wait_for("approval", START + 50)]
    assert await store.wait("run_a", claim.run.epoch, waits, {"main_dirty": START}, Carried()) is False
    run = await store.get_run("run_a")
    assert (run.status, run.segment, run.iteration, run.worker) == (RunStatus.queued, 2, 2, None)
    evidence = await woken_by(store, "run_a")
    assert [item["payload"] for item in evidence["signals"]] == [{"n": 1}, {"n": 2}]  # type: ignore[attr-defined]
    again = await claim_again(store, "run_a")
    assert await store.wait("run_a", again.run.epoch, waits, {}, Carried()), "each is received once"
    assert await store.signal("run_a", "another", {}, "sig-4") is SignalEnd.kept, "it waits for something else"
    assert (await store.get_run("run_a")).status is RunStatus.waiting


@every_store
async def test_a_run_that_waits_for_nothing_is_queued_again_at_once(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    assert await store.wait("run_a", claim.run.epoch, [], {}, Carried()) is False
    run = await store.get_run("run_a")
    assert (run.status, run.segment, run.iteration) == (RunStatus.queued, 2, 2)
    assert await store.conditions("run_a") == ()


@every_store
async def test_due_waits_wake_for_a_poll_and_for_the_end(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await asleep(store, claim, wait_for("changed", START + 30, "main_dirty", START + 40))
    assert await store.wake_due() == ()
    clock.forward(30)
    assert await store.wake_due() == ("run_a",)
    assert await store.wake_due() == ()
    waits = [{"condition": "main_dirty", "wake": "changed", "expired": False}]
    assert await woken_by(store, "run_a") == {"by": "due", "waits": waits}
    await asleep(store, await claim_again(store, "run_a"), wait_for("changed", START + 40, "main_dirty", START + 40))
    clock.forward(10)
    assert await store.wake_due() == ("run_a",)
    assert (await woken_by(store, "run_a"))["waits"] == [{**waits[0], "expired": True}]
    assert (await store.get_run("run_a")).counted == 1, "polling does not use up iterations"


@every_store
async def test_a_deadline_wakes_a_waiting_run(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", deadline=20.0)
    await asleep(store, claim, wait_for("x", START + 500))
    assert await store.next_due() == START + 20
    clock.forward(20)
    assert await store.wake_due() == ("run_a",)
    assert (await woken_by(store, "run_a"))["by"] == "deadline"
    assert await store.next_due() is None, "only the deadlines of waiting runs are due"


@every_store
async def test_due_runs_are_woken_in_order_and_in_portions(store: Store, clock: ManualClock) -> None:
    for number in range(5):
        claim = await claimed(store, f"run_{number}")
        await asleep(store, claim, wait_for("x", START + 10 - number), wait_for("y", START + 10 - number))
    clock.forward(10)
    assert await store.wake_due(3) == ("run_4", "run_3", "run_2")
    assert await store.wake_due(3) == ("run_1", "run_0")


@every_store
async def test_a_held_run_may_wake_but_not_start(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await asleep(store, claim, wait_for("x", START + 10))
    await store.hold("run_a", person("ann"), True)
    assert await store.signal("run_a", "x", {}, "s") is SignalEnd.woke
    assert await store.startable() == ()


def handoff(run_id: str, **changes: object) -> Handoff:
    return Handoff.model_validate(
        {
            "handoff_id": f"hnd_{run_id}", "run_id": run_id, "loop_id": "heal", "subject": "s", "owner": "ann",
            "reason": "undecided", "evidence": {"log": "x"}, "next_step": "look", "created_at": START,
            "updated_at": START, "expires_at": START + 100, **changes,
        }
    )  # fmt: skip


@every_store
async def test_the_end_is_the_last_write_of_a_run(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", group="g")
    for run_id in ("run_b", "run_c", "run_d"):
        await started(store, run_id, group="g")
    await store.hold("run_c", person("ann"), True)
    clock.forward(5)
    end = End(
        move=Move.hand_off, reason="undecided", detail={"why": "flaky"}, handoff=handoff("run_a"), events=(note("bye"),)
    )
    assert await store.end("run_a", claim.run.epoch, end) == ("run_b", "run_d")
    run = await store.get_run("run_a")
    assert (run.status, run.reason, run.detail) == (RunStatus.ready_for_handoff, "undecided", {"why": "flaky"})
    assert (run.ended_at, run.worker) == (START + 5, None)
    kinds = [event.kind for event in await store.events("run_a")]
    assert kinds[-3:] == [EventKind.note, EventKind.handoff_opened, EventKind.run_ended]
    [opened] = await store.handoffs((HandoffState.open,))
    assert opened == handoff("run_a")
    assert await store.startable() == (("run_b", 1),), "the lease is free"
    assert await store.signal("run_a", "x", {}, "s") is SignalEnd.ended


@every_store
async def test_only_an_ending_move_ends_a_run(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store)
    before = await contents(store)
    for move in (Move.claim, Move.requeue, Move.wait, Move.wake, Move.next_segment):
        with pytest.raises(IllegalMove):
            await store.end(claim.run.run_id, claim.run.epoch, End(move=move, reason="x"))
    assert await contents(store) == before


@every_store
async def test_every_end_signals_the_parent(store: Store, clock: ManualClock) -> None:
    """However a child ends: by itself, cancelled or superseded. A parent never waits for a child that is gone."""
    parent = await claimed(store, "run_p")
    child = await claimed(store, "run_c", parent="run_p")
    await started(store, "run_d", parent="run_p", group="g")
    await started(store, "run_e", parent="run_p")
    await asleep(store, parent, wait_for("child", START + 50))
    assert await store.end("run_c", child.run.epoch, End(move=Move.fail, reason="broken")) == ("run_p",)
    [sent] = (await woken_by(store, "run_p"))["signals"]  # type: ignore[misc]
    assert sent["payload"] == {"run_id": "run_c", "loop_id": "heal", "status": "failed", "reason": "broken"}
    await store.start_run(new_run(group="g", on_busy="newest_waits"))
    await store.ask_cancel("run_e", person("ann"), "")
    again = await claim_again(store, "run_p")
    assert await store.wait("run_p", again.run.epoch, [wait_for("child", START + 50)], {}, Carried()) is False
    told = [item["payload"]["run_id"] for item in (await woken_by(store, "run_p"))["signals"]]  # type: ignore[attr-defined]
    assert told == ["run_d", "run_e"]


@every_store
async def test_an_end_without_a_living_parent_is_an_end(store: Store, clock: ManualClock) -> None:
    orphan = await claimed(store, parent="run_forgotten")
    assert await store.end(orphan.run.run_id, 1, End(move=Move.complete, reason="x")) == ()
    parent = await started(store)
    child = await claimed(store, parent=parent)
    await store.ask_cancel(parent, person("ann"), "")
    assert await store.end(child.run.run_id, 1, End(move=Move.complete, reason="x")) == ()


@every_store
async def test_a_queued_or_waiting_run_is_cancelled_at_once(store: Store, clock: ManualClock) -> None:
    queued = await started(store)
    claim = await claimed(store)
    await asleep(store, claim, wait_for("x", START + 10))
    for run_id in (queued, claim.run.run_id):
        run = await store.ask_cancel(run_id, person("ann"), "enough")
        assert (run.status, run.reason, run.detail) == (
            RunStatus.cancelled,
            "cancelled",
            {"by": "ann", "note": "enough"},
        )
        assert [event.kind for event in await store.events(run_id)][-2:] == [
            EventKind.cancel_asked,
            EventKind.run_ended,
        ]
        before = await contents(store)
        assert await store.ask_cancel(run_id, person("bob"), "again") == run
        assert await contents(store) == before
    assert await store.next_due() is None


async def asked_to_cancel(store: Store) -> Claim:
    claim = await claimed(store, "run_a")
    await claimed(store, "run_b", worker="w2")
    for _ in range(2):
        run = await store.ask_cancel("run_a", person("ann"), "enough")
        assert (run.status, run.cancel_asked, run.detail) == (RunStatus.running, True, {"by": "ann", "note": "enough"})
    return claim


@every_store
async def test_a_running_run_is_told_to_cancel(store: Store, clock: ManualClock) -> None:
    claim = await asked_to_cancel(store)
    assert [item.cancel_asked for item in await store.at_work("w1")] == [True]
    assert [item.cancel_asked for item in await store.at_work("w2")] == [False]
    assert [event.kind for event in await store.events("run_a")].count(EventKind.cancel_asked) == 1
    await store.end("run_a", claim.run.epoch, End(move=Move.cancel, reason="cancelled"))
    assert await store.at_work("w1") == ()


@every_store
async def test_a_run_that_was_told_to_cancel_does_not_fall_asleep(store: Store, clock: ManualClock) -> None:
    claim = await asked_to_cancel(store)
    assert await store.wait("run_a", claim.run.epoch, [wait_for("x", START + 9)], {}, Carried()) is False
    assert await woken_by(store, "run_a") == {"by": "cancel"}
    assert (await claim_again(store, "run_a")).run.cancel_asked


@every_store
async def test_ended_runs_are_followed_once(store: Store, clock: ManualClock) -> None:
    """L42: the trigger that follows a run is looked at after a crash too, until it says that it is done."""
    first, second = await started(store), await started(store)
    await started(store)
    for run_id in (second, first):
        clock.forward(1)
        await store.ask_cancel(run_id, person("ann"), "")
    assert [run.run_id for run in await store.unfollowed()] == [second, first]
    assert [run.run_id for run in await store.unfollowed(1)] == [second]
    await store.followed(second)
    await store.followed(second)
    assert [run.run_id for run in await store.unfollowed()] == [first]


@every_store
async def test_handoffs_are_taken_done_or_expire(store: Store, clock: ManualClock) -> None:
    for run_id in ("run_a", "run_b", "run_c"):
        claim = await claimed(store, run_id)
        await store.end(run_id, claim.run.epoch, End(move=Move.hand_off, reason="x", handoff=handoff(run_id)))
    assert await store.next_due() == START + 100
    taken = await store.change_handoff("hnd_run_a", HandoffState.taken, person("bob"), "mine")
    assert (taken.state, taken.taken_by, taken.note, taken.updated_at) == (HandoffState.taken, "bob", "mine", START)
    done = await store.change_handoff("hnd_run_b", HandoffState.done, person("cem"), "ok")
    assert (done.state, done.taken_by) == (HandoffState.done, "cem")
    wrong = (
        ("hnd_run_a", HandoffState.taken, "is taken already, by bob"),
        ("hnd_run_b", HandoffState.taken, "cannot become"), ("hnd_run_b", HandoffState.done, "is done already, by cem"),
        ("hnd_run_c", HandoffState.expired, "cannot become"), ("hnd_run_c", HandoffState.open, "is open already"),
    )  # fmt: skip
    before = await contents(store)
    for handoff_id, state, why in wrong:
        with pytest.raises(UsageError, match=why):
            await store.change_handoff(handoff_id, state, person("x"), "")
    assert await contents(store) == before
    clock.forward(100)
    assert await store.wake_due() == ()
    assert (await store.get_handoff("hnd_run_c")).state is HandoffState.expired
    assert (await store.get_handoff("hnd_run_a")).state is HandoffState.taken, "somebody is at it"
    assert told((await store.events("run_c"))[-1]) == {"handoff_id": "hnd_run_c", "state": "expired"}
    with pytest.raises(UsageError):
        await store.change_handoff("hnd_run_c", HandoffState.done, person("x"), "")
    await store.change_handoff("hnd_run_a", HandoffState.done, person("dan"), "fixed")
    assert (await store.get_handoff("hnd_run_a")).taken_by == "bob"
    changes = [event.data for event in await store.events("run_a") if event.kind is EventKind.handoff_changed]
    assert [change["by"] for change in changes] == ["bob", "dan"]
    assert await store.handoffs(run_id="run_a") == (await store.get_handoff("hnd_run_a"),)
    assert len(await store.handoffs()) == 3
    with pytest.raises(NotFound, match="becket handoffs"):
        await store.get_handoff("hnd_x")
    assert await store.next_due() is None
