"""Seals: the events of a run cover its rows, on every store and for values that JSON or a database would bend."""

from __future__ import annotations

from typing import Any

from store_worlds import (
    START,
    ManualClock,
    agent_call,
    claim_again,
    claimed,
    every_store,
    note,
    question,
    raised,
    started,
    step,
    wait_for,
)

from becket.kernel.contract.agent import AgentOutcome, Limits, Usage
from becket.kernel.contract.calls import CallEnd
from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.events import COVERS, SEALS, EventKind, NewEvent
from becket.kernel.contract.handoff import Handoff, HandoffState
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.run import Move, started_as
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import ArtifactRef, Carried, End, Recorded, Store
from becket.testing.people import person

AWKWARD: dict[str, Any] = {
    "numbered": {10: 1, 9: 2},
    "pair": (1, 2.5),
    "half": "\ud800",
    "nul": "\0",
    "é": float("inf"),
}


async def told(store: Store, run_id: str) -> dict[str, str]:
    """The seals as the events tell them, the latest word each."""
    seals: dict[str, str] = {}
    for event in await store.events(run_id):
        seals |= event.data.get(SEALS, {})
    return seals


async def check(store: Store, run_id: str, *kinds: str) -> None:
    rows = await store.seals(run_id)
    assert {name.split()[0] for name in rows} == set(kinds)
    assert rows == await told(store, run_id)


def proof(exit_code: int, at: float) -> StoredReceipt:
    receipt = Receipt(kind="command", command=("true",), exit_code=exit_code, log="ab" * 32)
    return StoredReceipt(
        digest=receipt.digest, receipt=receipt, run_id="run_a", iteration=1, phase="discover", action_id="b",
        started_at=at, ended_at=at + 1,
    )  # fmt: skip


@every_store
async def test_a_step_is_sealed_with_its_evidence(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    kept = {"run_id": "run_a", "iteration": 1, "phase": "discover", "action_id": "b"}
    await store.refer(ArtifactRef(digest="cd" * 32, name="a/b \0", size=3, **kept), 1)
    condition = raised("red", evidence=AWKWARD)
    steps = (
        step(claim, "a", outputs=AWKWARD, error="half \ud800 and \0"),
        step(claim, "b", conditions=(condition,), artifacts=("cd" * 32,), receipts=("x",)),
    )
    new = (note("before"), NewEvent(kind=EventKind.step_done), note("between"), NewEvent(kind=EventKind.decided))
    proofs = (proof(0, START), proof(0, START + 5), proof(1, START))
    facts = (("proven", "s" * 300), ("proven", "s" * 300), ("moved", "x"))
    await store.record("run_a", 1, Recorded(steps=steps, events=new, receipts=proofs, facts=facts))
    await check(store, "run_a", "step", "receipt", "artifact", "fact")
    carried = [list(event.data.get(SEALS, {})) for event in (await store.events("run_a"))[-4:]]
    assert [len(names) for names in carried] == [0, 1, 0, 7], "each step's event has its step, the last one the rest"
    assert carried[1] == ["step 1/discover/a"]
    clock.forward(5)
    again = Recorded(steps=(step(claim, "c"),), events=(NewEvent(kind=EventKind.step_failed),), facts=(("moved", "x"),))
    await store.record("run_a", 1, again)
    await check(store, "run_a", "step", "receipt", "artifact", "fact")


@every_store
async def test_what_a_run_carries_over_is_sealed_at_every_iteration(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await store.next_iteration("run_a", 1, Carried(outputs={"a": AWKWARD}), True)
    await check(store, "run_a", "carried")
    await store.wait("run_a", 1, [wait_for("bell", START + 9)], {"main_dirty": START}, Carried(last="x"))
    await check(store, "run_a", "carried")
    assert (await store.events("run_a"))[-1].data["iteration"] == 3
    await store.signal("run_a", "bell", {}, "s1")
    claim = await claim_again(store, "run_a")
    await store.signal("run_a", "bell", {}, "s2")
    assert not await store.wait("run_a", claim.run.epoch, [wait_for("bell", START + 9)], {}, Carried(last="y"))
    await check(store, "run_a", "carried")
    begun = [event.data["iteration"] for event in await store.events("run_a") if "iteration" in event.data]
    assert begun[-1] == (await store.get_run("run_a")).iteration == 4


@every_store
async def test_an_effect_is_sealed_as_asked_and_as_settled(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    origin = Origin(run_id="run_a", iteration=1, phase="act", action_id="say")
    call = EffectCall(name="http.post", target="u \0", payload=AWKWARD, defer=True)
    asked = ("k", origin, 1, call, "digest", EffectClass.keyed)
    await store.intend(*asked, EffectState.intended, START + 1)
    await check(store, "run_a", "effect")
    clock.forward(5)
    await store.settle("k", 1, EffectState.retrying, {"in_doubt": True}, "busy", START + 9)
    await store.attempt("k", 1, START + 20)
    await check(store, "run_a", "effect")
    await store.settle("k", 1, EffectState.done, AWKWARD, "late \0")
    await check(store, "run_a", "effect")
    await store.intend("r", origin, 1, call, "digest", EffectClass.keyed, EffectState.refused, START, "no \0")
    await check(store, "run_a", "effect")


@every_store
async def test_a_call_is_sealed_as_booked_and_as_settled_with_what_it_counts_for(
    store: Store, clock: ManualClock
) -> None:
    await claimed(store, "run_a")
    call = agent_call(agent="f \0", model="half \ud800", limits=Limits(seconds=0.1 + 0.2, usd=1e-7))
    await store.begin_call(call, 1, {"usd": 1e-7, "agent_time": 0.1 + 0.2}, ())
    await check(store, "run_a", "call", "spending")
    clock.forward(0.1)
    end = CallEnd(outcome=AgentOutcome.changed, reason="\0 \ud800", until=float("inf"), usage=Usage(usd=1 / 3))
    await store.end_call("c1", end, {"usd": 1 / 3, "tokens": 7})
    await check(store, "run_a", "call", "spending")
    await store.end("run_a", 1, End(move=Move.complete, reason="done"))
    await check(store, "run_a", "call", "spending")


@every_store
async def test_what_is_used_without_a_call_is_sealed_too(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    for _ in range(2):
        await store.reserve("k", "run_a", 1, {"usd": 0.1, "tokens": 5}, ())
    await check(store, "run_a", "spending")
    await store.settle_spend("k", {"agent_time": 1.5})
    await check(store, "run_a", "spending")
    assert [event.data["used"] for event in await store.events("run_a") if event.kind is EventKind.spent] == [
        {"tokens": 5, "usd": 0.1},
        {"agent_time": 1.5},
    ]


@every_store
async def test_what_people_decide_is_sealed_at_every_change(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    for number in range(5):
        await store.ask_approval("run_a", 1, question(f"apr_{number}", bound_to=f"sha{number}", question="May \0 it?"))
    await store.decide_approval("apr_0", True, person("ann"), None, "fine \0")
    await store.use_approval("apr_0", "run_a", 1, "sha0", "effect")
    await store.decide_approval("apr_1", False, person("ann"), None, "")
    await store.revoke_approval("apr_2", person("ann"), "no")
    await check(store, "run_a", "approval")
    handoff = Handoff(
        handoff_id="hnd_1", run_id="run_a", loop_id="heal", subject="s \0", owner="o", reason="r", evidence=AWKWARD,
        next_step="n", created_at=START, expires_at=START + 50, updated_at=START,
    )  # fmt: skip
    await store.end("run_a", 1, End(move=Move.hand_off, reason="r", handoff=handoff))
    await check(store, "run_a", "approval", "handoff")
    expired = [event.data for event in await store.events("run_a") if event.data.get("note") == "the run ended"]
    assert [data["approval_id"] for data in expired] == ["apr_3", "apr_4"], "each question that nobody answered"
    await store.change_handoff("hnd_1", HandoffState.taken, person("bob"), "mine \0")
    await check(store, "run_a", "approval", "handoff")


@every_store
async def test_what_expires_is_sealed_too(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await store.ask_approval("run_a", 1, question())
    await claimed(store, "run_b")
    handoff = Handoff(
        handoff_id="hnd_1", run_id="run_b", loop_id="heal", subject="s", owner="o", reason="r", next_step="n",
        created_at=START, expires_at=START + 50, updated_at=START,
    )  # fmt: skip
    await store.end("run_b", 1, End(move=Move.hand_off, reason="r", handoff=handoff))
    clock.forward(200)
    await store.wake_due()
    await check(store, "run_a", "approval")
    await check(store, "run_b", "handoff")
    assert [item.state for item in await store.handoffs()] == [HandoffState.expired]


@every_store
async def test_the_first_event_holds_what_the_run_was_told(store: Store, clock: ManualClock) -> None:
    awkward = {"subject": "half \ud800 \0", "inputs": AWKWARD, "group": "g", "by": person("me \0"), "trigger": "t"}
    run_id = await started(store, "run_a", **awkward, autonomy="propose", dry_run=True)
    (created,) = await store.events(run_id)
    who = {"role": "owner", "via": "command_line"}
    told_at_start = {**started_as(await store.get_run(run_id)), "spec_digest": "spec-1", COVERS: ["call", "spending"]}
    assert created.data == {**told_at_start, **who}


@every_store
async def test_retention_says_what_it_dropped(store: Store, clock: ManualClock) -> None:
    """L44: evidence is never deleted silently."""
    claim = await claimed(store, "run_a")
    recorded = Recorded(steps=(step(claim, artifacts=("ab" * 32,)),), events=(NewEvent(kind=EventKind.step_done),))
    await store.record("run_a", 1, recorded)
    await store.end("run_a", 1, End(move=Move.complete, reason="done"))
    await store.followed("run_a")
    clock.forward(10)
    assert await store.forget(START, clock()) == ("ab" * 32,)
    assert (await store.events("run_a"))[-1].data == {"count": 1}
    assert list(await store.seals("run_a")) == ["step 1/discover/base"]
    before = await store.get_run("run_a")
    await store.forget(START, clock())
    assert await store.get_run("run_a") == before
