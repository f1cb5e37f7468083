"""The command driver with the program of a case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.agent import AgentReport, Around, CallFiles, Limits, Usage
from becket.kernel.contract.config import AgentConfig, AgentLimits
from becket.kernel.contract.process import Network
from becket.parts.agents.adapters.command import CommandAgent
from becket.parts.agents.adapters.outfit import Outfit
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
        self, brief: str, workspace: Path, limits: Limits, session: str | None = None, *, around: Around | None = None
    ) -> AgentReport:
        config = AgentConfig(
            driver="command", run=self.program, network=Network.none, limits=AgentLimits(time=self.seconds)
        )
        driver = CommandAgent("wired", config, self.outfit({}))
        return await driver.run(brief, workspace, limits, session, around=around)

    def outfit(self, environ: Mapping[str, str]) -> Outfit:
        app = self.world.app
        return Outfit(app.processes, app.places.hidden(), {}, prices_with({}), environ, Path.home())
