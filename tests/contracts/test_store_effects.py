"""Contract of the store: the door's rows."""

from __future__ import annotations

from typing import Any

import pytest
from store_worlds import START, ManualClock, asleep, claimed, contents, every_store, started, told, wait_for

from becket.kernel.contract.effect import SETTLED, Effect, EffectCall, EffectState, Origin
from becket.kernel.contract.errors import EffectRefused, NotFound
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import Move
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import End, Store

CALL = EffectCall(name="http.post", target="https://x", payload={"é": [1]}, label="l", approval="apr_1", defer=True)


async def intend(store: Store, key: str, run_id: str = "run_a", epoch: int | None = 1, **changes: Any) -> Effect:
    origin = Origin(run_id=run_id, iteration=2, phase="act", action_id="say")
    call = CALL.model_copy(update={"defer": changes.pop("defer", False), "name": changes.pop("name", "http.post")})
    fields = {"state": EffectState.intended, "settle_at": START + 10, "reason": ""} | changes
    effect, new = await store.intend(key, origin, epoch, call, "digest", EffectClass.keyed, **fields)
    assert new
    return effect


@every_store
async def test_an_intent_is_written_once_and_read_back(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    origin = Origin(run_id="run_a", iteration=2, phase="act", action_id="say")
    asked = ("k", origin, 1, CALL, "digest", EffectClass.queryable, EffectState.intended, START + 10, "why")
    effect, new = await store.intend(*asked)
    assert new
    assert effect == Effect(
        key="k", origin=origin, call=CALL, digest="digest", class_=EffectClass.queryable, state=EffectState.intended,
        attempts=1, settle_at=START + 10, reason="why", created_at=START, updated_at=START,
    )  # fmt: skip
    clock.forward(1)
    before = await contents(store)
    assert await store.intend(*asked) == (effect, False)
    assert await contents(store) == before
    assert await store.get_effect("k") == effect
    assert await store.get_effect("other") is None
    [event] = [event for event in await store.events("run_a") if event.kind is EventKind.effect_intended]
    said = {"key": "k", "name": "http.post", "target": "https://x", "state": "intended", "reason": "why"}
    assert told(event) == said


@every_store
async def test_the_same_key_with_another_digest_is_refused(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    effect = await intend(store, "k")
    before = await contents(store)
    with pytest.raises(EffectRefused, match="label of its own"):
        await store.intend("k", effect.origin, 1, CALL, "other", EffectClass.keyed, EffectState.intended, START)
    assert await contents(store) == before


@every_store
async def test_attempts_are_counted_and_settled_once(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await intend(store, "k")
    clock.forward(1)
    waits = await store.settle("k", 1, EffectState.retrying, {"code": 503}, "busy", START + 5)
    assert (waits.state, waits.next_at, waits.result, waits.reason) == (
        EffectState.retrying, START + 5, {"code": 503}, "busy",
    )  # fmt: skip
    again = await store.attempt("k", 1, START + 20)
    assert (again.state, again.attempts, again.settle_at, again.next_at) == (
        EffectState.intended, 2, START + 20, None,
    )  # fmt: skip
    done = await store.settle("k", 1, EffectState.done, {"id": 7}, "")
    assert (done.state, done.result, done.updated_at) == (EffectState.done, {"id": 7}, START + 1)
    before = await contents(store)
    for state in EffectState:
        assert await store.settle("k", 1, state, {}, "late") == done
        assert await store.settle("k", None, state, {}, "late") == done
    with pytest.raises(EffectRefused, match="is done"):
        await store.attempt("k", 1, START + 99)
    assert await contents(store) == before
    settled = [event.data for event in await store.events("run_a") if event.kind is EventKind.effect_settled]
    assert [data["state"] for data in settled] == ["done"]


@every_store
async def test_an_unknown_effect_has_no_attempts(store: Store, clock: ManualClock) -> None:
    with pytest.raises(NotFound):
        await store.attempt("k", None, START)
    with pytest.raises(NotFound):
        await store.settle("k", None, EffectState.done, {}, "")


@every_store
async def test_without_a_claim_two_processes_do_not_make_the_same_attempt(store: Store, clock: ManualClock) -> None:
    await intend(store, "k", "incident", None, defer=True)
    for refused_at in (START, START + 9):
        clock.at = refused_at
        with pytest.raises(EffectRefused, match="came first"):
            await store.attempt("k", None, START + 50)
    clock.at = START + 10
    assert (await store.attempt("k", None, START + 50)).attempts == 2
    await store.settle("k", None, EffectState.retrying, {}, "busy", START + 30)
    with pytest.raises(EffectRefused, match="came first"):
        await store.attempt("k", None, START + 50)
    clock.at = START + 30
    assert (await store.attempt("k", None, START + 60)).attempts == 3


@every_store
async def test_effects_outside_of_runs_have_rows_but_no_story(store: Store, clock: ManualClock) -> None:
    effect = await intend(store, "k", "incident", None)
    assert (await store.settle("k", None, EffectState.done, {}, "")).state is EffectState.done
    assert effect.origin.run_id == "incident"
    assert await store.events("incident") == ()


@every_store
async def test_refused_and_dry_effects_have_no_attempt_and_no_count(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    for state in EffectState:
        effect = await intend(store, f"k-{state}", state=state)
        assert effect.attempts == (1 if state is EffectState.intended else 0)
    await intend(store, "other", name="git.push")
    clock.forward(10)
    await intend(store, "late")
    assert await store.count_effects("http.post", START) == len(EffectState) - 2 + 1
    assert await store.count_effects("http.post", START + 1) == 1
    assert await store.count_effects("nothing", 0) == 0


@every_store
async def test_effects_are_listed_by_run_and_state(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await claimed(store, "run_b")
    await intend(store, "z")
    await intend(store, "a", state=EffectState.refused)
    await intend(store, "m", "run_b")
    assert [effect.key for effect in await store.effects()] == ["z", "a", "m"]
    assert [effect.key for effect in await store.effects("run_a")] == ["z", "a"]
    assert [effect.key for effect in await store.effects(states=tuple(SETTLED))] == ["a"]
    assert [effect.key for effect in await store.effects("run_b", (EffectState.refused,))] == []


async def due(store: Store) -> list[str]:
    return [effect.key for effect in await store.due_effects()]


@every_store
async def test_deferred_notices_are_due_at_their_time(store: Store, clock: ManualClock) -> None:
    """L36: the outbox delivers although the run has gone on."""
    await claimed(store, "run_a")
    await intend(store, "defer", defer=True)
    await intend(store, "own")
    for key in ("defer", "own"):
        await store.settle(key, 1, EffectState.retrying, {}, "busy", START + 5)
    assert await store.next_due() == START + 5
    assert await due(store) == []
    clock.forward(5)
    assert await due(store) == ["defer"], "its run itself sees to the other one"
    await store.attempt("defer", None, START + 20)
    assert await due(store) == []
    assert await store.next_due() == START + 20, "whoever attempts it may die before it is settled"
    clock.forward(15)
    assert await due(store) == ["defer"]


@every_store
async def test_what_an_ended_run_left_unsettled_is_due(store: Store, clock: ManualClock) -> None:
    for run_id in ("run_a", "run_open"):
        await claimed(store, run_id)
        await intend(store, f"{run_id}-flying", run_id)
        await intend(store, f"{run_id}-trying", run_id)
        await store.settle(f"{run_id}-trying", 1, EffectState.retrying, {}, "", START + 5)
    await intend(store, "alarm", "incident", None)
    await store.end("run_a", 1, End(move=Move.fail, reason="x"))
    assert await store.next_due() == START + 5
    clock.at = START + 5
    assert await due(store) == ["run_a-trying"]
    clock.at = START + 10
    assert await due(store) == ["run_a-flying", "run_a-trying", "alarm"]
    assert [effect.key for effect in await store.due_effects(1)] == ["run_a-flying"]


@every_store
async def test_the_next_due_time_is_the_earliest_of_all(store: Store, clock: ManualClock) -> None:
    assert await store.next_due() is None
    claim = await claimed(store, "run_a", deadline=90.0)
    await started(store, deadline=1.0)
    await asleep(store, claim, wait_for("x", START + 200))
    assert await store.next_due() == START + 90
    await intend(store, "k", "incident", None, settle_at=START + 80)
    assert await store.next_due() == START + 80
    await store.settle("k", None, EffectState.done, {}, "")
    assert await store.next_due() == START + 90
