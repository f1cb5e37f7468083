"""How it has been going, by day: added up once for each day that is over, for they do not change any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from becket.app.compose import App
from becket.kernel.contract.looking import AgentUse, EndedRuns, GateUse, RunYield, Tally
from becket.kernel.contract.run import RunStatus

MOST_DAYS = 84
WEEK = 7
OPEN_DAYS = 2
"""A call that began yesterday may still be settled."""
GREEN = (RunYield.repaired, RunYield.accepted, RunYield.green)
REPAIRED = (RunYield.repaired, RunYield.accepted)


@dataclass(frozen=True, slots=True)
class Span:
    """A day or a week of this machine's time zone, added up."""

    began_at: float
    ended: tuple[EndedRuns, ...] = ()
    agents: tuple[AgentUse, ...] = ()
    gates: GateUse = field(default_factory=GateUse)

    @property
    def date(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self.began_at))

    @property
    def time_to_green(self) -> float | None:
        """Seconds from the start of a run to its proof, on average."""
        green = [item for item in self.ended if item.brought in GREEN]
        return _share(sum(item.seconds for item in green), sum(item.runs for item in green))

    @property
    def heal_rate(self) -> float | None:
        """Of the runs that found something to repair and ended, the share that left a proven repair."""
        repaired = self.count(RunYield.repaired) + self.count(RunYield.ready)
        return _share(repaired, repaired + self._given_up())

    def _given_up(self) -> int:
        """By loops that repair: a handoff without a repair, or a failure."""
        healers = {item.loop_id for item in self.ended if item.brought is not RunYield.nothing} | {"heal"}
        ends = (RunStatus.ready_for_handoff, RunStatus.failed)
        lost = (item for item in self.ended if item.brought is RunYield.nothing and item.status in ends)
        return sum(item.runs for item in lost if item.loop_id in healers)

    @property
    def gate_time(self) -> float | None:
        return _share(self.gates.seconds, self.gates.runs)

    @property
    def flakes(self) -> float | None:
        """The share of gates that saw tests which pass and fail."""
        return _share(self.gates.flaky, self.gates.runs)

    @property
    def promoted(self) -> int:
        return sum(self.count(kind) for kind in REPAIRED)

    @property
    def usd(self) -> float | None:
        """None where nobody was paid, or nobody says what."""
        priced = any(item.usd or item.calls > item.unpriced for item in self.agents)
        return sum(item.usd for item in self.agents) if priced else None

    @property
    def usd_per_change(self) -> float | None:
        return None if self.usd is None else _share(self.usd, self.promoted)

    def count(self, brought: RunYield) -> int:
        return sum(item.runs for item in self.ended if item.brought is brought)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@dataclass
class Trends:
    """Kept by whoever shows them again and again."""

    app: App
    _known: dict[float, Tally] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def days(self, count: int) -> tuple[Span, ...]:
        """The last ones, today included, the oldest first."""
        async with self._turn:
            now = await self.app.store.now()
            edges = [_midnight(now, back) for back in range(min(count, MOST_DAYS) - 1, -2, -1)]
            pairs = reversed(tuple(pairwise(edges)))
            found = [await self._day(began, ended, back) for back, (began, ended) in enumerate(pairs)]
            self._known = {at: tally for at, tally in self._known.items() if at >= _midnight(now, MOST_DAYS + 1)}
            return tuple(reversed(found))

    async def weeks(self, count: int = MOST_DAYS // WEEK) -> tuple[Span, ...]:
        """Of seven days each; the last one ends today."""
        days = await self.days(count * WEEK)
        return tuple(together(days[first : first + WEEK]) for first in range(0, len(days), WEEK))

    async def _day(self, began: float, ended: float, back: int) -> Span:
        tally = self._known.get(began)
        if tally is None:
            tally = await self.app.store.tally(began, ended)
            await asyncio.sleep(0)  # the first look takes long, and others want to see something too
            if back >= OPEN_DAYS:
                self._known[began] = tally
        return Span(began, tally.ended, tally.agents, tally.gates)


def _midnight(now: float, back: int) -> float:
    there = time.localtime(now)
    return time.mktime((there.tm_year, there.tm_mon, there.tm_mday - back, 0, 0, 0, 0, 0, -1))


def together(spans: Sequence[Span]) -> Span:
    gates = [span.gates for span in spans]
    return Span(
        spans[0].began_at,
        tuple(item for span in spans for item in span.ended),
        tuple(item for span in spans for item in span.agents),
        GateUse(
            runs=sum(item.runs for item in gates), seconds=sum(item.seconds for item in gates),
            flaky=sum(item.flaky for item in gates),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class UseTotal:
    """What some calls used, by agent, loop or day."""

    key: str
    calls: int
    unpriced: int
    usd: float
    tokens: float
    agent_time: float


def used_by(spans: Iterable[Span], key: Callable[[Span, AgentUse], str]) -> tuple[UseTotal, ...]:
    """Added up by what `key` says; the dearest first, then the longest."""
    found: dict[str, list[AgentUse]] = {}
    for span in spans:
        for item in span.agents:
            found.setdefault(key(span, item), []).append(item)
    totals = (used(name, items) for name, items in found.items())
    return tuple(sorted(totals, key=lambda one: (-one.usd, -one.agent_time, one.key)))


def used(key: str, items: Sequence[AgentUse]) -> UseTotal:
    return UseTotal(
        key, sum(item.calls for item in items), sum(item.unpriced for item in items), sum(item.usd for item in items),
        sum(item.tokens for item in items), sum(item.agent_time for item in items),
    )  # fmt: skip
