"""Loops as their seven phases. Nothing is edited here: they are files."""

from __future__ import annotations

from becket.app.record.loops_now import LoopNow, loops_now
from becket.app.record.run_pages import WITHIN, lines_of
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.spec import PHASES
from becket.kernel.contract.store import RunFilter
from becket.parts.front.asked import Asked
from becket.parts.front.pages.home import snapshot_of
from becket.parts.front.routes import Page

RECENT = 15


async def loops(asked: Asked) -> Page:
    now = await snapshot_of(asked)
    return Page("loops.html", {"now": now, "loops": await loops_now(asked.app, now)})


async def loop(asked: Asked) -> Page:
    now, name = await snapshot_of(asked), asked.params["loop"]
    one = next((one for one in await loops_now(asked.app, now) if one.loop_id == name), None)
    if one is None:
        raise NotFound(f"there is no loop {name[:60]!r} that is awake; see /loops")
    return Page("loop.html", {"one": one, "phases": _phases(one), "recent": await _recent(asked, name)})


def _phases(one: LoopNow) -> list[tuple[str, object]]:
    return [(phase.value, one.loop.spec.phases.get(phase)) for phase in PHASES] if one.loop else []


async def _recent(asked: Asked, name: str) -> object:
    found = await asked.app.store.list_runs(RunFilter(loop_id=name, within=WITHIN, limit=RECENT))
    return await lines_of(asked.app, found)
