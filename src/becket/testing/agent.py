"""An agent that does exactly what a test says, well or badly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from becket.kernel.contract.agent import (
    AgentEvent,
    AgentEventKind,
    AgentOutcome,
    AgentReport,
    CallContext,
    CallFiles,
    Limits,
    Usage,
)
from becket.parts.agents.adapters.inbox import put

Deed = Callable[[Path], None]
"""What it does to the work tree."""


DEFAULT_USAGE = Usage(seconds=1.0, turns=1, output_tokens=100, usd=0.01)


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
    session: str | None = None
    unheard: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What one call was given."""

    brief: str
    workspace: Path
    limits: Limits
    session: str | None
    call_context: CallContext


def writes(path: str, text: str) -> Deed:
    """A deed that writes one file."""

    def deed(tree: Path) -> None:
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    return deed


@dataclass
class ScriptedAgent:
    """Plays its acts one after another; a call beyond the script is an error of the test.

    `hanging` is set while an act hangs, so that a test can stop it then. `left` is what a call's files tell of one
    whose end nobody saw.
    """

    acts: Sequence[Act]
    briefs: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    left: Usage | None = None

    def used(self, files: CallFiles) -> Usage | None:
        return self.left

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        call_context: CallContext | None = None,
    ) -> AgentReport:
        if len(self.briefs) >= len(self.acts):
            raise AssertionError(f"the agent was called {len(self.briefs) + 1} times, the script has {len(self.acts)}")
        act = self.acts[len(self.briefs)]
        self.briefs.append(brief)
        call_context = call_context or CallContext()
        self.seen.append(Seen(brief, workspace, limits, session, call_context))
        act.deed(workspace)
        self._tell(act, call_context)
        if act.hangs:
            self.hanging.set()
            await asyncio.sleep(limits.seconds)
            return AgentReport(ended=False, error="time limit", outcome_hint=AgentOutcome.limit_reached)
        return AgentReport(
            ended=act.ended, error=act.error, outcome_hint=act.hint, until=act.until, said=act.said, usage=act.usage,
            session=act.session, unheard=act.unheard,
        )  # fmt: skip

    def _tell(self, act: Act, call_context: CallContext) -> None:
        told = (
            AgentEvent(kind=AgentEventKind.message, text=act.said),
            AgentEvent(kind=AgentEventKind.usage, usage=act.usage),
        )
        if call_context.files is not None:
            call_context.files.folder.mkdir(parents=True, exist_ok=True)
            for text in act.unheard:
                put(call_context.files.inbox, text)
            lines = "".join(event.model_dump_json(exclude_defaults=True) + "\n" for event in told)
            with contextlib.suppress(OSError):  # as the drivers do: a full disk ends the telling, not the call
                call_context.files.events.write_text(lines)
        for event in told:
            if call_context.heard is not None:
                call_context.heard(event)
