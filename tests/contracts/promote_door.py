"""A promotion that leaves by the door, in a process of its own, for the tests that kill it."""

from __future__ import annotations

from pathlib import Path

from promote_world import request_for

from becket.kernel.contract.action import EffectReport
from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import Origin
from becket.kernel.contract.promote import promote_call
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import Store
from becket.kernel.engine.door import Door
from becket.kernel.engine.redact import Redactor
from becket.kernel.git.repository import discover
from becket.kernel.store import open_sqlite
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.effect import PromoteEffect
from becket.testing.clock import ManualClock

ORIGIN = Origin(run_id="run_1", iteration=1, phase="decide", action_id="promote")


async def life(folder: Path, old: str, new: str, now: float) -> dict[str, Json]:
    """Every life asks for the same effect; `now` is its clock, far enough from the last one's."""
    clock = ManualClock(now)
    store = open_sqlite(folder / "journal.db", clock)
    try:
        report = await let_out(folder, store, clock, old, new)
    finally:
        await store.close()
    return report.model_dump(mode="json")


async def let_out(folder: Path, store: Store, clock: ManualClock, old: str, new: str) -> EffectReport:
    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    effect = PromoteEffect(discover(folder / "home"), IntentFile(folder / "state"))
    door = Door(store, {effect.name: effect}, Redactor({}), {}, sleep)
    return await door.perform(promote_call(request_for(old, new)), ORIGIN, None, Autonomy.merge, False)
