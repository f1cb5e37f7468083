"""A whole App over a real repository, its journal a file, in virtual time; only gates and the agent are modelled.

So that what fails below it - a file's operation, a git's call - fails in the code that people run.
"""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from properties import Scene, broken
from virtual_time import LoopTime, VirtualLoop

from becket.app.compose import App
from becket.app.serve import serve
from becket.app.state import StateFolder
from becket.kernel.contract.agent import Agents, AgentsByName
from becket.kernel.contract.effect import SETTLED
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.process import ChildResult, ChildSpec, ChildWatcher, Processes
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store import open_sqlite
from becket.testing.people import person
from becket_lab.simulated.ground import RealGround
from becket_lab.simulated.project import CONFIG as PROJECT
from becket_lab.simulated.project import ModelAgent, ModelProcesses, Odds, begin, module, source

PACE = 0.05
PATIENCE = 900.0
LIVES = 6
SURE = Odds(red=0, torn=0, flake=0, dirty=0, release_fails=0, agent=(("repairs", 1.0),))
CONFIG = PROJECT.replace("autonomy: release", "autonomy: merge").replace(
    'services: {main: {start: "serve"}}', "sandbox: {use: none, without: [files, processes, network]}"
)


class Gates(ModelProcesses):
    """Somebody does something when the n-th gate begins."""

    begins: Callable[[], None] = staticmethod(lambda: None)

    async def run(self, spec: ChildSpec, watcher: ChildWatcher | None = None) -> ChildResult:
        self.begins()
        return await super().run(spec, watcher)


class AppWorld:
    """`await house.heal(number)` breaks a module and sees its repair through, by one process after another."""

    def __init__(self, folder: Path, loop: VirtualLoop) -> None:
        self.folder = folder
        self.loop = loop
        self.time: Any = LoopTime(loop, PACE)
        self.on = RealGround(folder)
        root = folder / "repo"
        self.state = StateFolder(root, root / ".git").make()
        self.on.person_commits({**begin(), "becket.yaml": CONFIG}, "begin")
        self.lives: list[str] = []  # how each process ended
        self.gate_begins: Callable[[], None] = lambda: None

    def _open(self) -> App:
        chance = random.Random("app house")
        processes = Gates(self.on, self.time, chance, SURE, 60.0)
        processes.begins = self.gate_begins
        agent = ModelAgent(self.on, self.time, chance, SURE)
        store = open_sqlite(self.state.database, self.loop.clock)
        ports = {Processes: processes, Agents: AgentsByName({"fixer": agent})}
        return App(self.state, store, io.StringIO(), ports)

    def break_it(self, number: int) -> str:
        return self.on.person_commits({module(number): source("bug", number, f"v{number}")}, f"break {number}")

    async def heal(self, number: int) -> Run:
        self.break_it(number)
        return await self.see_through()

    async def see_through(self) -> Run:
        """Somebody asks again with the same words until there is a run, and processes follow until it is over."""
        asked = f"person:{len(self.lives)}"
        for _ in range(LIVES):
            try:
                return await self._live(asked)
            except (OSError, BecketError) as error:
                self.lives.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(30.0)
        raise AssertionError(f"no process came to its end: {self.lives}")

    async def _live(self, asked: str) -> Run:
        app = self._open()
        try:
            started = await app.intake.start(StartRequest(loop_id="heal", origin_key=asked, by=person("owner")))
            assert started.run is not None
            until = self.loop.time() + PATIENCE

            async def over() -> bool:
                return await self._at_rest(app) or self.loop.time() > until

            assert await serve(app, "run", over)
            self.lives.append("in good order")
            return await app.store.get_run(started.run.run_id)
        finally:
            await app.triggers.close()
            await app.store.close()

    async def _at_rest(self, app: App) -> bool:
        busy = (RunStatus.queued, RunStatus.running)
        if await app.store.list_runs(RunFilter(statuses=busy, limit=1)):
            return False
        return all(effect.state in SETTLED for effect in await app.store.effects())

    async def broken(self, heal: Callable[[], Any] | None = None) -> list[str]:
        """What is broken once the next process has come and gone with nothing wrong: it puts in order what was left."""
        app = self._open()
        try:
            assert await serve(app, "run", partial(self._at_rest, app))
            await app.triggers.close()
            return await broken(Scene(app.store, app.artifacts, self.state, served=False, heal=heal))
        finally:
            await app.store.close()
