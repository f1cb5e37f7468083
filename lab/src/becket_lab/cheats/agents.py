"""The command driver with the program of a case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.agent import AgentReport, CallContext, CallFiles, Limits, Usage
from becket.kernel.contract.config import AgentConfig, AgentLimits
from becket.kernel.contract.process import Network
from becket.parts.agents.adapters.call_environment import DriverContext
from becket.parts.agents.adapters.command import CommandAgent
from becket.parts.agents.adapters.prices import prices_with
from becket.testing.world import World


class Wired:
    """Made before its world, which knows the sandbox. Without a program it does nothing, and that is seen.

    One of another driver overrides `run`, and has the program run by whatever commands its agent can run.
    """

    world: World
    program: str = "true"
    seconds: float = 30.0

    def used(self, files: CallFiles) -> Usage | None:
        return None

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        call_context: CallContext | None = None,
    ) -> AgentReport:
        config = AgentConfig(
            driver="command", run=self.program, network=Network.none, limits=AgentLimits(time=self.seconds)
        )
        driver = CommandAgent("wired", config, self.driver_context({}))
        return await driver.run(brief, workspace, limits, session, call_context=call_context)

    def driver_context(self, environ: Mapping[str, str]) -> DriverContext:
        app = self.world.app
        return DriverContext(app.processes, app.places.hidden(), {}, prices_with({}), environ, Path.home())
