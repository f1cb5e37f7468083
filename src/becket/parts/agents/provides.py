"""What the part puts behind its ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from becket.app.compose import App
from becket.kernel.contract.agent import Agents
from becket.kernel.contract.calls import CallLimits
from becket.parts.agents.configured import ConfiguredAgents


def ports(app: App) -> Mapping[type, Callable[[], object]]:
    def agents() -> ConfiguredAgents:
        return ConfiguredAgents(
            app.config_of_a_call, app.processes_for, app.hidden, app.state.root, app.redactor.text
        )  # fmt: skip

    return {Agents: agents, CallLimits: agents, ConfiguredAgents: agents}
