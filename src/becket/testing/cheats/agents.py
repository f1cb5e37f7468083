"""The command driver with the program of a case."""

from __future__ import annotations

from pathlib import Path

from becket.adapters.agents.command import CommandAgent
from becket.contract.agent import AgentReport, Around, Limits
from becket.contract.config import AgentConfig, AgentLimits
from becket.contract.process import Network
from becket.testing.world import World


class Wired:
    """Made before its world, which knows the sandbox. Without a program it does nothing, and that is seen."""

    world: World
    program: str = "true"
    seconds: float = 30.0

    async def run(
        self, brief: str, workspace: Path, limits: Limits, session: str | None = None, *, around: Around | None = None
    ) -> AgentReport:
        config = AgentConfig(
            driver="command", run=self.program, network=Network.none, limits=AgentLimits(time=self.seconds)
        )
        driver = CommandAgent(config, self.world.app.processes, self.world.app.hidden())
        return await driver.run(brief, workspace, limits, session, around=around)
