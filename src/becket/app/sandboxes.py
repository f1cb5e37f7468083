"""The sandboxes that becket.yaml asks for: tried once each, and what the weakest of them leaves open."""

from __future__ import annotations

from becket.adapters.process import ContainedProcesses, choose
from becket.contract.config import AgentConfig, Config
from becket.contract.errors import UsageError
from becket.contract.process import SandboxKind


class Sandboxes:
    def __init__(self) -> None:
        self._known: dict[str, ContainedProcesses] = {}

    def get(self, use: str) -> ContainedProcesses:
        """Raises UsageError if this machine does not have it."""
        if use not in self._known:
            self._known[use] = choose("auto" if use == "auto" else SandboxKind(use))
        return self._known[use]

    def of(self, config: Config, agent: AgentConfig) -> ContainedProcesses:
        """An agent works in the sandbox of its own choice, else in everybody's. Raises UsageError."""
        return self.get(config.sandbox.use if agent.sandbox == "auto" else agent.sandbox)

    def missing(self, config: Config) -> set[str]:
        """What is not contained somewhere, and was not given up in so many words."""
        found = set(self.get(config.sandbox.use).holds().missing)
        for agent in config.agents.values():
            try:
                found |= set(self.of(config, agent).holds().missing)
            except UsageError:
                continue  # what is not to be had here lets nothing out: its agent cannot be called
        return found - set(config.sandbox.without)
