"""The one way to call an agent: by leave of the budgets, judged by the work tree, settled whatever happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from becket.kernel.contract.action import KEPT, ActionContext
from becket.kernel.contract.agent import (
    ANOTHERS_TURN,
    RETRYABLE,
    Agent,
    AgentEvent,
    AgentOutcome,
    AgentReport,
    Agents,
    CallContext,
    CallFiles,
    CallJudgement,
    Limits,
    Usage,
    judge,
)
from becket.kernel.contract.base import Json
from becket.kernel.contract.calls import (
    CALLS,
    SPENT_NOTHING,
    CallEnd,
    CallGrant,
    CallRequest,
    counted,
    end_by_files,
    folder_of,
    overshot,
)
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.config import AgentLimits, Config
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import ActionFailed, BecketError, GitFailed
from becket.kernel.contract.loop import UNHELD
from becket.kernel.contract.outlasting import to_its_end
from becket.kernel.contract.project import Projects
from becket.parts.agents import messages

T = TypeVar("T")

agent_ended = CrashPoint("fix.agent_ended", "the agent has worked; its work is in the checkout and nowhere else")

OBJECT = "agent"
NAMES = tuple(outcome.value for outcome in AgentOutcome)
GROUP = ConditionGroup(object=OBJECT, names=NAMES)
OUTPUTS = ("outcome", "said", "sessions", "calls")
"""What every action that calls an agent brings."""

NOT_RESUMED = RETRYABLE | {AgentOutcome.refused}
"""A session that ended so would only end so again."""

HEARD_IN_VAIN = ANOTHERS_TURN | {AgentOutcome.cancelled}
"""What people said to a call that ended so is said to the next one too."""

REASON_LIMIT, SAID_LIMIT, PATHS_SHOWN = 500, 4_000, 50
KEPT_IN_HASTE = 200_000
"""Bytes of each file of a call that was broken off: whoever stops it waits until they are kept."""
UNTOLD_QUOTA, RARELY, FAILED_ONLY = 300.0, 3600.0, 900.0
"""Seconds until another look where nobody says when the quota is back: at first, at most, and where one of the chain
only failed.
"""


@dataclass(frozen=True, slots=True)
class OpenedCheckout:
    """A checkout that is ready for a call. `fresh`: nothing that an earlier call did is in it."""

    tree: Path
    readable: tuple[Path, ...]
    fresh: bool


class WorkPlace(Protocol):
    """Where an agent works."""

    async def open(self) -> OpenedCheckout:
        """Called before each call. What the call before left is saved first (L7)."""
        ...

    async def changed(self) -> tuple[str, ...]:
        """The paths that differ from the commit, untracked ones too (L5). Called after each call."""
        ...

    async def save(self) -> None:
        """Save what is not committed. Called when a call was broken off; may be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What an agent shall do. `number` tells apart agents that work at once, each for its `share` of the budgets."""

    agent: str
    brief: str
    ground: WorkPlace
    number: int = 1
    time: float | None = None
    share: float = 1.0
    alone: bool = False  # without its fallbacks
    heeds: bool = True  # what people say to the run goes into its brief


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """One call that was made."""

    agent: str
    number: int
    judged: CallJudgement
    report: AgentReport

    @property
    def told(self) -> dict[str, Json]:
        used = self.report.usage
        return {
            "agent": self.agent, "outcome": self.judged.outcome.value, "seconds": round(used.seconds, 3),
            "turns": used.turns, "tokens": used.tokens_told, "usd": used.usd_told, "reason": self.judged.reason,
            **({"denied": list(self.report.denied[:PATHS_SHOWN])} if self.report.denied else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one task in their order: the agent's, and those of its fallbacks."""

    made: tuple[FinishedCall, ...]
    now: float = 0.0  # when the last one was over

    @property
    def until(self) -> float | None:
        """When to ask again: with a quota that is back, but soon where another only failed and may work by then."""
        told = self.chosen.report.until
        failed_only = any(each.judged.outcome in RETRYABLE for each in self.made)
        return min(told, self.now + FAILED_ONLY) if told is not None and failed_only else told

    @property
    def chosen(self) -> FinishedCall:
        """The call that counts: the last one where somebody had a turn; else whose quota is back first, else the
        first one.
        """
        if self.made[-1].judged.outcome not in ANOTHERS_TURN:
            return self.made[-1]
        waiting = [each for each in self.made if each.judged.outcome is AgentOutcome.quota_wait]
        return min(waiting, key=lambda each: each.report.until or 0.0) if waiting else self.made[0]


def chain(config: Config, name: str) -> tuple[str, ...]:
    """The agent and its fallbacks, each once."""
    known = config.agents.get(name)
    return tuple(dict.fromkeys((name, *(known.fallback if known else ()))))


async def call(context: ActionContext, task: AgentTask) -> Calls:
    """Call the agent; where it cannot work now, or no budget could be held for it, the next one of its chain. Raises
    BudgetSpent before a call.
    """
    ends_at = time.monotonic() + _seconds(context, task)
    made: list[FinishedCall] = []
    unenforceable: ActionFailed | None = None
    names = (task.agent,) if task.alone else chain(context.port(Projects).current(), task.agent)
    for name in names:
        try:
            made.append(await _Call(context, task, name).made(ends_at))
        except ActionFailed as failure:
            if failure.kind != UNHELD:
                raise
            unenforceable = unenforceable or failure
            continue
        if made[-1].judged.outcome not in ANOTHERS_TURN or time.monotonic() >= ends_at:
            break
    if unenforceable is not None and not made:
        raise unenforceable
    return Calls(tuple(made), await context.now())


async def settle_earlier(context: ActionContext) -> None:
    """Book what calls used whose end no earlier life of this step saw, as far as anybody can tell. Called once,
    before the step's own calls.
    """
    for earlier in await context.open_calls():
        files = _files(context, earlier.call_id)
        for folder in (files.heard, files.inbox):
            messages.forward(folder, context.folder(messages.MAIL))
        end = await asyncio.to_thread(end_by_files, earlier, context.port(Agents), files)
        if end is not None:  # otherwise its booking stands
            in_usd = _bounds_money(context, earlier.agent)
            await context.end_call(earlier.grant, counted(end, earlier.limits, untold=False, in_usd=in_usd))


def sessions(context: ActionContext, made: Iterable[FinishedCall]) -> dict[str, Json]:
    """The agents' own sessions, for the next iteration of the same run."""
    known = dict(_sessions_before(context))
    for each in made:
        key = _key(each.agent, each.number)
        if each.report.session and each.judged.outcome not in NOT_RESUMED:
            known[key] = each.report.session
        else:
            known.pop(key, None)
    return known


def raised(calls: Calls) -> Condition:
    """`agent.<outcome>`, with everybody who was asked."""
    chosen = calls.chosen
    evidence: dict[str, Json] = {
        "agent": chosen.agent,
        "reason": chosen.judged.reason,
        "paths": list(chosen.judged.changed_paths[:PATHS_SHOWN]),
        "until": calls.until,
        "asked": [each.told for each in calls.made],
    }
    return Condition(object=OBJECT, name=chosen.judged.outcome.value, group=NAMES, evidence=evidence)


def failed(called: FinishedCall) -> ActionFailed:
    """For `retry:`: the same call may succeed at once."""
    judged = called.judged
    return ActionFailed(
        f"the agent {called.agent}: {judged.outcome}: {judged.reason}", kind=judged.outcome.value, retryable=True
    )


def _bounds_money(context: ActionContext, name: str) -> bool:
    """Whether becket.yaml bounds what the agent's calls may cost. A loop's own budget holds what is known to it."""
    config = context.port(Projects).current()
    own = config.agents.get(name)
    return any(config.budgets.in_usd(context.run.loop_id)) or (own is not None and own.limits.usd is not None)


def _files(context: ActionContext, call_id: str) -> CallFiles:
    return CallFiles(context.folder(CALLS) / folder_of(context.run.run_id, call_id))


def _key(agent: str, number: int) -> str:
    return f"{agent}-{number}"


def _sessions_before(context: ActionContext) -> dict[str, Json]:
    found = context.outputs.get(context.step_id, {}).get("sessions")
    return dict(found) if isinstance(found, dict) else {}


def _seconds(context: ActionContext, task: AgentTask) -> float:
    """An agent at work is told of its time; a step at work is cancelled. So the step's time is the agent's."""
    step = context.spec.output_makers().get(context.step_id)
    bounds = (context.seconds_left, task.time, step.timeout if step is not None else None)
    return min(bound for bound in bounds if bound is not None)


@dataclass
class _Call:
    """One call, from the leave to make it to its settlement."""

    context: ActionContext
    task: AgentTask
    name: str
    grant: CallGrant | None = None
    letters: tuple[messages.KeptMessage, ...] = ()
    began: float = 0.0
    heard: Usage = field(default_factory=Usage)

    @property
    def key(self) -> str:
        return _key(self.name, self.task.number)

    @property
    def files(self) -> CallFiles:
        assert self.grant is not None
        return _files(self.context, self.grant.call_id)

    async def made(self, ends_at: float) -> FinishedCall:
        agent = self.context.port(Agents).get(self.name)
        opened = await self.task.ground.open()
        session = str(_sessions_before(self.context).get(self.key) or "") or None
        brief = self._brief(resumed_fresh=session is not None and opened.fresh)
        self.grant = await self.context.begin_call(self._wish(ends_at))
        self.began = time.monotonic()
        try:
            call_context = self._around(opened)
            report = await agent.run(brief, opened.tree, self.grant.limits, session, call_context=call_context)
            agent_ended()
            judged = await self._judged(report)
        except asyncio.CancelledError:
            await to_its_end(self._broken_off(agent, AgentOutcome.cancelled, "it was stopped"))
            raise
        except Exception as error:
            await to_its_end(self._broken_off(agent, AgentOutcome.crashed, str(error)))
            raise
        return await to_its_end(self._settled(agent, judged, report))

    def _wish(self, ends_at: float) -> CallRequest:
        config = self.context.port(Projects).current().agents.get(self.name)
        own = config.limits if config is not None else AgentLimits()
        seconds = max(1.0, min(own.time, ends_at - time.monotonic()))
        return CallRequest(
            label=f"{self.task.number}-{self.name}",
            agent=self.name,
            driver=config.driver if config is not None else "",
            model=(config.model if config is not None else None) or "",
            limits=Limits(seconds=seconds, turns=own.turns, tokens=own.tokens, usd=own.usd),
            share=self.task.share,
        )

    def _brief(self, *, resumed_fresh: bool) -> str:
        if not self.task.heeds:
            return self.task.brief
        unread, read = messages.waiting(self.context.folder(messages.MAIL)), messages.waiting(self._read)
        self.letters = tuple(sorted((*read, *unread), key=lambda letter: letter.path.name))
        again = messages.prompt("resumed") if resumed_fresh else ""
        return messages.above(again + self.task.brief, self.letters)

    @property
    def _read(self) -> Path:
        """For what was read in this very step: whoever does the step once more has to read it too."""
        return self.context.folder(messages.MAIL) / f"{self.context.run.iteration}-{self.context.step_id}"

    def _around(self, opened: OpenedCheckout) -> CallContext:
        home = self.context.folder("home") / self.key
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.files.inbox.mkdir(parents=True, exist_ok=True)
        return CallContext(
            watcher=self.context.watcher(), readable=opened.readable, files=self.files, home=home, heard=self._hear
        )

    def _hear(self, event: AgentEvent) -> None:
        if event.usage is not None:
            self.heard = event.usage

    async def _judged(self, report: AgentReport) -> CallJudgement:
        try:
            return judge(report, await self.task.ground.changed())
        except GitFailed as error:
            if report.outcome_hint is not None:
                return judge(report, ())
            return CallJudgement(outcome=AgentOutcome.crashed, reason=f"its checkout cannot be read any more: {error}")

    async def _settled(self, agent: Agent, judged: CallJudgement, report: AgentReport) -> FinishedCall:
        used = report.usage if report.usage.seconds else report.usage.model_copy(update={"seconds": self._elapsed()})
        report = report.model_copy(update={"usage": used})
        reason = self.context.redact(judged.reason)[:REASON_LIMIT]
        judged = judged.model_copy(update={"reason": reason})
        if judged.outcome not in ANOTHERS_TURN:
            messages.put_away(self.letters, self._read)
        untold = self._may_have_spent(judged.outcome, report) and await self._told_by_files(agent) is None
        await self._end(judged.outcome, reason, report, untold=untold)
        await self._keep()
        if judged.outcome is AgentOutcome.quota_wait and report.until is None:  # in the call's record it stays untold
            report = report.model_copy(update={"until": await self._guess()})
        return FinishedCall(self.name, self.task.number, judged, report)

    async def _guess(self) -> float:
        """When to look for a quota of which nobody said when it is back: the longer it is gone, the later."""
        now = await self.context.now()
        gone = now - self.context.run.waits_since.get(f"{OBJECT}.{AgentOutcome.quota_wait}", now)
        return now + max(UNTOLD_QUOTA, min(gone, RARELY))

    async def _broken_off(self, agent: Agent, outcome: AgentOutcome, why: str) -> None:
        """What is not committed is saved, and what was used until then is booked. The run may be somebody else's by
        now: then the booking stands, and nothing of this may hide what broke the call off.
        """
        reason = self.context.redact(why)[:REASON_LIMIT]
        with suppress(BecketError, OSError):
            await self.task.ground.save()
        with suppress(BecketError, OSError):
            known = await self._told_by_files(agent)
            used = max((self.heard, known or Usage()), key=lambda usage: (usage.tokens, usage.usd))
            report = AgentReport(ended=False, usage=used.model_copy(update={"seconds": self._elapsed()}))
            untold = known is None and self._may_have_spent(outcome, report)
            await self._end(outcome, reason, report, untold=untold)
            await self._keep(KEPT_IN_HASTE)

    def _may_have_spent(self, outcome: AgentOutcome, report: AgentReport) -> bool:
        """It was stopped, and has told of nothing. A program that crashed before its first turn was asked nothing."""
        if report.ended or report.usage.tokens or outcome in SPENT_NOTHING:
            return False
        return outcome is not AgentOutcome.crashed or report.usage.turns > 0

    async def _told_by_files(self, agent: Agent) -> Usage | None:
        return await asyncio.to_thread(agent.used, self.files)

    async def _end(self, outcome: AgentOutcome, reason: str, report: AgentReport, *, untold: bool) -> None:
        assert self.grant is not None
        post = self.context.folder(messages.MAIL)
        messages.forward(self.files.heard, post if outcome in HEARD_IN_VAIN else self._read)
        messages.forward(self.files.inbox, post)
        end = CallEnd(
            outcome=outcome, reason=reason, usage=report.usage, until=report.until, session=report.session,
            model=report.model, version=report.version, over=overshot(report.usage, self.grant.limits),
        )  # fmt: skip
        in_usd = _bounds_money(self.context, self.name)
        await self.context.end_call(self.grant, counted(end, self.grant.limits, untold=untold, in_usd=in_usd))
        messages.forward(self.files.inbox, post)  # until now people were told that it is at work

    async def _keep(self, most: int = KEPT) -> None:
        """The log, the events and the vendor's own words; a call that resumed within itself has several of each."""
        for path in sorted(self.files.folder.iterdir()):
            if path.is_file() and not path.is_symlink():
                await self.context.keep(path, f"agent-{self.key}.{path.name.removeprefix('agent.')}", most)

    def _elapsed(self) -> float:
        return round(time.monotonic() - self.began, 3)
