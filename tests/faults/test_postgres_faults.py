"""The same stories on a real Postgres that fails as such servers do. What is raised is raised by the server itself."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from fault_world import TTL, FaultWorld, write_loops
from faulty_store import FaultyDatabase, Plan
from properties import broken
from store_cases import STORIES, play_out
from store_worlds import Postgres, postgres_of
from virtual_time import VirtualLoop, play

from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.store.postgres import PostgresDatabase
from becket.kernel.store.steady import SteadyClock

pytestmark = pytest.mark.slow

WIDE = os.environ.get("BECKET_MATRIX") == "wide"
SEED = int(os.environ.get("BECKET_SEED", "1"))
LENGTH = {"heal": 300, "parcel": 500}
"""About so many calls they have."""

_ENDS = "SELECT pg_terminate_backend(pg_backend_pid())"
_RACE = "DO $$ BEGIN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END $$"


class Way(StrEnum):
    cut = "cut"  # the server ends our connection before the commit
    answer_lost = "answer_lost"
    race = "race"  # a serialization failure, three times; then it goes through
    races = "races"  # and one that never goes through
    restart = "restart"
    slow = "slow"  # the answer comes after more than a lease; the process goes on meanwhile


class FaultyPostgres(FaultyDatabase):
    """The server is real, and so are its errors."""

    server: Postgres

    async def _call(self, do: Callable[..., Any], work: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        way = self.plan.next(work.__name__, self.clock())
        if way is Way.restart:
            self.server.restart()
        if way is Way.slow:
            await asyncio.sleep(2.5 * self.plan.ttl)
        if way in (None, Way.restart, Way.slow):
            return await do(work, *args, **kwargs)
        if way is Way.answer_lost:
            await do(work, *args, **kwargs)
            raise StoreUnavailable("the connection was lost after the commit")
        statement, times = {Way.cut: (_ENDS, 1), Way.race: (_RACE, 3), Way.races: (_RACE, 100)}[Way(way)]
        return await do(_failing(work, statement, times), *args, **kwargs)


def _failing(work: Callable[..., Any], statement: str, times: int) -> Callable[..., Any]:
    left = times

    def fails(tx: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal left
        result = work(tx, *args, **kwargs)
        if left:
            left -= 1
            tx.conn.exec_driver_sql(statement)
        return result

    fails.__name__ = work.__name__
    return fails


class PostgresHouse(FaultWorld):
    """Its journal is on a server."""

    server: Postgres

    def faulty(self, inner: Any) -> FaultyDatabase:
        made = FaultyPostgres(inner, self.plan, self.loop.clock, self.loop.block)
        made.server = self.server
        return made


def case(server: Postgres, story: str, faults: Mapping[int, Way]) -> tuple[list[str], Plan]:
    PostgresHouse.server = server
    url = server.fresh_database()

    async def whole(loop: VirtualLoop) -> tuple[list[str], Plan]:
        with tempfile.TemporaryDirectory(prefix="becket-fault-") as folder:
            plan = Plan(faults, TTL)  # type: ignore[arg-type]
            database = PostgresDatabase(url, loop.clock, SteadyClock(loop.time, loop.time))
            house = PostgresHouse(Path(folder), loop, plan, database, write_loops(Path(folder)))
            problems = await play_out(house, story) or await broken(await house.scene(heals=True))
            await house.truth.close()
            return problems, plan

    return play(whole)


def held(server: Postgres, story: str, plans: list[dict[int, Way]]) -> None:
    wrong = []
    for faults in plans:
        problems, plan = case(server, story, faults)
        wrong += [f"{story} {faults} {plan.struck}: {problem}" for problem in problems]
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("way", Way)
def test_one_call_fails_on_postgres(way: Way, request: pytest.FixtureRequest) -> None:
    """One call of one story each day; with BECKET_MATRIX=wide each call of both."""
    chance = random.Random(f"{SEED} postgres {way}")
    usual = chance.choice(STORIES)
    plans = [(one, number) for one in STORIES for number in range(1, LENGTH[one])]
    for story, number in plans if WIDE else [(usual, chance.randint(1, LENGTH[usual]))]:
        held(postgres_of(request.config), story, [{number: way}])
