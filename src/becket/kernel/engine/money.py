"""Grants for agent calls: the least of what is requested and of what run, loop, day and month budgets leave.

The sums that a grant is made from may be stale by the time it is booked: the store checks every limit again, in the
transaction that books, and whoever came second asks anew with the new sums.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from becket.kernel.contract.agent import Agents, CallFiles, Limits
from becket.kernel.contract.base import show_duration
from becket.kernel.contract.calls import (
    CALLS,
    KINDS,
    AgentCall,
    BudgetSpent,
    CallEnd,
    CallGrant,
    CallRequest,
    SettledBy,
    amounts_used,
    booking,
    counted,
    end_by_booking,
    end_by_files,
    folder_of,
    overshot,
)
from becket.kernel.contract.config import BudgetConfig, Budgets, PeriodBudgets
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import ActionFailed, StoreDamaged, StoreUnavailable
from becket.kernel.contract.run import Run
from becket.kernel.contract.spec import Budget, Phase
from becket.kernel.contract.store import SpendLimit, Store

log = logging.getLogger("becket.engine")

PATIENCE = 60.0
"""Seconds to wait for a store that cannot be written, before the step is given back."""

RACES = 8
"""As often as this, other calls may take what was about to be granted."""

LEAST = {"agent_time": 1.0, "tokens": 1.0, "usd": 1e-6}
"""Less than this of a budget is nothing."""

_PARTS = {"agent_time": 1_000, "tokens": 1, "usd": 1_000_000}
NOUN = {"agent_time": "agent time", "tokens": "token", "usd": "usd"}
OF_RUN = "this run's {} budget"

call_booked = CrashPoint("money.call_booked", "a call is booked; it is not made yet")
call_made = CrashPoint("money.call_made", "a call is over; its booking still stands for what it may have used")
call_settled = CrashPoint("money.call_settled", "what a call used is settled; its step is not written")


@dataclass(frozen=True, slots=True)
class CallingStep:
    """One attempt of one step, and the budgets that bind it."""

    run: Run
    phase: Phase
    step_id: str
    attempt: int
    seconds_left: float
    budget: Budget
    budgets: Budgets

    def call_id(self, label: str) -> str:
        """A repeated attempt, or a later life of the same one, really calls again: that is another call."""
        run = self.run
        step = f"{run.run_id}:{run.iteration}:{self.phase}:{self.step_id}"
        return f"{step}:{self.attempt}:{run.epoch}:{label}"

    def limits(self, now: float) -> tuple[SpendLimit, ...]:
        """Every budget that a call of this run counts against, the narrowest first."""
        loop, day, month = self.run.loop_id, day_of(now), month_of(now)
        own = self.budgets.loops.get(loop, PeriodBudgets())
        return (
            *_each(self.budget, OF_RUN, run_id=self.run.run_id),
            *_each(own.day, f"the {{}} budget of the loop {loop} for today", loop_id=loop, since=day),
            *_each(own.month, f"the {{}} budget of the loop {loop} for this month", loop_id=loop, since=month),
            *_each(self.budgets.day, "the {} budget of today", since=day),
            *_each(self.budgets.month, "the {} budget of this month", since=month),
        )


def day_of(now: float) -> float:
    """When the day began, by this machine's time zone."""
    return _midnight(now).timestamp()


def month_of(now: float) -> float:
    return _midnight(now).replace(day=1).timestamp()


def _midnight(now: float) -> datetime:
    local = datetime.fromtimestamp(now)  # noqa: DTZ006 - without a zone it is the machine's, and its summer time
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _each(
    budget: Budget | BudgetConfig, words: str, *, run_id: str | None = None, loop_id: str | None = None,
    since: float = 0.0,
) -> Iterator[SpendLimit]:  # fmt: skip
    for kind in KINDS:
        most: float | None = getattr(budget, kind)
        if most is not None:
            name = words.format(NOUN[kind])
            yield SpendLimit(name=name, kind=kind, most=most, run_id=run_id, loop_id=loop_id, since=since)


async def begin(store: Store, step: CallingStep, request: CallRequest) -> CallGrant:
    for _ in range(RACES):
        now = await store.now()
        limits = step.limits(now)
        granted, cut_by = allow(request, await _left(store, limits), step.seconds_left)
        call = AgentCall(
            call_id=step.call_id(request.label), run_id=step.run.run_id, loop_id=step.run.loop_id,
            iteration=step.run.iteration, phase=step.phase, step_id=step.step_id, agent=request.agent,
            driver=request.driver, model=request.model, limits=granted, began_at=now,
        )  # fmt: skip
        taken = await store.begin_call(call, step.run.epoch, booking(granted), limits)
        if taken is None:
            call_booked()
            return CallGrant(call_id=call.call_id, limits=granted, cut_by=cut_by)
    raise ActionFailed(f"others keep taking what is left of {taken}", kind="budget_contended", retryable=True)


async def end(store: Store, grant: CallGrant, ended: CallEnd) -> None:
    call_made()
    amounts = amounts_used(ended.usage, grant.limits)
    usage = ended.usage.model_copy(update={"seconds": amounts["agent_time"], "usd": amounts["usd"]})
    settled = {
        "usage": usage,
        "over": ended.over or overshot(usage, grant.limits),
        "by": ended.by if usage == ended.usage else SettledBy.booking,
    }
    await _settle(store, grant.call_id, ended.model_copy(update=settled), amounts)
    call_settled()


async def _settle(store: Store, call_id: str, ended: CallEnd, amounts: dict[str, float]) -> None:
    """Now, or when the store is back: what a call used is known here and, before this, nowhere else."""
    delay, until = 0.2, time.monotonic() + PATIENCE
    while True:
        try:
            return await store.end_call(call_id, ended, amounts)
        except StoreDamaged:
            raise
        except StoreUnavailable as error:
            if time.monotonic() > until:
                raise  # the booking stands; whoever does the step again settles it by the call's files
            log.warning("%s; what a call used is not lost, trying again in %.1f s", error, delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 5.0)


async def left_open(store: Store, step: CallingStep) -> tuple[AgentCall, ...]:
    """Calls of this step that began in an earlier life or attempt of it and whose end nobody saw, oldest first."""
    place = (step.run.iteration, step.phase, step.step_id)
    own = step.call_id("")
    return tuple(
        call
        for call in reversed(await store.calls(step.run.run_id))
        if call.end is None and (call.iteration, call.phase, call.step_id) == place and not call.call_id.startswith(own)
    )


async def settle_left_open(store: Store, agents: Callable[[], Agents], folder: Path, run_id: str) -> None:
    """Of a run that is over, before its `folder` goes: no later life of a step will settle its calls any more.

    None stays open: without its folder, a call that was made looks like one that never began.
    """
    for call in await store.calls(run_id):
        if call.end is None:
            files = CallFiles(folder / CALLS / folder_of(run_id, call.call_id))
            told = None
            with suppress(ActionFailed):  # nobody knows agents here
                told = end_by_files(call, agents(), files)
            ended = counted(told, call.limits, untold=False, in_usd=True) if told is not None else end_by_booking(call)
            await end(store, call.grant, ended)


async def surely_spent(store: Store, run_id: str) -> dict[str, float]:
    """What a run used, without the bookings of calls whose end nobody saw.

    For a moment in which none is at work: the step that such a call belongs to must begin in order to settle it.
    """
    sums = await store.spent(run_id=run_id)
    for call in await store.calls(run_id):
        for kind, amount in booking(call.limits).items() if call.end is None else ():
            sums[kind] = sums.get(kind, 0.0) - amount
    return sums


Left = Sequence[tuple[SpendLimit, float]]
"""Budgets, each with what is used of it."""


async def _left(store: Store, limits: Sequence[SpendLimit]) -> Left:
    sums: dict[tuple[str | None, str | None, float], dict[str, float]] = {}
    for limit in limits:
        where = (limit.run_id, limit.loop_id, limit.since)
        if where not in sums:
            sums[where] = await store.spent(*where)
    return [(one, sums[one.run_id, one.loop_id, one.since].get(one.kind, 0.0)) for one in limits]


def allow(request: CallRequest, left: Left, seconds_left: float) -> tuple[Limits, tuple[str, ...]]:
    """What the call may use, and which budgets cut it short. Raises BudgetSpent."""
    asked = request.limits
    granted: dict[str, float | None] = {"agent_time": asked.seconds, "tokens": asked.tokens, "usd": asked.usd}
    cut_by: dict[str, str] = {}
    for limit, spent in left:
        room = _portion(limit, spent, request.share)
        known = granted[limit.kind]
        if known is None or room < known:
            granted[limit.kind] = room
            cut_by[limit.kind] = f"{limit.name} ({_shown(limit.kind, room)})"
    seconds = granted["agent_time"] or 0.0
    if seconds > (time_left := max(seconds_left, LEAST["agent_time"])):
        seconds = _floor("agent_time", time_left)
        cut_by["agent_time"] = f"the time that is left for this step ({_shown('agent_time', seconds)})"
    tokens, usd = granted["tokens"], granted["usd"]
    limits = Limits(seconds=seconds, turns=asked.turns, tokens=None if tokens is None else int(tokens), usd=usd)
    return limits, tuple(cut_by.values())


def _portion(limit: SpendLimit, spent: float, share: float) -> float:
    """This call's share of what is left of one budget, but never so little that it could do nothing with it."""
    whole = _floor(limit.kind, limit.most - spent)
    if whole < LEAST[limit.kind]:
        raise BudgetSpent(limit.name, spent, limit.most)
    return max(_floor(limit.kind, share * whole), LEAST[limit.kind])


def _floor(kind: str, amount: float) -> float:
    """Rounded down to milliseconds, whole tokens and millionths of a dollar; 0.3 - 0.1 is 0.2, whatever floats say."""
    return math.floor(amount * _PARTS[kind] + 1e-7) / _PARTS[kind]


def _shown(kind: str, amount: float) -> str:
    return show_duration(amount) if kind == "agent_time" else f"{amount:g} {kind}"
