"""Contract of the store: calls of agents. Booked before they are made, settled once, counted by every budget (L23)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from store_worlds import (
    START,
    ManualClock,
    World,
    agent_call,
    check_chain,
    claim_again,
    claimed,
    contents,
    every_store,
    every_world,
    recorded,
    told,
)

from becket.kernel.contract.agent import AgentOutcome, PriceSource, Usage
from becket.kernel.contract.calls import CallEnd, SettledBy
from becket.kernel.contract.errors import Fenced, NotFound
from becket.kernel.contract.events import Event, EventKind
from becket.kernel.contract.run import Move
from becket.kernel.contract.store import End, SpendLimit, Store
from becket.kernel.store import open_postgres, open_sqlite

DAY = SpendLimit(name="the usd budget of today", kind="usd", most=2.0, since=START)
RACERS = 3
TRIES = 40
ROOM = 50


def ended(outcome: AgentOutcome = AgentOutcome.changed, **changes: Any) -> CallEnd:
    usage = Usage(seconds=7.5, turns=2, input_tokens=10, output_tokens=5, usd=0.125, priced=PriceSource.table)
    return CallEnd(outcome=outcome, usage=usage, **changes)


@every_store
async def test_a_call_is_recorded_with_its_booking_and_settled_at_what_it_used(
    store: Store, clock: ManualClock
) -> None:
    await claimed(store, "run_a")
    assert await store.begin_call(agent_call(), 1, {"usd": 0.5, "agent_time": 60.0}, (DAY,)) is None
    assert await store.calls() == (agent_call(),)
    assert await store.spent() == {"usd": 0.5, "agent_time": 60.0}
    clock.forward(10)
    end = ended(reason="2 paths differ", until=START + 99, session="s \0 \ud800", over=("usd: 1 of 0.5",))
    await store.end_call("c1", end, {"usd": 0.125, "agent_time": 7.5, "tokens": 15.0})
    (found,) = await store.calls("run_a")
    assert (found.began_at, found.ended_at) == (START, START + 10)
    assert found.end is not None
    assert found.end.model_copy(update={"session": end.session}) == end
    assert await store.spent(run_id="run_a", since=START) == {"usd": 0.125, "agent_time": 7.5, "tokens": 15.0}
    assert await store.spent(since=START + 1) == {}, "it counts for the day on which it began"


async def of_calls(store: Store, run_id: str) -> list[Event]:
    events = await store.events(run_id)
    check_chain(events)
    return [event for event in events if event.kind in (EventKind.call_booked, EventKind.call_settled)]


@every_store
async def test_the_chain_tells_what_a_call_may_use_and_what_it_used(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await store.begin_call(agent_call(), 1, {"usd": 0.5, "agent_time": 60.0}, (DAY,))
    clock.forward(10)
    await store.end_call("c1", ended(by=SettledBy.files), {"usd": 0.125, "agent_time": 7.5, "tokens": 15.0})
    booked, settled = await of_calls(store, "run_a")
    assert (booked.kind, booked.at, settled.kind, settled.at) == ("call.booked", START, "call.settled", START + 10)
    assert told(booked) == {
        "call": "c1", "iteration": 1, "phase": "act", "step_id": "fix", "agent": "fixer", "driver": "codex",
        "model": "m", "limits": {"seconds": 60.0, "turns": None, "tokens": 900, "usd": 0.5},
        "booked": {"usd": 0.5, "agent_time": 60.0},
    }  # fmt: skip
    assert told(settled) == {
        "call": "c1", "agent": "fixer", "outcome": "changed", "by": "files",
        "usage": ended().usage.model_dump(mode="json"), "used": {"usd": 0.125, "agent_time": 7.5, "tokens": 15.0},
    }  # fmt: skip


@every_store
async def test_settlements_by_those_who_hold_no_claim_make_no_second_chain(store: Store, clock: ManualClock) -> None:
    """The run's holder writes its steps, another one settles what an earlier life left, some of it twice."""
    claim = await claimed(store, "run_a")
    for number in range(8):
        await store.begin_call(agent_call(f"c{number}"), 1, {"usd": 0.5}, ())
    await asyncio.gather(
        *(store.record("run_a", 1, recorded(claim, f"s{number}")) for number in range(8)),
        *(store.end_call(f"c{number}", ended(), {"usd": 0.25}) for number in range(8) for _ in range(2)),
    )
    settled = [event.data["call"] for event in await of_calls(store, "run_a") if event.kind is EventKind.call_settled]
    assert sorted(settled) == [f"c{number}" for number in range(8)]
    assert await store.spent() == {"usd": 2.0}


@every_store
async def test_a_limit_forbids_a_call_and_nothing_of_it_is_written(store: Store, clock: ManualClock) -> None:
    """Settled calls, open ones and plain reservations all count against the same limits."""
    await claimed(store, "run_a")
    await claimed(store, "run_b", loop_id="task")
    await store.reserve("plain", "run_b", 1, {"usd": 1.0}, ())
    assert await store.begin_call(agent_call(), 1, {"usd": 0.6}, (DAY,)) is None
    before = await contents(store)
    loop = SpendLimit(name="the loop's", kind="usd", most=0.5, loop_id="task")
    assert await store.begin_call(agent_call("c2", "run_b"), 1, {"usd": 0.5}, (DAY,)) == DAY.name
    assert await store.begin_call(agent_call("c2", "run_b"), 1, {"usd": 0.1}, (DAY, loop)) == "the loop's"
    assert await contents(store) == before
    assert await store.reserve("more", "run_b", 1, {"usd": 0.5}, (DAY,)) == DAY.name
    await store.end_call("c1", ended(), {"usd": 0.1})
    assert await store.begin_call(agent_call("c2", "run_b"), 1, {"usd": 0.9}, (DAY,)) is None, (
        "what was not used is free"
    )


@every_store
async def test_the_same_call_begins_once_and_ends_once(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    for _ in range(2):
        assert await store.begin_call(agent_call(), 1, {"usd": 2.0}, (DAY,)) is None
    assert await store.spent() == {"usd": 2.0}
    await store.end_call("c1", ended(), {"usd": 3.5})
    before = await contents(store)
    clock.forward(5)
    await store.end_call("c1", ended(AgentOutcome.crashed), {"usd": 0.0})
    assert await contents(store) == before
    assert await store.begin_call(agent_call(), 1, {"usd": 2.0}, (DAY,)) is None, "an ended call does not begin again"
    assert await contents(store) == before
    with pytest.raises(NotFound, match="begin a call before"):
        await store.end_call("never", ended(), {})


@every_store
async def test_only_the_holder_begins_a_call_and_whoever_made_it_may_settle_it(
    store: Store, clock: ManualClock
) -> None:
    await claimed(store, "run_a")
    await store.begin_call(agent_call(), 1, {"usd": 0.5}, ())
    clock.forward(60)
    assert await store.requeue_lost() == ("run_a",)
    epoch = (await claim_again(store, "run_a", "w2")).run.epoch
    with pytest.raises(Fenced):
        await store.begin_call(agent_call("c2"), 1, {"usd": 0.5}, ())
    await store.end_call("c1", ended(), {"usd": 0.25})
    assert await store.spent() == {"usd": 0.25}
    assert await store.begin_call(agent_call("c2"), epoch, {"usd": 0.5}, ()) is None
    await store.end("run_a", epoch, End(move=Move.complete, reason="x"))
    await store.end_call("c2", ended(), {"usd": 0.75})
    assert await store.spent() == {"usd": 1.0}
    said = [(event.kind.value, event.data["call"]) for event in await of_calls(store, "run_a")]
    late = [("call.settled", "c1"), ("call.booked", "c2"), ("call.settled", "c2")]
    assert said == [("call.booked", "c1"), *late], "also for a claim that is gone, and after the end"
    assert (await store.events("run_a"))[-2].kind is EventKind.run_ended


@every_store
async def test_calls_are_listed_newest_first(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    await claimed(store, "run_b", loop_id="task")
    for name, run_id in (("c1", "run_a"), ("c2", "run_b"), ("c3", "run_a")):
        await store.begin_call(agent_call(name, run_id), 1, {}, ())
        clock.forward(10)
    assert [one.call_id for one in await store.calls()] == ["c3", "c2", "c1"]
    assert [one.call_id for one in await store.calls("run_a")] == ["c3", "c1"]
    assert [one.call_id for one in await store.calls(since=START + 10)] == ["c3", "c2"]
    assert [one.call_id for one in await store.calls(limit=1)] == ["c3"]
    assert [one.loop_id for one in await store.calls("run_b")] == ["task"], "the run says which loop it is of"


@every_store
async def test_a_forgotten_run_still_counts_against_the_month(store: Store, clock: ManualClock) -> None:
    """L44, L23: with a short retention, what was spent must not come back with the rows that are dropped."""
    await claimed(store, "run_a")
    await store.begin_call(agent_call(), 1, {"usd": 2.0}, ())
    await store.end_call("c1", ended(), {"usd": 1.5})
    await store.end("run_a", 1, End(move=Move.complete, reason="x"))
    await store.followed("run_a")
    clock.forward(86_400)
    await store.forget(clock(), clock())
    assert await store.calls() == ()
    assert await store.spent(since=START) == {"usd": 1.5}
    clock.forward(32 * 86_400)
    await store.forget(clock(), clock())
    assert await store.spent() == {}
    assert [name for name, rows in (await contents(store)).items() if rows] == []


def _race_for_room(world: World) -> None:
    """Processes that begin calls at once never together pass a limit, and leave nothing of it unused."""

    async def prepare() -> None:
        store = world.open()
        for number in range(RACERS):
            await claimed(store, f"run_{number}")
        await store.close()

    async def look() -> tuple[dict[str, float], int]:
        store = world.open()
        seen = await store.spent(), len(await store.calls())
        await store.close()
        return seen

    asyncio.run(prepare())
    command = [sys.executable, __file__, world.kind, world.place]
    racers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(RACERS)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [int(racer.communicate(timeout=300)[0]) for racer in racers]
    assert sum(won) == ROOM < RACERS * TRIES
    assert asyncio.run(look()) == ({"tokens": float(ROOM)}, ROOM)


test_racing_processes_never_pass_a_limit = every_world(_race_for_room, "sqlite", "postgres")


async def _racer(kind: str, place: str, number: str) -> None:
    store = open_sqlite(place) if kind == "sqlite" else open_postgres(place)
    limit = SpendLimit(name="all", kind="tokens", most=ROOM)
    print("ready", flush=True)
    sys.stdin.readline()
    said = [
        await store.begin_call(agent_call(f"c{number}-{nth}", f"run_{number}"), 1, {"tokens": 1.0}, (limit,))
        for nth in range(TRIES)
    ]
    await store.close()
    print(said.count(None))


if __name__ == "__main__":
    asyncio.run(_racer(*sys.argv[1:]))
