"""The sandboxes that becket.yaml asks for: tried once each, and what the weakest of them leaves open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.config import AgentConfig, Config
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import ContainedProcesses, choose
from becket.kernel.process.choice import SandboxUndecided

ASK_AGAIN = 60.0
"""Seconds for which a try without an answer holds: each one keeps its caller waiting."""


class Sandboxes:
    """An answer holds for this object's life; a sandbox that did not answer is asked again.

    `readable` is what all programs in them may read, as becket.yaml says at the moment.
    """

    def __init__(self, readable: Callable[[], tuple[Path, ...]] = tuple) -> None:
        self._readable = readable
        self._known: dict[str, ContainedProcesses] = {}
        self._undecided: dict[str, tuple[float, SandboxUndecided]] = {}
        self._trying = threading.Lock()

    def get(self, use: str) -> ContainedProcesses:
        """Raises UsageError if this machine does not have it, Undecided if it did not answer."""
        with self._trying:
            return self._known.get(use) or self._try(use)

    def _try(self, use: str) -> ContainedProcesses:
        asked, trouble = self._undecided.get(use, (0.0, None))
        if trouble is not None and time.monotonic() - asked < ASK_AGAIN:
            raise trouble
        try:
            self._known[use] = choose("auto" if use == "auto" else SandboxKind(use), self._readable)
        except SandboxUndecided as error:
            self._undecided[use] = time.monotonic(), error
            raise
        return self._known[use]

    def of(self, config: Config, agent: AgentConfig) -> ContainedProcesses:
        """An agent works in the sandbox of its own choice, else in everybody's. Raises as `get` does."""
        return self.get(config.sandbox_of(agent))

    def missing(self, config: Config) -> str:
        """What is not contained somewhere and was not given up in so many words, as a sentence; nothing if all is."""
        uses = dict.fromkeys((config.sandbox.use, *(config.sandbox_of(agent) for agent in config.agents.values())))
        return next((told for use in uses if (told := self._lacks(config, use))), "")

    def _lacks(self, config: Config, use: str) -> str:
        try:
            holds = self.get(use).holds()
        except SandboxUndecided as error:
            return str(error)
        except UsageError:
            if use == config.sandbox.use:
                raise
            return ""  # what is not to be had here lets nothing out: its agent cannot be called
        lacks = " and ".join(sorted(set(holds.missing) - set(config.sandbox.without)))
        return f"the sandbox here is {holds.kind} and does not hold {lacks}" if lacks else ""
