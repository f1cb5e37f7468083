"""The port to coding agents. What an agent says is shown to people and is never evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import Field

from becket.kernel.contract.base import Record
from becket.kernel.contract.process import ChildWatcher


class AgentOutcome(StrEnum):
    """How a call ended, as the runtime judges it."""

    changed = "changed"
    nothing_done = "nothing_done"
    refused = "refused"
    limit_reached = "limit_reached"
    quota_wait = "quota_wait"
    auth_missing = "auth_missing"
    not_found = "not_found"
    model_error = "model_error"
    crashed = "crashed"
    cancelled = "cancelled"


RETRYABLE = frozenset({AgentOutcome.model_error, AgentOutcome.crashed})
"""Worth another try of the same agent, a bounded number of times."""

ANOTHERS_TURN = RETRYABLE | {AgentOutcome.quota_wait, AgentOutcome.auth_missing, AgentOutcome.not_found}
"""Not this agent, now: the next one of its fallback chain may do better."""


class Limits(Record):
    """What one call may use. Enforced by us, reserved before the call."""

    seconds: float
    turns: int | None = None
    tokens: int | None = None
    usd: float | None = None


class PriceSource(StrEnum):
    """Who says what a call cost."""

    vendor = "vendor"  # the agent's own figure
    table = "table"  # its tokens by our price table
    unknown = "unknown"  # nobody: `usd` is 0 because nobody can tell


class Usage(Record):
    """What one call used; never what a whole session did. `cached_tokens` and `cache_write_tokens` are part of
    `input_tokens`; reasoning is part of `output_tokens`.
    """

    seconds: float = 0.0
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    priced: PriceSource = PriceSource.unknown

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def tokens_told(self) -> int | None:
        """None: nobody told. A vendor that tells money tells tokens too, and then 0 is none."""
        return self.tokens if self.tokens or self.priced is PriceSource.vendor else None

    @property
    def usd_told(self) -> float | None:
        """None: nobody can tell."""
        return self.usd if self.usd or self.priced is not PriceSource.unknown else None


class AgentEventKind(StrEnum):
    thinking = "thinking"
    message = "message"
    tool_call = "tool_call"
    edit = "edit"
    usage = "usage"
    error = "error"
    end = "end"


class CallState(StrEnum):
    """Where a tool call stands."""

    started = "started"
    done = "done"
    failed = "failed"
    refused = "refused"


class AgentEvent(Record):
    """What an agent did or said, whoever made it. Vendor events without a meaning for us stay in the raw transcript."""

    kind: AgentEventKind
    at: float = 0.0  # seconds since the call began
    text: str = ""  # what was said; of a tool call, its command or its arguments; of an error, its message
    tool: str = ""
    call: str = ""  # ties the events of one tool call together
    state: CallState | None = None  # only of tool calls and edits
    paths: tuple[str, ...] = ()  # only of edits
    usage: Usage | None = None  # of the call so far; only of `usage` and `end`
    by: str = ""  # who said it, if not the agent: a person's message that was delivered


class AgentReport(Record):
    """What a driver knows after a call. `ended` is False when no terminal event came, whatever the exit code was."""

    ended: bool
    error: str = ""
    outcome_hint: AgentOutcome | None = None  # what the driver recognised: quota, authentication, a limit, a refusal
    until: float | None = None  # for quota_wait: when the quota is back, in seconds since 1970
    said: str = ""
    usage: Usage = Usage()
    session: str | None = None  # for resuming
    model: str = ""  # as the agent names it
    version: str = ""  # of the agent's program
    refusals: tuple[str, ...] = ()  # tool calls that its own rules or ours did not allow
    denied: tuple[str, ...] = ()  # hosts it tried to reach and was not let
    unheard: tuple[str, ...] = ()  # messages of people that could not be delivered; they stay in the inbox
    unknown_events: int = 0  # vendor events without a meaning for us
    transcript: Path | None = None


@dataclass(frozen=True, slots=True)
class CallFiles:
    """The files of one call, all in one folder that outlives a crash of ours."""

    folder: Path

    @property
    def log(self) -> Path:
        """Everything the program printed."""
        return self.folder / "agent.log"

    @property
    def raw(self) -> Path:
        """Its standard output alone: the vendor's own events, line by line."""
        return self.folder / "raw.jsonl"

    @property
    def events(self) -> Path:
        """One AgentEvent per line, written as it happens; in long silence `at` alone. Read by `becket agent attach`."""
        return self.folder / "events.jsonl"

    @property
    def inbox(self) -> Path:
        """A person's messages: one text file each, put there by a rename; oldest name first."""
        return self.folder / "inbox"

    @property
    def heard(self) -> Path:
        """Those that were delivered: what a broken call heard, the one after it has to hear again."""
        return self.folder / "heard"


@dataclass(frozen=True, slots=True)
class CallContext:
    """What one call has besides its workspace: who is told of its processes, what it may read, where its files go."""

    watcher: ChildWatcher | None = None
    readable: tuple[Path, ...] = ()
    files: CallFiles | None = None
    home: Path | None = None  # the run's own; the same one in every call that resumes a session
    heard: Callable[[AgentEvent], None] | None = None  # called for each event, in order, at once


class Agent(Protocol):
    """One configured agent, such as `fixer`."""

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        call_context: CallContext | None = None,
    ) -> AgentReport:
        """Work in the workspace, contained, until done or a limit. Called once per attempt; never raises for what
        the agent does. On cancellation everything it started is gone before CancelledError leaves.

        `session` goes on with an earlier call's session; where the driver cannot, or the session is gone, the call
        begins a new one. Usage is this call's alone.
        """
        ...

    def used(self, files: CallFiles) -> Usage | None:
        """What a call used whose end nobody saw, as far as its files tell, or None. Called after a crash of ours."""
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
        from becket.kernel.contract.errors import NotFound

        if name not in self._agents:
            raise NotFound(f"no agent is called {name!r}; becket.yaml has {', '.join(self._agents) or 'none'}")
        return self._agents[name]


class CallJudgement(Record):
    """The runtime's judgement of one call, from the work tree and the report's facts."""

    outcome: AgentOutcome
    reason: str
    changed_paths: tuple[str, ...] = Field(default=())


def judge(report: AgentReport, changed_paths: tuple[str, ...]) -> CallJudgement:
    """By terminal event, error and diff; never by exit code or by the word "success" (L20)."""
    if report.outcome_hint is not None and report.outcome_hint is not AgentOutcome.changed:
        return CallJudgement(outcome=report.outcome_hint, reason=report.error, changed_paths=changed_paths)
    if not report.ended:
        return CallJudgement(
            outcome=AgentOutcome.crashed, reason=report.error or "it gave no result", changed_paths=changed_paths
        )
    if report.error:
        return CallJudgement(outcome=AgentOutcome.model_error, reason=report.error, changed_paths=changed_paths)
    if not changed_paths and report.refusals:
        return CallJudgement(outcome=AgentOutcome.refused, reason=f"it was not allowed: {report.refusals[0]}")
    if not changed_paths:
        return CallJudgement(outcome=AgentOutcome.nothing_done, reason="the work tree is as it was", changed_paths=())
    differ = "1 path differs" if len(changed_paths) == 1 else f"{len(changed_paths)} paths differ"
    return CallJudgement(outcome=AgentOutcome.changed, reason=differ, changed_paths=changed_paths)
