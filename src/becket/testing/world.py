"""A world for story tests: a real repository, a real engine, a clock that stands still, and a recorded outside."""

from __future__ import annotations

import io
import os
import subprocess
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from becket.app.compose import App
from becket.app.parts import brought_tables, built_in_loops
from becket.app.record.settling import Settlements
from becket.app.serve import follow_clock, recover
from becket.app.state import StateFolder, find_state
from becket.kernel.contract.action import ActionDef, VerifierDef
from becket.kernel.contract.agent import Agent, Agents, AgentsByName
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import AgentConfig, Config
from becket.kernel.contract.effect import EffectAdapter
from becket.kernel.contract.run import Run
from becket.kernel.contract.store import Store
from becket.kernel.engine.intake import StartRequest
from becket.kernel.spec.book import LoopBook
from becket.kernel.store import open_memory, open_sqlite
from becket.kernel.store.steady import SteadyClock
from becket.testing.clock import ManualClock

BELL = "bell"
"""A signal that only a test sends: `world.store.signal(run_id, BELL, ...)`."""

IDENTITY = {
    "GIT_AUTHOR_NAME": "World",
    "GIT_AUTHOR_EMAIL": "world@example.invalid",
    "GIT_COMMITTER_NAME": "World",
    "GIT_COMMITTER_EMAIL": "world@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class World:
    """Make one per test: `World(tmp_path)`. Methods that move time or runs are async; the rest is plain.

    Without `agents`, those of the repository's becket.yaml count.
    """

    def __init__(self, folder: Path, *, store: str = "memory", agents: Mapping[str, Agent] | None = None) -> None:
        self.root = folder / "repo"
        self.clock = ManualClock()
        self.console = io.StringIO()
        self._agents = tuple(agents or ())
        self._ports: dict[type, object] = {} if agents is None else {Agents: AgentsByName(agents)}
        self._outside: list[EffectAdapter] = []
        self._actions: list[ActionDef] = []
        self._verifiers: list[VerifierDef] = []
        self._joined: str | None = None
        self._kind = store
        if not (self.root / ".git").exists():  # else it goes on with what is there
            make_repository(self.root)
        self.state: StateFolder = find_state(self.root).make()
        self.store: Store = self._open_store()
        self.app = self._open_app()

    def _open_store(self) -> Store:
        steady = SteadyClock(self.clock.worked, self.clock.real)
        if self._kind == "memory":
            return open_memory(self.clock, steady, brought_tables())
        return open_sqlite(self.state.database, self.clock, steady=steady, brought=brought_tables())

    def _open_app(self) -> App:
        app = App(self.state, self.store, self.console, self._ports)
        app.effects.update({adapter.name: adapter for adapter in self._outside})
        app.registry = replace(
            app.registry,
            actions={**app.registry.actions, **{one.name: one for one in self._actions}},
            verifiers={**app.registry.verifiers, **{one.name: one for one in self._verifiers}},
            signals=(*app.registry.signals, BELL),
        )
        app.loops = LoopBook(app.state.loops, built_in_loops(), app.registry, lambda: self._config(app))
        return app

    def _config(self, app: App) -> Config:
        """What lint looks names up in: the agents of the test are there too."""
        scripted = {name: AgentConfig(driver="command", run=name) for name in self._agents}
        return app.config.model_copy(update={"agents": {**app.config.agents, **scripted}})

    def action(self, *definitions: ActionDef) -> None:
        """Register actions of the test."""
        self._actions += definitions
        self.app = self._open_app()

    def verifier(self, *definitions: VerifierDef) -> None:
        """Register verifiers of the test."""
        self._verifiers += definitions
        self.app = self._open_app()

    def outside(self, *adapters: EffectAdapter) -> None:
        """Replace what lies behind effects of these names."""
        self._outside += adapters
        self.app = self._open_app()

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text).lstrip("\n"))
        return target

    def loop(self, text: str) -> None:
        """Add a loop of the repository."""
        dedented = textwrap.dedent(text)
        name = next(line.split(":", 1)[1].strip() for line in dedented.splitlines() if line.startswith("loop_id:"))
        self.write(f".becket/loops/{name}.yaml", text)

    def commit(self, files: Mapping[str, str] | None = None, message: str = "change") -> str:
        """Write the files, commit everything, return the SHA."""
        for path, text in (files or {}).items():
            self.write(path, text)
        return commit_all(self.root, message)

    async def start(self, loop_id: str, **ask: Json) -> Run:
        started = await self.app.intake.start(StartRequest(loop_id=loop_id, **ask))
        if started.run is None:
            raise AssertionError(f"{loop_id} was not started: {started.dropped}")
        return started.run

    async def run(self, loop_id: str, **ask: Json) -> Run:
        """Start a run and let everything settle."""
        run = await self.start(loop_id, **ask)
        await self.settle()
        return await self.store.get_run(run.run_id)

    async def settle(self) -> None:
        """Move every run that can move, one after another, until nothing can."""
        await self._join()
        while True:
            await follow_clock(self.store)
            await self.store.wake_due()
            await Settlements(self.app).look()
            await self.app.triggers.follow()
            for effect in await self.store.due_effects():
                await self.app.door.resume(effect)
            startable = await self.store.startable()
            moved = [await self.app.engine.advance(run_id, segment) for run_id, segment in startable]
            if all(end == "stale" for end in moved):
                return

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settle()

    async def restart(self) -> None:
        """Another process takes over: a new engine over the same journal."""
        if self._kind != "memory":
            await self.store.close()
            self.store = self._open_store()
        self.app = self._open_app()
        await self._join()
        await recover(self.app)

    async def _join(self) -> None:
        """As the engine of a process does at boot: whoever was here before is dead."""
        if self._joined != self.app.worker_id:
            self._joined = self.app.worker_id
            await self.store.join(self.app.worker("daemon", self.clock()), alone=True)


def make_repository(root: Path) -> None:
    """A repository with one commit on `main`."""
    root.mkdir(parents=True, exist_ok=True)
    run_git(root, ["init", "--quiet", "--initial-branch=main"])
    (root / "README.md").write_text("A repository of a test.\n")
    commit_all(root, "begin")


def commit_all(root: Path, message: str) -> str:
    run_git(root, ["add", "--all"])
    run_git(root, ["commit", "--quiet", "--allow-empty", "--no-verify", "-m", message])
    return run_git(root, ["rev-parse", "HEAD"])


def run_git(root: Path, arguments: Iterable[str]) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, env=clean | IDENTITY
    )
    return done.stdout.strip()
