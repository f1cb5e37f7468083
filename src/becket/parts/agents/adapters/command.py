"""Any program as an agent: the brief comes on standard input, the work is what it leaves in its checkout."""

from __future__ import annotations

import re
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, CallFiles, Usage
from becket.kernel.contract.process import ChildEnd, ChildResult
from becket.parts.agents.adapters.call_environment import CallEnvironment, ProgramNeeds
from becket.parts.agents.adapters.dialect import Dialect, Heard
from becket.parts.agents.adapters.headless import AgentTurn, HeadlessAgent
from becket.parts.agents.adapters.lines import Vital
from becket.parts.agents.adapters.reports import last_usage
from becket.parts.agents.adapters.watch import SAID_LOOKED_AT

_SKILLS = ".skills"
_WITH_SKILLS = f'BECKET_SKILLS="$HOME/{_SKILLS}" exec sh -euc "$1"'
"""Where HOME is inside is the sandbox's business, so the variable is made there."""


NO_PROGRAM = {126: "may not be executed where the agent runs", 127: "is not found where the agent runs"}
"""What a shell's exit code says of the program that it was to start."""
_NOT_FOUND = re.compile(
    r"(?m)^(?:\S+: )?(?:line )?(?:\d+: )?(?:exec: )?([^\s:]+): "
    r"(?:command not found|not found|No such file or directory|Permission denied|cannot execute.*)$"
)


class CommandAgent(HeadlessAgent):
    """`driver: command`. Contained like every program that is not ours; its words are shown and never believed.

    It has no session and no events: a person's message has to wait for the next call.
    """

    vendor = "command"
    resumes = False

    def wants(self) -> ProgramNeeds:
        return ProgramNeeds(skills=_SKILLS)

    def command(self, environment: CallEnvironment, turn: AgentTurn) -> tuple[str, ...]:
        assert self.config.run is not None
        if (environment.home / _SKILLS).is_dir():
            return ("sh", "-euc", _WITH_SKILLS, "sh", self.config.run)
        return ("sh", "-euc", self.config.run)

    def dialect(self, tree: Path, before: Usage) -> Dialect:
        return PlainDialect()

    def used(self, files: CallFiles) -> Usage | None:
        """Its time. What it costs beyond that nobody can tell, at its end no more than after a crash."""
        return Usage(seconds=last_usage(files).seconds) if files.folder.is_dir() else None


class PlainDialect:
    """Every line is something said. Here the exit code is all that a program can say of its end."""

    vital: Vital = None

    def __init__(self) -> None:
        self.heard = Heard()

    def take(self, line: str) -> list[AgentEvent]:
        text = line.encode("utf-8", "replace").decode()
        self.heard.said = f"{self.heard.said}{text}\n"[-SAID_LOOKED_AT:]
        return [AgentEvent(kind=AgentEventKind.message, text=text)] if text.strip() else []

    def close(self, result: ChildResult, tail: str) -> None:
        if result.end is not ChildEnd.exited:
            return
        if result.exit_code in NO_PROGRAM:
            named = _NOT_FOUND.findall(tail)
            program = named[-1] if named else "a program that it starts"
            self.heard.error = f"{program} {NO_PROGRAM[result.exit_code]} (exit code {result.exit_code})"
            self.heard.hint = AgentOutcome.not_found
        elif result.exit_code:
            self.heard.error = f"it ended with exit code {result.exit_code}"
            self.heard.hint = AgentOutcome.crashed
            self.heard.said = self.heard.said or tail[-SAID_LOOKED_AT:]  # a program that fails says why elsewhere
        else:
            self.heard.ended = True
