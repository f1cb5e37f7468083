"""Everything that can be told about one run, read in one go and as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from becket.app.compose import App
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect
from becket.kernel.contract.events import Event
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Run, Step
from becket.kernel.contract.spec import LoopSpec
from becket.kernel.contract.store import ArtifactRef

LOOK_EVERY = 0.15
FIRST, LAST = 3, 12
"""Of a run with many more iterations: what it began with and what it came to."""
LAST_EVENTS, MOST_CALLS = 2_000, 100


@dataclass(frozen=True, slots=True)
class Story:
    """One run with all its records. `now` is the store's time when it was read."""

    run: Run
    spec: LoopSpec
    now: float
    steps: tuple[Step, ...] = ()
    conditions: tuple[Condition, ...] = ()
    events: tuple[Event, ...] = ()
    receipts: tuple[StoredReceipt, ...] = ()
    effects: tuple[Effect, ...] = ()
    approvals: tuple[Approval, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    calls: tuple[AgentCall, ...] = ()  # of agents, oldest first
    without: int = 0  # iterations between the first and the last ones that were not read


async def read_outline(app: App, run_id: str) -> Story:
    """The same within bounds: of a run that went on and on, the first and the last iterations."""
    run = await app.store.get_run(run_id)
    if run.iteration <= FIRST + LAST and run.event_count <= LAST_EVENTS:
        return await read_story(app, run.run_id)
    numbers = sorted({*range(1, FIRST + 1), *range(max(run.iteration - LAST, 0) + 1, run.iteration + 1)})
    numbers = [number for number in numbers if number <= run.iteration]
    store = app.store
    return Story(
        run=run,
        spec=app.loops.parse(await store.spec_text(run.spec_digest)),
        now=await store.now(),
        steps=tuple([step for number in numbers for step in await store.steps(run.run_id, number)]),
        conditions=await store.conditions(run.run_id),
        events=await store.events(run.run_id, after=max(run.event_count - LAST_EVENTS, 0), limit=LAST_EVENTS),
        receipts=tuple(one for one in await store.receipts(run.run_id) if one.iteration in numbers),
        effects=await store.effects(run.run_id),
        approvals=await store.approvals(run.run_id),
        handoffs=await store.handoffs(run_id=run.run_id),
        artifacts=tuple(one for one in await store.artifacts(run.run_id) if one.iteration in numbers),
        calls=tuple(reversed(await store.calls(run.run_id, limit=MOST_CALLS))),
        without=run.iteration - len(numbers),
    )


async def read_story(app: App, run_id: str) -> Story:
    store = app.store
    run = await store.get_run(run_id)
    return Story(
        run=run,
        spec=app.loops.parse(await store.spec_text(run.spec_digest)),
        now=await store.now(),
        steps=await store.steps(run.run_id),
        conditions=await store.conditions(run.run_id),
        events=await store.events(run.run_id),
        receipts=await store.receipts(run.run_id),
        effects=await store.effects(run.run_id),
        approvals=await store.approvals(run.run_id),
        handoffs=await store.handoffs(run_id=run.run_id),
        artifacts=await store.artifacts(run.run_id),
        calls=tuple(reversed(await store.calls(run.run_id))),
    )


async def watch_story(app: App, run_id: str, tell: Callable[[Story], None]) -> None:
    """Tell the story whenever it has grown, until cancelled."""
    seen: tuple[object, ...] = ()
    while True:
        run = await app.store.get_run(run_id)
        mark = (run.event_count, run.status, run.held, run.cancel_asked)
        if mark != seen:
            seen = mark
            tell(await read_story(app, run.run_id))
        await asyncio.sleep(LOOK_EVERY)
