"""What the part puts behind its ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from becket.app.compose import App
from becket.kernel.contract.agent import Agents
from becket.kernel.contract.calls import CallLimits
from becket.kernel.contract.config import AgentConfig, Config
from becket.kernel.process import ContainedProcesses
from becket.parts.agents.configured import ConfiguredAgents


def ports(app: App) -> Mapping[type, Callable[[], object]]:
    def config_of_a_call() -> Config:
        """An agent's login may have renewed itself since the last call."""
        config = app.config
        app.learn_secrets(config)
        return config

    def sandbox(agent: AgentConfig) -> ContainedProcesses:
        return app.sandboxes.of(app.config, agent)

    def agents() -> ConfiguredAgents:
        return ConfiguredAgents(config_of_a_call, sandbox, app.places.hidden, app.state.root, app.redactor.text)

    return {Agents: agents, CallLimits: agents, ConfiguredAgents: agents}
