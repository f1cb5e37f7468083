"""Calls of agents as the journal keeps them: allowed before they begin, booked at what they may use, settled after."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from becket.kernel.contract.agent import AgentOutcome, Agents, CallFiles, Limits, Usage
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import ActionFailed, UsageError

KINDS = ("agent_time", "tokens", "usd")
"""What a budget bounds. `agent_time` is seconds."""


class CallRequest(Record):
    """A call that an action wants to make. `label` tells apart the calls of one attempt of one step."""

    label: str = Field(max_length=100)
    agent: str
    driver: str
    model: str = ""
    limits: Limits
    share: float = Field(default=1.0, gt=0, le=1)  # of what the budgets leave: calls at once must not take all


class CallLimits(Protocol):
    """Whoever knows the prices."""

    def why_unenforceable(self, agent: str, loop_id: str | None) -> str:
        """Why a limit in money that binds the agent's calls cannot be held, or nothing. Asked before each call."""
        ...


class CallGrant(Record):
    """Leave to call, with what the budgets really allow; it is booked at that until the call is settled."""

    call_id: str
    limits: Limits
    cut_by: tuple[str, ...] = ()  # the budgets that allowed less than was wished, in words


class SettledBy(StrEnum):
    """Whose word it is what a call used."""

    report = "report"  # that of whoever made the call, and saw its end
    files = "files"  # nobody saw its end; its files tell
    never_made = "never_made"  # there was leave for it, and it never began
    booking = "booking"  # nothing was told, or no amount; what was booked counts


class CallEnd(Record):
    """How a call ended, by our judgement."""

    outcome: AgentOutcome
    reason: str = ""
    usage: Usage = Usage()
    until: float | None = None
    session: str | None = None
    model: str = ""
    version: str = ""
    over: tuple[str, ...] = ()  # limits that were overshot, in words
    by: SettledBy = SettledBy.report


class AgentCall(Record):
    """One call in the journal. Without an `end` it is at work, or nobody saw its end: then its booking stands."""

    call_id: str
    run_id: str
    loop_id: str
    iteration: int
    phase: str = ""
    step_id: str
    agent: str
    driver: str
    model: str
    limits: Limits
    began_at: float
    ended_at: float | None = None
    end: CallEnd | None = None

    @property
    def grant(self) -> CallGrant:
        """What it was begun with: for whoever settles a call that an earlier life left open."""
        return CallGrant(call_id=self.call_id, limits=self.limits)


CALLS = "calls"
"""Below a run's folder: one folder for each of its calls."""


def folder_of(run_id: str, call_id: str) -> str:
    """The name that the folder of a call has below `CALLS`."""
    return call_id.removeprefix(f"{run_id}:").replace(":", "-")


def end_by_files(call: AgentCall, agents: Agents, files: CallFiles) -> CallEnd | None:
    """The end of a call that nobody saw end, as far as its files tell; None: it may have used all that it may."""
    if not files.folder.exists():  # it is made right before the call
        why = "Becket was stopped before it began"
        return CallEnd(outcome=AgentOutcome.cancelled, reason=why, model=call.model, by=SettledBy.never_made)
    used = _used(call, agents, files)
    if used is None:
        return None
    return CallEnd(
        outcome=AgentOutcome.cancelled, reason="Becket was stopped while it was at work", usage=used, model=call.model,
        over=overshot(used, call.limits), by=SettledBy.files,
    )  # fmt: skip


def end_by_booking(call: AgentCall) -> CallEnd:
    """The end of a call of which nothing tells what it used, and nothing ever will: all that it was allowed."""
    most = call.limits
    used = Usage(seconds=most.seconds, output_tokens=most.tokens or 0, usd=most.usd or 0.0)
    why = "Becket was stopped while it was at work, and nothing tells what it used"
    return CallEnd(outcome=AgentOutcome.cancelled, reason=why, usage=used, model=call.model, by=SettledBy.booking)


SPENT_NOTHING = frozenset({AgentOutcome.quota_wait, AgentOutcome.auth_missing, AgentOutcome.model_error})
"""Where a call that ended so told of no tokens, its model gave no answer to be paid for."""


def counted(end: CallEnd, limits: Limits, *, untold: bool, in_usd: bool) -> CallEnd:
    """With what nobody told counted as booked: what was stopped may have used all that it was allowed to.

    `untold`: nothing tells what it used. `in_usd`: a limit of becket.yaml bounds its money, and what has no price is
    not free then.
    """
    used = end.usage
    blind = in_usd and used.usd_told is None and bool(used.tokens or used.turns)
    more: dict[str, float] = {}
    if untold and limits.tokens is not None:
        more["output_tokens"] = limits.tokens
    if (untold or blind) and limits.usd is not None:
        more["usd"] = limits.usd
    return end.model_copy(update={"usage": used.model_copy(update=more), "by": SettledBy.booking}) if more else end


def _used(call: AgentCall, agents: Agents, files: CallFiles) -> Usage | None:
    try:
        return agents.get(call.agent).used(files)
    except UsageError:
        return None  # there is no such agent any more


class BudgetSpent(ActionFailed):
    """Nothing is left of a budget; the call was not made. Trying again is vain until the period ends."""

    def __init__(self, budget: str, used: float, most: float) -> None:
        super().__init__(f"{budget} is used up ({used:g} of {most:g})", kind="budget_exhausted")
        self.budget, self.used, self.most = budget, used, most


def booking(limits: Limits) -> dict[str, float]:
    """The most that a call may use, by kind; a kind without a limit is not booked."""
    most = {"agent_time": limits.seconds, "tokens": limits.tokens, "usd": limits.usd}
    return {kind: float(amount) for kind, amount in most.items() if amount is not None}


def amounts_used(usage: Usage, limits: Limits) -> dict[str, float]:
    """What a call used, by kind. A figure that is no amount counts as all that was booked: NaN is never cheap (L21)."""
    said = {"agent_time": usage.seconds, "tokens": float(usage.tokens), "usd": usage.usd}
    booked = booking(limits)
    return {
        kind: amount if math.isfinite(amount) and amount >= 0 else booked.get(kind, 0.0)
        for kind, amount in said.items()
    }


ENDING = 3.0
"""Seconds that the end of a call may take after its time is over: they are no overshoot."""


def overshot(usage: Usage, limits: Limits) -> tuple[str, ...]:
    """The limits that a call passed before it could be stopped, in words."""
    figures = (
        ("seconds", usage.seconds, limits.seconds, ENDING),
        ("turns", usage.turns, limits.turns, 0),
        ("tokens", usage.tokens, limits.tokens, 0),
        ("usd", usage.usd, limits.usd, 0),
    )
    return tuple(
        f"{name}: {used:g} of {most:g}" for name, used, most, room in figures if most is not None and used > most + room
    )
