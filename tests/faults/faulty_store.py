"""A database that fails its n-th call: a plan of what goes wrong at the journal's waist, `read` and `write`."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from becket.kernel.store.database import Database
from becket.kernel.store.steady import SteadyClock

BUSY = 5.0  # as long as SQLite waits for a lock


class Way(StrEnum):
    """How a call fails. What the database raises is turned into our words by the adapter itself."""

    busy = "busy"  # somebody else holds the lock for longer than we wait; nothing was done
    full = "full"  # the disk is full at the commit: everything is undone
    io_before = "io_before"
    io_after = "io_after"  # it was committed, and the answer is lost
    slow_beat = "slow_beat"  # the process stands still for longer than a heartbeat
    slow_lease = "slow_lease"  # and for longer than a lease
    lost = "lost"  # nobody answers for a while: every call fails until then


_SAID = {
    Way.busy: "database is locked",
    Way.full: "database or disk is full",
    Way.io_before: "disk I/O error",
    Way.io_after: "disk I/O error",
    Way.lost: "unable to open database file",
}


@dataclass(slots=True)
class Plan:
    """What goes wrong at which call. Calls are counted from `armed` on."""

    faults: Mapping[int, Way]
    ttl: float
    armed: bool = False
    calls: int = 0
    names: list[str] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)  # what happened, for whoever reads a failure
    away_until: float = 0.0
    killed: bool = False  # the process is gone: nothing that it still tries has an effect, or an end

    def next(self, name: str, now: float) -> Way | None:
        if not self.armed:
            return None
        self.calls += 1
        self.names.append(name)
        if now < self.away_until:
            return Way.lost
        way = self.faults.get(self.calls)
        if way is not None:
            self.struck.append(f"{way} at call {self.calls} ({name})")
        if way is Way.lost:
            self.away_until = now + self.ttl / 2
        return way


@dataclass
class FaultyDatabase:
    """Implements `Database` around one that works."""

    inner: Database
    plan: Plan
    clock: Callable[[], float]
    block: Callable[[float], None]

    async def read(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._call(self.inner.read, work, args, kwargs)

    async def write(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._call(self.inner.write, work, args, kwargs)

    async def _call(self, do: Callable[..., Any], work: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if self.plan.killed:
            raise asyncio.CancelledError
        way = self.plan.next(work.__name__, self.clock())
        if way in (Way.slow_beat, Way.slow_lease):
            self.block(self.plan.ttl * (0.6 if way is Way.slow_beat else 2.5))
            way = None
        if way is None:
            return await do(work, *args, **kwargs)
        if way is Way.busy:
            self.block(BUSY)
        if way is Way.io_after:
            await do(work, *args, **kwargs)
        return await do(_failing(work, way), *args, **kwargs)

    @property
    def steady(self) -> SteadyClock:
        return self.inner.steady

    async def faults(self, whole: bool) -> tuple[str, ...]:
        return await self.inner.faults(whole)

    async def version_changed(self) -> bool:
        return await self.inner.version_changed()

    async def close(self) -> None:
        await self.inner.close()


def _failing(work: Callable[..., Any], way: Way) -> Callable[..., Any]:
    def fails(tx: Any, *args: Any, **kwargs: Any) -> Any:
        if way is Way.full:
            work(tx, *args, **kwargs)
        raise sqlite3.OperationalError(_SAID[way])

    fails.__name__ = work.__name__
    return fails


def pairs(seed: int, calls: int, count: int) -> list[dict[int, Way]]:
    """Two faults, of any two ways, at any two calls."""
    chance = random.Random(f"pairs {seed} {calls}")
    ways = list(Way)
    return [
        {first: chance.choice(ways), first + chance.randint(1, max(calls, 2)): chance.choice(ways)}
        for first in (chance.randint(1, calls) for _ in range(count))
    ]
