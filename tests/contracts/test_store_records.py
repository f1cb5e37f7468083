"""Contract of the store: what runs leave behind, and how long it is kept."""

from __future__ import annotations

import pytest
from store_worlds import (
    START,
    ManualClock,
    check_chain,
    claimed,
    contents,
    every_store,
    note,
    raised,
    recorded,
    started,
    step,
)

from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.events import EventKind, NewEvent
from becket.kernel.contract.handoff import Handoff, HandoffState
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.run import Move, StepState
from becket.kernel.contract.spec import EffectClass, Phase
from becket.kernel.contract.store import ArtifactRef, Claim, End, Recorded, Store
from becket.testing.people import person


def receipt(claim: Claim, log: str | None = None, exit_code: int = 0) -> StoredReceipt:
    made = Receipt(kind="command", command=("sh", "-c", "x"), tree="t", exit_code=exit_code, log=log, body={"é": 1})
    return StoredReceipt(
        digest=made.digest, receipt=made, run_id=claim.run.run_id, iteration=claim.run.iteration, phase="discover",
        action_id="base", started_at=START, ended_at=START + 1.25,
    )  # fmt: skip


def artifact(run_id: str, digest: str, name: str = "base.log", size: int = 5) -> ArtifactRef:
    return ArtifactRef(
        digest=digest, name=name, size=size, run_id=run_id, iteration=1, phase="discover", action_id="base"
    )  # fmt: skip


@every_store
async def test_a_step_is_read_back_as_it_was_written(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    clock.forward(3)
    condition = raised(
        "fast_red", object="base", group=("fast_green", "fast_red"), life="run", evidence={"log": "x", "n": [1, 2.5]}
    )
    dated = condition.model_copy(update={"iteration": 1, "at": START + 3})
    done = step(
        claim, "base", phase=Phase.verify, state=StepState.failed, attempts=3, outputs={"sha": "é", "deep": {"b": [1]}},
        conditions=(condition,), receipts=("r1",), artifacts=("a" * 64,), error_kind="timeout", error="no\0 answer",
        note="n", progress="p", started_at=START + 0.1, ended_at=START + 0.3,
    )  # fmt: skip
    await store.record("run_a", 1, Recorded(steps=(done, step(claim, "two")), wall=1.5))
    await store.record("run_a", 1, Recorded(steps=(step(claim, "three"),), wall=0.25))
    first, *others = await store.steps("run_a")
    assert first == done.model_copy(update={"conditions": (dated,), "error": "no\ufffd answer"})
    assert [item.id for item in others] == ["two", "three"]
    assert await store.steps("run_a", 2) == ()
    assert await store.steps("run_a", 1) == (first, *others)
    assert await store.conditions("run_a") == (dated,)
    assert (await store.get_run("run_a")).wall_used == 1.75


@every_store
async def test_conditions_of_a_group_replace_each_other(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")

    def fast(value: str, about: str = "base") -> object:
        return raised(f"fast_{value}", object=about, group=("fast_green", "fast_red", "fast_undecided"))

    async def raise_all(step_id: str, *conditions: object) -> list[str]:
        clock.forward(1)
        await store.record("run_a", 1, recorded(claim, step_id, conditions=conditions))
        return [item.ref for item in await store.conditions("run_a")]

    assert await raise_all("1", fast("red"), raised("alone")) == ["base.fast_red", "alone"]
    assert await raise_all("2", fast("green"), fast("red", "candidate")) == [
        "alone", "base.fast_green", "candidate.fast_red",
    ]  # fmt: skip
    assert await raise_all("3", fast("red"), fast("undecided"), raised("alone")) == [
        "candidate.fast_red", "base.fast_undecided", "alone",
    ]  # fmt: skip


@every_store
async def test_events_form_a_chain_over_every_kind_of_write(store: Store, clock: ManualClock) -> None:
    """L44: signals, cancelling and handoffs are appended between a claim's own writes; no number is lost or doubled."""
    claim = await claimed(store, "run_a")
    for number in range(4):
        clock.forward(0.1)
        await store.signal("run_a", "x", {"n": number}, f"s{number}")
        await store.record("run_a", 1, recorded(claim, f"step{number}"))
        await store.append("run_a", 1, [note("a"), note("b")])
        await store.append(
            "run_a", None, [NewEvent(kind=EventKind.note, data={"odd": {2: "x", 10: "y"}, "t": (1, 0.1)})]
        )
    await store.ask_cancel("run_a", person("ann"), "é")
    await store.end("run_a", 1, End(move=Move.cancel, reason="cancelled"))
    await store.append("run_a", None, [note("after the end")])
    events = await store.events("run_a")
    check_chain(events)
    run = await store.get_run("run_a")
    assert (run.event_count, run.head) == (len(events), events[-1].digest)
    assert len(events) == 2 + 4 * 5 + 2 + 1
    assert await store.events("run_a", after=3, limit=2) == events[3:5]
    with pytest.raises(NotFound):
        await store.append("run_x", None, [note("nowhere")])


@every_store
async def test_a_refused_write_leaves_the_chain_whole(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await store.record("run_a", 1, recorded(claim))
    with pytest.raises(Exception, match="already"):
        await store.record("run_a", 1, recorded(claim))
    await store.record("run_a", 1, recorded(claim, "next"))
    check_chain(await store.events("run_a"))


@every_store
async def test_receipts_are_kept_with_their_step(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    first, second = receipt(claim, log="b" * 64), receipt(claim, exit_code=1)
    await store.record("run_a", 1, Recorded(steps=(step(claim),), receipts=(first, second, first)))
    assert await store.receipts("run_a") == (first, second)
    assert (await store.receipts("run_a"))[0].receipt.digest == first.digest
    assert await store.receipts("run_x") == ()


@every_store
async def test_whatever_a_step_or_a_receipt_names_is_referred_to(store: Store, clock: ManualClock) -> None:
    """L44: evidence is never an orphan, even if nobody called `refer` for it."""
    claim = await claimed(store, "run_a")
    await store.refer(artifact("run_a", "a" * 64, "named.txt", 7), 1)
    await store.refer(artifact("run_a", "a" * 64, "named.txt", 7), 1)
    await store.refer(artifact("run_a", "a" * 64, "twin.txt", 7), None)
    done = Recorded(
        steps=(step(claim, artifacts=("a" * 64, "c" * 64)),),
        receipts=(receipt(claim, "b" * 64), receipt(claim, "c" * 64)),
    )
    await store.record("run_a", 1, done)
    known = {(ref.digest[0], ref.name, ref.size) for ref in await store.artifacts("run_a")}
    assert known == {("a", "named.txt", 7), ("a", "twin.txt", 7), ("b", "log", 0), ("c", "", 0)}
    assert await store.referred() == {"a" * 64, "b" * 64, "c" * 64}


@every_store
async def test_facts_are_about_a_subject_whoever_recorded_them(store: Store, clock: ManualClock) -> None:
    first = await claimed(store, "run_a", subject="one")
    second = await claimed(store, "run_b", subject="two")
    long = "s" * 4000

    async def record(claim: Claim, step_id: str, *facts: tuple[str, str]) -> None:
        await store.record(claim.run.run_id, 1, Recorded(steps=(step(claim, step_id),), facts=facts))

    assert not await store.has_fact("proven", "sha1", "heal")
    await record(first, "1", ("proven", "sha1"), ("proven", "sha1"), ("moved", long))
    assert await store.has_fact("proven", "sha1", "any loop")
    assert await store.has_fact("moved", long, "heal")
    assert not await store.has_fact("moved", long + "!", "heal")
    assert await store.recorded_by("proven", "sha1") == "run_a"
    await record(second, "1", ("proven", "sha1"))
    assert await store.recorded_by("proven", "sha1") == "run_b"
    await record(first, "2", ("proven", "sha1"))
    assert await store.recorded_by("proven", "sha1") == "run_a", "the last word"
    assert await store.recorded_by("proven", "sha2") is None


@every_store
async def test_completed_is_a_fact_of_the_loop(store: Store, clock: ManualClock) -> None:
    for run_id, move in (("run_a", Move.fail), ("run_b", Move.complete_dry_run)):
        await claimed(store, run_id, subject="one")
        await store.end(run_id, 1, End(move=move, reason="x"))
    assert not await store.has_fact("completed", "one", "heal")
    await claimed(store, "run_c", subject="one")
    await store.end("run_c", 1, End(move=Move.complete, reason="x"))
    assert await store.has_fact("completed", "one", "heal")
    assert not await store.has_fact("completed", "one", "task")


@every_store
async def test_children_are_known_until_they_ended(store: Store, clock: ManualClock) -> None:
    """L26: a process is pid, start time and boot; after a crash of ours nobody is unknown."""
    await claimed(store, "run_a")
    first = ChildRef(pid=7, started=2**40, boot="b1")
    second = ChildRef(pid=7, started=2**40 + 1, boot="b1")
    await store.child_started("run_a", 1, first, ["sh", "-c", "é\0"])
    clock.forward(1)
    await store.child_started("run_a", 1, second, ["sleep"])
    assert await store.live_children() == (first, second)
    for _ in range(2):
        await store.child_ended(first)
    await store.child_ended(ChildRef(pid=9, started=1, boot="b1"))
    assert await store.live_children() == (second,)
    await store.end("run_a", 1, End(move=Move.fail, reason="x"))
    await store.child_ended(second)
    assert await store.live_children() == ()
    ended = [event.kind for event in await store.events("run_a")]
    assert (ended.count(EventKind.child_started), ended.count(EventKind.child_ended)) == (2, 2)


@every_store
async def test_unknown_names_are_answered_plainly(store: Store, clock: ManualClock) -> None:
    with pytest.raises(NotFound, match="no spec"):
        await store.spec_text("nothing")
    assert await store.steps("run_x") == ()
    assert await store.artifacts("run_x") == ()


async def ended_with_evidence(store: Store, run_id: str, **how: object) -> None:
    """A run that ended, was followed, and refers to an artifact of its own and to a shared one."""
    claim = await claimed(store, run_id)
    await store.record(run_id, 1, Recorded(steps=(step(claim, artifacts=(digest_for(run_id), "f" * 64)),)))
    await store.end(run_id, 1, End.model_validate({"move": Move.complete, "reason": "x", **how}))
    await store.followed(run_id)


def digest_for(run_id: str) -> str:
    return run_id.removeprefix("run_")[0] * 64


@every_store
async def test_old_runs_and_artifacts_are_forgotten(store: Store, clock: ManualClock) -> None:
    await ended_with_evidence(store, "run_a")
    clock.forward(100)
    await ended_with_evidence(store, "run_b")
    clock.forward(100)
    assert await store.forget(START, START) == ()
    assert await store.forget(START, START + 50) == ("a" * 64,), "the shared one is still referred to"
    assert await store.artifacts("run_a") == ()
    assert (await store.get_run("run_a")).status == "completed", "the run itself is kept for longer"
    assert await store.forget(START + 50, START + 50) == ()
    with pytest.raises(NotFound):
        await store.get_run("run_a")
    assert await store.forget(START + 150, START + 150) == ("b" * 64, "f" * 64)
    left = {name: len(rows) for name, rows in (await contents(store)).items() if rows}
    assert left == {}


@every_store
async def test_retention_never_touches_what_is_not_finished(store: Store, clock: ManualClock) -> None:
    """L44: an open run, an open or taken handoff, an unsettled effect, a run not yet followed, an open run's child."""
    handoffs = [
        Handoff(
            handoff_id=f"hnd_{run_id}", run_id=run_id, loop_id="heal", subject="s", owner="ann", reason="x",
            next_step="y", created_at=START, updated_at=START,
        )
        for run_id in ("run_b", "run_c")
    ]  # fmt: skip
    open_claim = await claimed(store, "run_a")
    await store.record("run_a", 1, Recorded(steps=(step(open_claim, artifacts=("a" * 64,)),)))
    for handoff in handoffs:
        await ended_with_evidence(store, handoff.run_id, move=Move.hand_off, handoff=handoff)
    await store.change_handoff("hnd_run_c", HandoffState.taken, person("ann"), "")
    effects = {"run_d": EffectState.intended, "run_e": EffectState.retrying}
    for run_id, state in effects.items():
        claim = await claimed(store, run_id)
        await store.record(run_id, 1, Recorded(steps=(step(claim, artifacts=(digest_for(run_id),)),)))
        call, intended = EffectCall(name="http.post", target="u"), EffectState.intended
        await store.intend(run_id, Origin(run_id=run_id), 1, call, "d", EffectClass.keyed, intended, START)
        await store.settle(run_id, 1, state, {}, "")
        await store.end(run_id, 1, End(move=Move.fail, reason="x"))
        await store.followed(run_id)
    await started(store, "run_f")
    await store.ask_cancel("run_f", person("ann"), "")
    child = await claimed(store, "run_child", parent="run_a")
    await store.end("run_child", child.run.epoch, End(move=Move.complete, reason="x"))
    await store.followed("run_child")
    before = await contents(store)
    assert await store.forget(START + 1e9, START + 1e9) == ()
    assert await contents(store) == before
    for handoff in handoffs:
        await store.change_handoff(handoff.handoff_id, HandoffState.done, person("ann"), "")
    for run_id in effects:
        await store.settle(run_id, None, EffectState.done, {}, "")
    await store.followed("run_f")
    await store.end("run_a", 1, End(move=Move.complete, reason="x"))
    await store.followed("run_a")
    gone = await store.forget(START + 1e9, START + 1e9)
    assert gone == tuple(letter * 64 for letter in "abcdef")
    assert [name for name, rows in (await contents(store)).items() if rows] == []


@every_store
async def test_old_alarms_and_their_artifacts_are_forgotten_too(store: Store, clock: ManualClock) -> None:
    call = EffectCall(name="notify.file", target="f")
    for key, state in (("k1", EffectState.done), ("k2", EffectState.intended)):
        await store.intend(key, Origin(run_id="incident"), None, call, "d", EffectClass.repeatable, state, START)
    await store.refer(artifact("incident", "a" * 64), None)
    assert await store.forget(START, START) == ()
    assert await store.forget(START + 1, START + 1) == ("a" * 64,)
    assert [effect.key for effect in await store.effects()] == ["k2"]
