"""Random loops that start one another, forced past lint: every chain ends, and what was cut short is told."""

from __future__ import annotations

import random
from typing import Any

import pytest
from trigger_stage import Scene, Stage, play

from becket.kernel.contract.errors import StartRefused
from becket.kernel.contract.run import Run, RunStatus, StartLimits
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.engine.trigger_alerts import TriggerAlerts

Arc = tuple[str, str, str, bool]
BOUND = 2
DEPTH = 10


def random_arcs(seed: int) -> list[Arc]:
    """Who causes, who is started, by what, and whether it has a bound."""
    chance = random.Random(seed)
    names = "abcd"[: chance.randint(1, 4)]
    ways = ("run.start", "event", "after")
    drawn = [(chance.choice(names), chance.choice(names), chance.choice(ways)) for _ in range(chance.randint(1, 5))]
    return [(*arc, chance.random() < 0.4) for arc in dict.fromkeys(drawn)]


def slow_intake(stage: Stage) -> Intake:
    limits = StartLimits(depth=DEPTH, per_minute=20)
    return Intake(stage.store, stage.loops, stage.repo, "main", lambda: None, lambda: limits)  # type: ignore[arg-type]


def has_unbounded_cycle(arcs: list[Arc]) -> bool:
    leads = {(cause, started) for cause, started, _, bounded in arcs if not bounded}
    for _ in arcs:
        leads |= {(one, last) for one, middle in leads for first, last in leads if middle == first}
    return any(one == other for one, other in leads)


def put(stage: Stage, name: str, arcs: list[Arc]) -> None:
    triggers: list[dict[str, Any]] = [{"manual": {}}]
    for cause, started, way, bounded in arcs:
        bound = {"max_chain": BOUND} if bounded else {}
        if started == name and way == "after":
            triggers.append({"after": {"loop": cause, **bound}})
        if started == name and way == "event":
            triggers.append({"event": {"name": f"{cause}.{name}", **bound}})
    stage.loops.put(name, *triggers, subject="{start}")


async def live(stage: Stage, scene: Scene, run: Run, arcs: list[Arc]) -> None:
    """One run does what its loop says, and ends."""
    for number, (cause, started, way, bounded) in enumerate(arcs):
        if cause != run.loop_id:
            continue
        if way == "event":
            event_id = f"{run.run_id}:{number}"
            await scene.triggers.post(f"{cause}.{started}", {}, event_id, run.chain + 1, run.run_id)
        elif way == "run.start" and not (bounded and run.chain >= BOUND):
            await start(stage, run, started)
    await stage.end(run)
    await scene.triggers.follow()


async def start(stage: Stage, run: Run, loop_id: str) -> None:
    ask = StartRequest(loop_id=loop_id, trigger="run.start", parent=run.run_id, chain=run.chain + 1)
    try:
        await stage.intake.start(ask)
    except StartRefused as refused:
        await TriggerAlerts(stage.store).refused(loop_id, "run.start", refused, run.run_id)


@pytest.mark.parametrize("block", range(4))
def test_every_random_chain_ends_and_only_endless_ones_are_cut(block: int) -> None:
    for seed in range(block * 10, block * 10 + 10):
        arcs = random_arcs(seed)

        async def story(stage: Stage, arcs: list[Arc] = arcs, seed: int = seed) -> None:
            stage.intake = slow_intake(stage)
            scene = Scene(stage)
            await stage.join()
            names = sorted({name for cause, started, _, _ in arcs for name in (cause, started)})
            for name in names:
                put(stage, name, arcs)
            for name in names:
                await stage.intake.start(StartRequest(loop_id=name))
            lived = 0
            while queued := await stage.store.list_runs(RunFilter(statuses=(RunStatus.queued,), oldest_first=True)):
                for run in queued:
                    await live(stage, scene, run, arcs)
                    lived += 1
                assert lived <= len(names) * 60, f"seed {seed} goes on: {arcs}"
            deepest = max(run.chain for run in await stage.runs())
            assert deepest <= DEPTH
            told = await stage.alerts()
            cut = [alert for alert in told.values() if "in a row led to it" in alert.text]
            if has_unbounded_cycle(arcs):
                assert cut or any(key.startswith("pace:") for key in told), f"seed {seed}: {arcs}"
            else:
                assert not cut, f"seed {seed}: {arcs}"

        play(story)
