"""A person's message in the very moment in which a call ends: heard by the next one, or told to be in vain (L7)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from becket.app.compose import App
from becket.kernel.contract import crash
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import Store
from becket.kernel.store import open_sqlite
from becket.parts.agents.desk import MessageDelivery, say
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.people import person
from becket.testing.world import World

CONFIG = "version: 1\nsandbox: none\nagents: {fixer: {driver: command, run: 'true'}}\n"
TOLD = "The fixture is right."
NO_QUOTA = Act(hint=AgentOutcome.quota_wait, error="usage limit")
DONE = Act(writes("it.txt", "good\n"))
STUCK = 60.0

ENDING = ("fix.agent_ended", "money.call_made", "money.call_settled")
"""The points that the end of a call passes, in their order."""


class Halting:
    """A store that holds up whoever looked which calls there are, until `go`: between two looks anything can happen."""

    def __init__(self, store: Store, looked: threading.Event, go: threading.Event) -> None:
        self._store, self._looked, self._go = store, looked, go

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def calls(self, *which: Any) -> tuple[AgentCall, ...]:
        found = await self._store.calls(*which)
        self._looked.set()
        assert await asyncio.to_thread(self._go.wait, STUCK)
        return found


class Teller:
    """`becket agent tell`: another process has its own store and loop, and knows nothing of the one at work."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.looked, self.go = threading.Event(), threading.Event()
        self.delivery: MessageDelivery | None = None
        self.refused: UsageError | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._tell()), daemon=True)

    def begin(self) -> None:
        """Returns when it has looked which call is at work."""
        self._thread.start()
        assert self.looked.wait(STUCK)

    def finish(self) -> None:
        self.go.set()
        self._thread.join(STUCK)
        assert not self._thread.is_alive()

    async def _tell(self) -> None:
        store = open_sqlite(self.world.state.database, self.world.clock)
        try:
            (run,) = [item.name for item in self.world.state.runs.iterdir()]
            app = App(self.world.state, cast("Store", Halting(store, self.looked, self.go)))
            self.delivery = await say(app, person("ada"), run, TOLD)
        except UsageError as error:
            self.refused = error
        finally:
            self.looked.set()
            await store.close()


@contextmanager
def at_points(**steps: Callable[[], None]) -> Iterator[None]:
    """At its first hit each point does its step, and whoever passes it waits for that."""

    def hook(name: str) -> None:
        if (step := steps.pop(name.replace(".", "_"), None)) is not None:
            step()

    crash.install(hook)
    try:
        yield
    finally:
        crash.install(None)


def stage(folder: Path, *acts: Act) -> tuple[World, ScriptedAgent, str]:
    agent = ScriptedAgent(acts)
    world = World(folder, store="sqlite", agents={"fixer": agent})
    return world, agent, world.commit({"becket.yaml": CONFIG, "it.txt": "bad\n"})


async def call(world: World, base: str) -> Run:
    return await world.run("once", inputs={"agent": "fixer", "brief": "Make it good.", "base": base})


MOMENTS = [(begins, ends) for number, begins in enumerate(ENDING) for ends in (*ENDING[number:], "afterwards")]


@pytest.mark.parametrize(("begins", "ends"), MOMENTS)
def test_what_is_told_while_a_call_ends_is_heard_by_the_next_one_once(tmp_path: Path, begins: str, ends: str) -> None:
    world, agent, base = stage(tmp_path, NO_QUOTA, DONE)
    teller = Teller(world)

    def both() -> None:
        teller.begin()
        teller.finish()

    points = {begins: both} if begins == ends else {begins: teller.begin, ends: teller.finish}

    async def story() -> None:
        with at_points(**{name.replace(".", "_"): step for name, step in points.items()}):
            run = await call(world, base)
        if ends == "afterwards":
            teller.finish()
        assert run.status is RunStatus.waiting, (run.reason, run.detail)
        await world.pass_time(301)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.completed

    asyncio.run(story())
    assert teller.delivery is not None
    assert [brief.count(TOLD) for brief in agent.briefs] == [0, 1]


@pytest.mark.parametrize("begins", ENDING)
def test_who_tells_a_run_that_ends_meanwhile_is_told_that_nobody_is_there(tmp_path: Path, begins: str) -> None:
    """Not that the next call will hear it: there is none."""
    world, agent, base = stage(tmp_path, DONE)
    teller = Teller(world)

    async def story() -> Run:
        with at_points(**{begins.replace(".", "_"): teller.begin}):
            return await call(world, base)

    run = asyncio.run(story())
    teller.finish()
    assert run.status is RunStatus.completed
    assert teller.delivery is None
    assert teller.refused is not None
    assert "nobody is there to be told" in str(teller.refused)
    assert [brief.count(TOLD) for brief in agent.briefs] == [0]
    assert not list(world.state.runs.iterdir())
