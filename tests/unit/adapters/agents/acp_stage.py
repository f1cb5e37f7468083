"""An ACP agent with the scripted program behind it, in a folder of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentReport, CallContext, CallFiles, Limits
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import ChildControl, ChildRef, ChildResult, ChildSpec, ChildWatcher, Holds
from becket.kernel.process import ContainedProcesses
from becket.parts.agents.adapters.acp import AcpAgent
from becket.parts.agents.adapters.call_environment import DriverContext
from becket.parts.agents.adapters.inbox import put
from becket.parts.agents.adapters.prices import prices_with
from becket.parts.agents.section import Price

PROGRAM = Path(__file__).with_name("acp_program.py")
Steps = Sequence[Mapping[str, Any]]


class Uncontained:
    """Children without a sandbox; `held` is what it says of the files nevertheless."""

    def __init__(self, held: bool) -> None:
        self._processes = ContainedProcesses("none", grace=0.2)
        self._held = held
        self.ends: list[ChildResult] = []

    def holds(self) -> Holds:
        return self._processes.holds().model_copy(update={"files": self._held})

    async def run(
        self, spec: ChildSpec, watcher: ChildWatcher | None = None, control: ChildControl | None = None
    ) -> ChildResult:
        self.ends.append(await self._processes.run(spec, watcher, control))
        return self.ends[-1]

    def sweep(self, children: Sequence[ChildRef]) -> list[ChildRef]:
        return self._processes.sweep(children)


@dataclass
class Stage:
    """`call` plays one script and gives the report; the rest is what can be looked at after it."""

    folder: Path
    held: bool = True
    named: str = ""  # what the program is called, where that matters
    events: list[AgentEvent] = field(default_factory=list)
    tell: Mapping[AgentEventKind, str] = field(default_factory=dict)  # a person speaks at the first event of this kind

    def __post_init__(self) -> None:
        for place in (self.tree, self.home, self.files.folder):
            place.mkdir(exist_ok=True)
        self.processes = Uncontained(self.held)

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def files(self) -> CallFiles:
        return CallFiles(self.folder / "call")

    @property
    def told(self) -> list[dict[str, Any]]:
        """All messages that the program got."""
        return [json.loads(line) for line in (self.folder / "told.jsonl").read_text().splitlines()]

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [message.get("params", {}) for message in self.told if message.get("method") == method]

    def kinds(self) -> list[str]:
        return [event.kind.value for event in self.events if event.kind is not AgentEventKind.usage]

    def agent(self, config: Mapping[str, Any] | None = None) -> AcpAgent:
        run = f"{sys.executable} {PROGRAM} {self.folder / 'script.json'}"
        if self.named:
            program = self.folder / self.named
            program.write_text(f"#!/bin/sh\nexec {run}\n")
            program.chmod(0o755)
            run = str(program)
        driver_context = DriverContext(
            self.processes,
            (),
            {},
            prices_with({"gemini-2.5": Price(input=1.0, output=10.0)}),
            {"PATH": "/usr/bin:/bin"},
            self.folder,
        )
        return AcpAgent("helper", AgentConfig(driver="acp", run=run, **(config or {})), driver_context)

    def call(
        self,
        *prompts: Steps,
        limits: Limits | None = None,
        resume: str | None = None,
        config: Mapping[str, Any] | None = None,
        **script: Any,
    ) -> AgentReport:
        (self.folder / "script.json").write_text(json.dumps({"prompts": prompts, **script}))
        return asyncio.run(self.run(limits or Limits(seconds=120), resume, config))

    async def run(
        self, limits: Limits, session: str | None = None, config: Mapping[str, Any] | None = None
    ) -> AgentReport:
        call_context = CallContext(files=self.files, home=self.home, heard=self._heard)
        return await self.agent(config).run("Fix it.", self.tree, limits, session, call_context=call_context)

    def _heard(self, event: AgentEvent) -> None:
        self.events.append(event)
        if event.kind in self.tell and [one.kind for one in self.events].count(event.kind) == 1:
            put(self.files.inbox, self.tell[event.kind], by="ada")
