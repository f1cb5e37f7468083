"""Contract of the store: what those ask who only look. Pages of the list, and sums over days."""

from __future__ import annotations

from store_worlds import START, ManualClock, agent_call, claimed, every_store, raised, recorded, started

from becket.kernel.contract.agent import AgentOutcome, PriceSource, Usage
from becket.kernel.contract.base import Json
from becket.kernel.contract.calls import CallEnd
from becket.kernel.contract.handoff import Handoff
from becket.kernel.contract.looking import AgentUse, EndedRuns, GateUse, RunYield, Tally
from becket.kernel.contract.run import Move, RunStatus
from becket.kernel.contract.store import End, RunFilter, Store


async def ids(store: Store, **where: object) -> list[str]:
    return [run.run_id for run in await store.list_runs(RunFilter.model_validate(where))]


@every_store
async def test_pages_of_the_list_join_without_a_gap_while_runs_are_started(store: Store, clock: ManualClock) -> None:
    """By the order of writing: the clock may stand still or go back."""
    for number in range(7):
        await started(store, f"run_{number}", loop_id="heal" if number % 2 else "task")
        clock.forward(-1)
    first = await ids(store, limit=3)
    await started(store, "run_new")
    assert [*first, *await ids(store, limit=3, before=first[-1])] == [f"run_{number}" for number in (6, 5, 4, 3, 2, 1)]
    assert await ids(store, before="run_0") == []
    assert await ids(store, before="run_of_nobody") == []
    assert await ids(store, loop_id="task", before="run_4") == ["run_2", "run_0"]


@every_store
async def test_a_search_looks_through_so_many_runs_and_no_more(store: Store, clock: ManualClock) -> None:
    for number, subject in enumerate(("main@One", "main@two", "100%_x", "main@three")):
        await started(store, f"run_{number}", subject=subject)
    assert await ids(store, text="ONE") == ["run_0"]
    assert await ids(store, text="%_") == ["run_2"]
    assert await ids(store, text="MAIN@", loop_id="heal", within=3) == ["run_3", "run_1"]
    assert await ids(store, text="main@", within=1, before="run_1") == ["run_0"]
    assert await ids(store, within=2, oldest_first=True, limit=1) == ["run_2"], "from here a search goes on"


@every_store
async def test_the_newest_run_of_each_loop_is_found_among_the_last_ones(store: Store, clock: ManualClock) -> None:
    for number, loop in enumerate(("old", "heal", "task", "heal")):
        await started(store, f"run_{number}", loop_id=loop)
    assert [run.run_id for run in await store.newest_of_loops()] == ["run_3", "run_2", "run_0"]
    assert [run.run_id for run in await store.newest_of_loops(within=2)] == ["run_3", "run_2"]


async def ended(store: Store, run_id: str, move: Move, reason: str = "", **more: Json) -> None:
    handoff = more.pop("handoff", None)
    changes = {"inputs": more.pop("inputs", {})}
    claim = await claimed(store, run_id, **changes)
    await store.end(
        run_id, claim.run.epoch, End(move=move, reason=reason, detail={"main_proven": more} if more else {},
        handoff=handoff),
    )  # fmt: skip


@every_store
async def test_a_tally_says_what_ended_runs_brought_and_how_long_they_took(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    gate = {"color": "green", "verdict": "ab", "flaky": []}
    await store.record("run_a", 1, recorded(claim, "fast", outputs=gate))
    seen = raised("flaky_seen", object="base")
    await store.record("run_a", 1, recorded(claim, "slow", outputs=gate, conditions=(seen,), ended_at=START + 3))
    await store.record("run_a", 1, recorded(claim, "look"))
    clock.forward(20)
    proven = {"main_proven": {"sha": "ab", "repaired": "cd", "gates": {}}}
    await store.end("run_a", 1, End(move=Move.complete, reason="stop_conditions_met", detail=proven))
    await ended(store, "run_b", Move.complete, sha="ab", repaired="")
    await ended(store, "run_c", Move.complete, sha="ab", repaired="cd", inputs={"accept": "run_x"})
    await ended(store, "run_d", Move.complete, sha="ab", repaired="", instead_of="cd")
    await ended(store, "run_e", Move.fail, "internal_error")
    await ended(store, "run_g", Move.fail, "release_failed")
    note = {"loop_id": "heal", "subject": "s", "owner": "o", "reason": "repair_ready", "next_step": "n"}
    handoff = Handoff.model_validate(
        note | {"handoff_id": "hnd_1", "run_id": "run_f", "created_at": START, "updated_at": START, "expires_at": None,
                "state": "open", "evidence": {}}
    )  # fmt: skip
    clock.forward(1)
    await ended(store, "run_f", Move.hand_off, "repair_ready", handoff=handoff)
    assert await store.unsettled(("run_a", "run_f", "run_x")) == {"run_f"}
    found = await store.tally(START, START + 100)
    assert found.gates == GateUse(runs=2, seconds=4.0, flaky=1)
    assert {(item.status, item.brought): item.runs for item in found.ended} == {
        (RunStatus.completed, RunYield.repaired): 1,
        (RunStatus.completed, RunYield.green): 1,
        (RunStatus.completed, RunYield.accepted): 1,
        (RunStatus.completed, RunYield.nothing): 1,
        (RunStatus.failed, RunYield.nothing): 1,
        (RunStatus.failed, RunYield.unreleased): 1,
        (RunStatus.ready_for_handoff, RunYield.ready): 1,
    }
    repaired = EndedRuns(loop_id="heal", status=RunStatus.completed, brought=RunYield.repaired, runs=1, seconds=20.0)
    assert repaired in found.ended
    assert (await store.tally(START, START + 20)) == Tally(), "until is not in it"
    assert (await store.tally(START, START + 100, most_gates_of=1)).gates == GateUse(), "run_f ended last"


@every_store
async def test_a_tally_adds_up_calls_that_ended_by_agent_and_loop(store: Store, clock: ManualClock) -> None:
    await claimed(store, "run_a")
    usage = Usage(seconds=7.5, input_tokens=10, output_tokens=5, usd=0.125, priced=PriceSource.table)
    for number in range(3):
        await store.begin_call(agent_call(f"c{number}"), 1, {"usd": 0.5}, ())
    await store.end_call("c0", CallEnd(outcome=AgentOutcome.changed, usage=usage), {"usd": 0.125, "tokens": 15.0})
    unpriced = CallEnd(outcome=AgentOutcome.changed, usage=Usage(seconds=2.0))
    await store.end_call("c1", unpriced, {"agent_time": 2.0})
    only = AgentUse(loop_id="heal", agent="fixer", calls=2, unpriced=1, usd=0.125, tokens=15.0, agent_time=2.0)
    assert (await store.tally(START, START + 1)).agents == (only,), "one at work has used nothing that is known"
    assert (await store.tally(START + 1, START + 2)).agents == ()
