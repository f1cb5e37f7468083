"""One run's folders, and a small program in the place of codex or claude."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentReport, CallContext, CallFiles, Limits
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import choose
from becket.parts.agents.adapters.call_environment import DriverContext
from becket.parts.agents.adapters.claude import ClaudeAgent
from becket.parts.agents.adapters.codex import CodexAgent
from becket.parts.agents.adapters.command import CommandAgent
from becket.parts.agents.adapters.headless import HeadlessAgent
from becket.parts.agents.adapters.prices import prices_with
from becket.parts.agents.section import Price

PROGRAM = """#!{python} -S
import json, os, sys, time
from pathlib import Path
arguments, prompt = sys.argv[1:], sys.stdin.read()
def say(**event):
    print(json.dumps(event), flush=True)
def item(kind, number=0, **more):
    say(type="item.completed", item=dict(id=f"i{{number}}", type=kind) | more)
def turn(tokens_in, tokens_out):
    say(type="turn.completed", usage=dict(input_tokens=tokens_in, output_tokens=tokens_out))
with open(Path.home() / "calls", "a") as calls:
    calls.write(json.dumps([arguments, prompt]) + "\\n")
{body}
"""


class Stage:
    """One run's folders, and a program in the place of codex or claude."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.home = folder / "homes" / "fixer-1"
        self.heard: list[AgentEvent] = []
        self.on_event: Callable[[AgentEvent], None] = lambda event: None
        self.calls = 0

    def agent(self, body: str, driver: type[HeadlessAgent] = CodexAgent, **config: Json) -> HeadlessAgent:
        program = self.folder / "program"
        program.write_text(PROGRAM.format(python=sys.executable, body=body))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        names = {ClaudeAgent: "claude", CommandAgent: "command"}
        started: dict[str, Json] = {"run": body or "true"} if driver is CommandAgent else {"program": str(program)}
        given = AgentConfig.model_validate({"driver": names.get(driver, "codex"), "model": "m"} | started | config)
        prices = prices_with({"m": Price(input=1_000_000, output=0)})
        environ = {"PATH": os.environ["PATH"], "KEY": "sesame"}
        driver_context = DriverContext(choose(SandboxKind.none), (), {}, prices, environ, self.folder)
        return driver("fixer", given, driver_context)

    @property
    def files(self) -> CallFiles:
        return CallFiles(self.folder / f"call-{self.calls}")

    async def call(self, agent: HeadlessAgent, session: str | None = None, **limits: Json) -> AgentReport:
        self.calls += 1
        call_context = CallContext(files=self.files, home=self.home, heard=self._hear)
        allowed = Limits.model_validate({"seconds": 120.0} | limits)
        return await agent.run("Fix it.", self.tree, allowed, session, call_context=call_context)

    def run(self, agent: HeadlessAgent, session: str | None = None, **limits: Json) -> AgentReport:
        return asyncio.run(self.call(agent, session, **limits))

    def asked(self) -> list[tuple[list[str], str]]:
        return [tuple(json.loads(line)) for line in (self.home / "calls").read_text().splitlines()]

    def last_event(self) -> AgentEvent:
        return AgentEvent.model_validate_json(self.files.events.read_text().splitlines()[-1])

    def _hear(self, event: AgentEvent) -> None:
        self.heard.append(event)
        self.on_event(event)
