"""The model of claims, explored whole, and compared step by step with the real store."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from claims_model import (
    LEASE,
    RUNS,
    VALID,
    WALKS,
    WORKERS,
    Rule,
    State,
    Step,
    Task,
    alarmed,
    explore,
    never_ends,
    steps,
    tick,
)
from store_worlds import ManualClock, World, every_world, new_run, worker

from becket.kernel.contract.errors import Fenced
from becket.kernel.contract.run import ENDED, Move
from becket.kernel.contract.store import End, Store
from becket.testing.people import person

TICK = 10.0
TTL = LEASE * TICK


def test_no_interleaving_with_two_faults_leaves_a_run_alone_or_lets_two_workers_write() -> None:
    found = explore(Rule.by_claim, faults=2)
    assert (found.trouble, found.trace) == ("", ())
    assert found.states > 30_000, "the model still says something"


@pytest.mark.slow
def test_no_interleaving_with_three_faults_does_either() -> None:
    assert explore(Rule.by_claim, faults=3).trouble == ""


def test_with_the_old_mark_the_explorer_finds_the_hang() -> None:
    """One refused write: given back, claimed again by the same worker, taken for lost, and then renewed for ever."""
    found = explore(Rule.by_mark, faults=1, only={"refuse"})
    assert "nobody has been at work on it for two lease times" in found.trouble
    assert found.trace[:4] == (("claim", 0, 0), ("refuse", 0, 0), ("give", 0, 0), ("claim", 0, 0))
    assert {name for name, *_ in found.trace[4:]} == {"tick"}
    assert explore(Rule.by_claim, faults=1, only={"refuse"}).trouble == ""


def test_renewing_by_the_name_of_the_worker_keeps_a_claim_whose_answer_was_lost() -> None:
    found = explore(Rule.by_name, faults=1)
    assert found.trace == (("claim_lost", 0, 0), *((("tick", 0, 0),) * (2 * LEASE + 1)))


def test_renewing_without_the_epoch_keeps_what_another_worker_lost() -> None:
    """It was stalled, the other took over and lost the answer: whoever wakes up keeps the row alive for nobody."""
    faults = {"stall", "claim_lost"}
    assert explore(Rule.no_epoch, 2, faults).trouble.endswith("nobody has been at work on it for two lease times")
    assert explore(Rule.by_claim, 2, faults).trouble == ""


def test_a_cancelled_run_can_always_end_without_luck() -> None:
    assert never_ends(Rule.by_claim, faults=1).trouble == ""
    assert "cannot end" in never_ends(Rule.by_mark, faults=1).trouble


def test_where_no_worker_is_left_an_alarm_says_so_within_two_lease_times() -> None:
    for left in explored_states(Rule.by_claim, faults=1):
        state = left._replace(workers=("gone", "gone"))
        for _ in range(2 * LEASE + 1):
            state = tick(state, 0, Rule.by_claim)
        assert all(alarmed(row) for row in state.rows if row.status == "running")


def explored_states(rule: Rule, faults: int) -> list[State]:
    seen = {State(faults=faults)}
    waiting = [*seen]
    while waiting:
        new = {after for _, after in steps(waiting.pop(), rule)} - seen
        seen |= new
        waiting += new
    return [state for state in seen if any(row.status == "running" for row in state.rows)]


@dataclass
class Stage:
    """The real store, moved as the model moves."""

    store: Store
    clock: ManualClock
    names: tuple[str, str]
    epochs: dict[tuple[int, int], int] = field(default_factory=dict)

    async def begin(self) -> None:
        for who in WORKERS:
            await self.store.join(worker(f"w{who}"), alone=False)
        for name in self.names:
            await self.store.start_run(new_run(name))

    async def play(self, step: Step, before: State) -> None:
        name, who, run = step
        match name:
            case "tick":
                for each in (who, 1 - who):
                    if before.workers[each] == "up":
                        before = await self.look(each, before)
                self.clock.forward(TICK)
            case "beat":
                await self.beat(who, before)
            case "cancel":
                await self.store.ask_cancel(self.names[run], person("ann"), "")
            case "claim" | "claim_lost":
                await self.claim(who, run, answered=name == "claim")
            case "finish":
                await self.write(who, run, "end")
            case "give":
                await self.write(who, run, "give_back")

    async def claim(self, who: int, run: int, answered: bool) -> None:
        segment = (await self.store.get_run(self.names[run])).segment
        claim = await self.store.claim(self.names[run], segment, f"w{who}", TTL)
        assert claim is not None
        if answered:
            self.epochs[who, run] = claim.run.epoch

    async def write(self, who: int, run: int, what: str) -> None:
        epoch = self.epochs.pop((who, run))
        try:
            if what == "end":
                await self.store.end(self.names[run], epoch, End(move=Move.complete, reason="done"))
            else:
                await self.store.give_back(self.names[run], epoch)
        except Fenced:
            assert (await self.store.get_run(self.names[run])).epoch != epoch

    async def beat(self, who: int, before: State) -> State:
        walks = [run for run in RUNS if before.tasks[who][run] in WALKS]
        told = await self.store.beat(f"w{who}", TTL, {self.names[run]: self.epochs[who, run] for run in walks})
        for run in walks:
            if self.names[run] in told.lost:
                before = before.task(who, run, Task.none)
        return before

    async def look(self, who: int, before: State) -> State:
        before = await self.beat(who, before)
        await self.store.requeue_lost()
        for claim in await self.store.at_work(f"w{who}"):
            if before.tasks[who][self.names.index(claim.run_id)] is Task.none:
                await self.store.give_back(claim.run_id, claim.epoch)
        return before

    async def seen(self, model: State) -> list[tuple[object, ...]]:
        """What can be seen of each run: its row, and whose claim is the newest one."""
        found = []
        for number, name in enumerate(self.names):
            run = await self.store.get_run(name)
            status = "ended" if run.status in ENDED else run.status.value
            left = max((run.lease_until or 0.0) - self.clock(), 0.0) / TICK
            valid = [
                who
                for who in WORKERS
                if model.tasks[who][number] is not Task.none and self.epochs[who, number] == run.epoch
            ]
            found.append((status, run.worker, left, status == "ended" or run.cancel_asked, valid))
        return found


def expected(state: State) -> list[tuple[object, ...]]:
    return [
        (
            row.status,
            None if row.worker is None else f"w{row.worker}",
            float(row.lease),
            row.status == "ended" or row.cancel,
            [who for who in WORKERS if state.tasks[who][run] in VALID],
        )
        for run, row in enumerate(state.rows)
    ]


def walk(seed: int, length: int) -> list[tuple[Step, State, State]]:
    chance = random.Random(seed)
    state, way = State(faults=6), []
    for _ in range(length):
        step, after = chance.choice([*steps(state, Rule.by_claim)])
        way.append((step, state, after))
        state = after
    return way


def replay(world: World, seeds: range) -> None:
    async def story(store: Store, clock: ManualClock) -> None:
        for seed in seeds:
            stage = Stage(store, clock, (f"run_{seed}_0", f"run_{seed}_1"))
            await stage.begin()
            told: list[Step] = []
            for step, before, after in walk(seed, 30):
                told.append(step)
                await stage.play(step, before)
                assert await stage.seen(after) == expected(after), f"seed {seed}: {told}"
            for name in stage.names:  # nothing of this walk is left for the next
                await store.ask_cancel(name, person("ann"), "")
            for claim in [item for who in WORKERS for item in await store.at_work(f"w{who}")]:
                await store.end(claim.run_id, claim.epoch, End(move=Move.cancel, reason="cancelled"))

    world.play(story)


def _the_store_does_what_the_model_says(world: World) -> None:
    """Random ways through the model, each step done by the real store and compared with it."""
    replay(world, range(300 if world.kind == "memory" else 20))


test_the_store_does_what_the_model_says = every_world(_the_store_does_what_the_model_says)
