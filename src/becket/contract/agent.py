"""The port to coding agents. What an agent says is shown to people and is never evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import Field

from becket.contract.base import Json, Record
from becket.contract.process import ChildWatcher


class AgentOutcome(StrEnum):
    """How a call ended, as the runtime judges it."""

    changed = "changed"
    nothing_done = "nothing_done"
    refused = "refused"
    limit_reached = "limit_reached"
    quota_wait = "quota_wait"
    auth_missing = "auth_missing"
    model_error = "model_error"
    crashed = "crashed"
    cancelled = "cancelled"


RETRYABLE = frozenset({AgentOutcome.model_error, AgentOutcome.crashed})


class Limits(Record):
    """What one call may use. Enforced by us, reserved before the call."""

    seconds: float
    turns: int | None = None
    tokens: int | None = None
    usd: float | None = None


class Usage(Record):
    seconds: float = 0.0
    turns: int = 0
    tokens: int = 0
    usd: float = 0.0


class AgentReport(Record):
    """What a driver knows after a call. `ended` is False when no terminal event came, whatever the exit code was."""

    ended: bool
    error: str = ""
    outcome_hint: AgentOutcome | None = None  # what the driver recognised: quota, authentication, a model error
    until: float | None = None  # for quota_wait
    said: str = ""
    usage: Usage = Usage()
    session: str | None = None  # for resuming
    events: tuple[dict[str, Json], ...] = ()
    transcript: Path | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """What one call has besides its workspace: who is told of its processes, what it may read, where its log goes."""

    watcher: ChildWatcher | None = None
    readable: tuple[Path, ...] = ()
    log: Path | None = None


class Agent(Protocol):
    """One configured agent, such as `fixer`."""

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        around: Around | None = None,
    ) -> AgentReport:
        """Work in the workspace, contained, until done or a limit. Called once per attempt; never raises for what
        the agent does. On cancellation everything it started is gone before CancelledError leaves.
        """
        ...


class Agents(Protocol):
    """The agents of becket.yaml by name."""

    def get(self, name: str) -> Agent:
        """Raises NotFound with the names that exist."""
        ...


class AgentsByName:
    """A fixed set of agents."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = dict(agents)

    def get(self, name: str) -> Agent:
        from becket.contract.errors import NotFound

        if name not in self._agents:
            raise NotFound(f"no agent is called {name!r}; becket.yaml has {', '.join(self._agents) or 'none'}")
        return self._agents[name]


class Judged(Record):
    """The runtime's judgement of one call, from the work tree and the report's facts."""

    outcome: AgentOutcome
    reason: str
    changed_paths: tuple[str, ...] = Field(default=())


def judge(report: AgentReport, changed_paths: tuple[str, ...]) -> Judged:
    """By terminal event, error and diff; never by exit code or by the word "success" (L20)."""
    if report.outcome_hint is not None and report.outcome_hint is not AgentOutcome.changed:
        return Judged(outcome=report.outcome_hint, reason=report.error, changed_paths=changed_paths)
    if not report.ended:
        return Judged(
            outcome=AgentOutcome.crashed, reason=report.error or "it gave no result", changed_paths=changed_paths
        )
    if report.error:
        return Judged(outcome=AgentOutcome.model_error, reason=report.error, changed_paths=changed_paths)
    if not changed_paths:
        return Judged(outcome=AgentOutcome.nothing_done, reason="the work tree is as it was", changed_paths=())
    return Judged(
        outcome=AgentOutcome.changed, reason=f"{len(changed_paths)} paths differ", changed_paths=changed_paths
    )
