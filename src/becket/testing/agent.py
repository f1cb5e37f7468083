"""An agent that does exactly what a test says, well or badly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from becket.contract.agent import AgentOutcome, AgentReport, Around, Limits, Usage

Deed = Callable[[Path], None]
"""What it does to the work tree."""


DEFAULT_USAGE = Usage(seconds=1.0, turns=1, tokens=100, usd=0.01)


@dataclass(frozen=True, slots=True)
class Act:
    """One call's worth of behaviour."""

    deed: Deed = lambda tree: None
    said: str = "All tests pass now."
    ended: bool = True
    error: str = ""
    hint: AgentOutcome | None = None
    until: float | None = None
    usage: Usage = DEFAULT_USAGE
    hangs: bool = False


def writes(path: str, text: str) -> Deed:
    """A deed that writes one file."""

    def deed(tree: Path) -> None:
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    return deed


@dataclass
class ScriptedAgent:
    """Plays its acts one after another; a call beyond the script is an error of the test."""

    acts: Sequence[Act]
    briefs: list[str] = field(default_factory=list)

    async def run(
        self, brief: str, workspace: Path, limits: Limits, session: str | None = None, *, around: Around | None = None
    ) -> AgentReport:
        if len(self.briefs) >= len(self.acts):
            raise AssertionError(f"the agent was called {len(self.briefs) + 1} times, the script has {len(self.acts)}")
        act = self.acts[len(self.briefs)]
        self.briefs.append(brief)
        act.deed(workspace)
        if act.hangs:
            await asyncio.sleep(limits.seconds)
            return AgentReport(ended=False, error="time limit", outcome_hint=AgentOutcome.limit_reached)
        return AgentReport(
            ended=act.ended, error=act.error, outcome_hint=act.hint, until=act.until, said=act.said, usage=act.usage
        )
