"""The agents of becket.yaml, made when they are called: the file may have changed since."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.agent import Agent
from becket.kernel.contract.config import AgentConfig, Config
from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.process import Processes
from becket.parts.agents.adapters.call_environment import DriverContext, ProgramNeeds
from becket.parts.agents.adapters.prices import prices_with, refuse_blind_limit
from becket.parts.agents.section import PRICES
from becket.parts.agents.skill_files import load_skills


class ConfiguredAgents:
    """`processes` tells in which sandbox an agent works; `root` is the repository, which may bring skills."""

    def __init__(
        self,
        config: Callable[[], Config],
        processes: Callable[[AgentConfig], Processes],
        hidden: Callable[[], tuple[Path, ...]],
        root: Path,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._config = config
        self._processes = processes
        self._hidden = hidden
        self._root = root
        self._redact = redact

    def get(self, name: str) -> DriverAgent:
        config = self._config()
        agents = config.agents
        if name not in agents:
            raise NotFound(f"no agent is called {name!r}; becket.yaml has {', '.join(agents) or 'none'}")
        driver_context = DriverContext(
            processes=self._processes(agents[name]),
            hidden=self._hidden(),
            skills=load_skills(self._root),
            prices=prices_with(config.section(PRICES)),
            environ=os.environ,
            home=Path.home(),
            redact=self._redact,
            shown=config.sandbox.readable,
        )
        return made(name, agents[name], driver_context)

    def why_unenforceable(self, agent: str, loop_id: str | None) -> str:
        return why_unenforceable(self._config(), agent, loop_id)


class DriverAgent(Agent, Protocol):
    """An agent by one of the drivers that come with Becket."""

    @property
    def tells_money(self) -> bool:
        """Whether its program says what a call cost."""
        ...

    def wants(self) -> ProgramNeeds:
        """What its program needs."""
        ...


def made(name: str, config: AgentConfig, driver_context: DriverContext) -> DriverAgent:
    """By its driver; only the one that is wanted is imported."""
    if config.driver == "codex":
        from becket.parts.agents.adapters.codex import CodexAgent

        return CodexAgent(name, config, driver_context)
    if config.driver == "claude":
        from becket.parts.agents.adapters.claude import ClaudeAgent

        return ClaudeAgent(name, config, driver_context)
    if config.driver == "acp":
        from becket.parts.agents.adapters.acp.agent import AcpAgent

        return AcpAgent(name, config, driver_context)
    from becket.parts.agents.adapters.command import CommandAgent

    return CommandAgent(name, config, driver_context)


def unpriced(config: Config, name: str, driven: DriverAgent) -> str:
    """Why the agent's limit in money cannot be held, or nothing."""
    agent = config.agents[name]
    try:
        price = prices_with(config.section(PRICES))(agent.model or "")
        refuse_blind_limit(name, agent, price, tells_money=driven.tells_money)
    except UsageError as error:
        return str(error)
    return ""


def why_unenforceable(config: Config, name: str, loop_id: str | None) -> str:
    """Why a limit in money that binds the agent's calls cannot be held, or nothing; without a loop: in any loop.

    Only of a model that is named: of another its program may yet say which one it is (what nobody told in the end
    counts as booked), and of a `command` nobody ever says what it costs.
    """
    agent = config.agents.get(name)
    if agent is None or agent.model is None or agent.driver == "command":
        return ""
    own = (f"agents.{name}.limits.usd",) if agent.limits.usd is not None else ()
    bound = (*own, *config.budgets.in_usd(loop_id))
    if not bound or prices_with(config.section(PRICES))(agent.model) is not None:
        return ""
    return (
        f"agents.{name}: {' and '.join(f'`{budget}`' for budget in bound)} cannot be held, the price of "
        f"{agent.model!r} is not known. Name it in full, or say its price, with zeros if it costs nothing: "
        f"`prices: {{{agent.model}: {{input: 1.0, output: 5.0}}}}`"
    )


def wrongs(name: str, agent: AgentConfig, root: Path, home: Path) -> Iterator[str]:
    """What keeps an agent from ever being called, as far as its configuration tells; each with what to do."""
    for credential in agent.credentials:
        source = home / credential.file.removeprefix("~/")
        if credential.as_ is None and not source.is_relative_to(home):
            yield f"agents.{name}: {credential.file} is not below your home; say with `as` where the agent looks for it"
    try:
        there = load_skills(root)
    except UsageError as error:
        yield str(error)
        return
    if unknown := [skill for skill in agent.skills or () if skill not in there]:
        yield f"agents.{name}: no skill is called {', '.join(unknown)}; there is: {', '.join(there)}"
