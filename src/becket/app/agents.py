"""The agents of becket.yaml, made when they are called: the file may have changed since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from becket.adapters.agents.command import CommandAgent
from becket.contract.agent import Agent
from becket.contract.config import AgentConfig, Config
from becket.contract.errors import NotFound, UsageError
from becket.contract.process import Processes


class ConfiguredAgents:
    def __init__(
        self, config: Callable[[], Config], processes: Callable[[], Processes], hidden: Callable[[], tuple[Path, ...]]
    ) -> None:
        self._config = config
        self._processes = processes
        self._hidden = hidden

    def get(self, name: str) -> Agent:
        agents = self._config().agents
        if name not in agents:
            raise NotFound(f"no agent is called {name!r}; becket.yaml has {', '.join(agents) or 'none'}")
        return self._made(name, agents[name])

    def _made(self, name: str, config: AgentConfig) -> Agent:
        if config.driver == "command":
            return CommandAgent(config, self._processes(), self._hidden())
        raise UsageError(f"agents.{name}: the driver {config.driver!r} is not there yet; use `driver: command`")
