"""The embedded dispatcher: a hint-giver that may be late, repeated or killed, and still starts everything.

The rules of the measured prototype are held here: rows first, a bell as a hint, a slow net behind it, one timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from store_worlds import new_run, wait_for, worker

from becket.kernel.contract.errors import StoreUnavailable, WorkerDeclaredDead
from becket.kernel.contract.run import Move, RunStatus
from becket.kernel.contract.store import Carried, Claim, Cursor, End, RunFilter, Store
from becket.kernel.dispatch import embedded
from becket.kernel.dispatch.bell import MAX_PATH, Bell, ring
from becket.kernel.dispatch.embedded import DispatcherContext, EmbeddedDispatcher
from becket.kernel.store import open_sqlite
from becket.testing.clock import ManualClock
from becket.testing.people import person

TTL = 0.6


class Recorder:
    """An engine that claims a run and ends it, or does with it what its behaviour says."""

    def __init__(self, store: Store, behaviour: str = "end") -> None:
        self._store = store
        self._behaviour = behaviour
        self.seen: dict[str, float] = {}
        self.cancelled: list[str] = []
        self.interrupted: list[str] = []
        self.most = 0
        self.at_work: dict[str, int] = {}

    async def advance(self, run_id: str, segment: int) -> object:
        claim = await self._store.claim(run_id, segment, "w1", TTL)
        if claim is None:
            return None
        again = run_id in self.seen
        self.seen[run_id] = time.time()
        if not again and self._behaviour in FIRST:
            return await FIRST[self._behaviour](self._store, claim)
        self.at_work[run_id] = claim.run.epoch
        self.most = max(self.most, len(self.at_work))
        try:
            await asyncio.sleep({"sit": 30.0, "end": 0.0}.get(self._behaviour, 4 * TTL))
            await self._store.end(run_id, claim.run.epoch, End(move=Move.complete, reason="done"))
        except asyncio.CancelledError:
            self.cancelled.append(run_id)
            raise
        finally:
            del self.at_work[run_id]
        return None

    def interrupt(self, run_id: str) -> None:
        self.interrupted.append(run_id)


async def _give_back(store: Store, claim: Claim) -> None:
    await store.give_back(claim.run.run_id, claim.run.epoch)


async def _lose_the_answer(store: Store, claim: Claim) -> None:
    raise StoreUnavailable("the connection was lost after the commit")


async def _be_cancelled(store: Store, claim: Claim) -> None:
    raise asyncio.CancelledError


async def _fail_to_give_back(store: Store, claim: Claim) -> None:
    """As the engine does while the store refuses: it tries until the claim is gone."""
    while (await store.get_run(claim.run.run_id)).epoch == claim.run.epoch:
        await asyncio.sleep(0.05)


FIRST = {
    "give back": _give_back,
    "lose the answer": _lose_the_answer,
    "be cancelled": _be_cancelled,
    "fail to give back": _fail_to_give_back,
}
"""What comes of a first claim; the second one is at work for several heartbeats and then ends its run."""


@contextlib.asynccontextmanager
async def serving(
    folder: Path, behaviour: str = "end", **staff: object
) -> AsyncIterator[tuple[Recorder, Store, EmbeddedDispatcher]]:
    """A dispatcher at work on a file; the store given is another process's, as far as SQLite can tell."""
    own, other = open_sqlite(folder / "b.db"), open_sqlite(folder / "b.db")
    engine = Recorder(own, behaviour)
    bell = Bell(folder / "bell")
    facts = {"engine": engine, "store": own, "worker": worker("w1"), "ttl": TTL}
    dispatcher = EmbeddedDispatcher(DispatcherContext(**(facts | staff)), bell)  # type: ignore[arg-type]
    task = asyncio.create_task(dispatcher.serve())
    await joined(other)
    await asyncio.sleep(0.1)  # it has looked once, and sleeps
    try:
        yield engine, other, dispatcher
    finally:
        dispatcher.stop()
        with contextlib.suppress(WorkerDeclaredDead):
            await task
        bell.close()
        await own.close()
        await other.close()


async def joined(store: Store) -> None:
    async with asyncio.timeout(60):
        while not await store.workers():
            await asyncio.sleep(0.005)


async def appears(seen: dict[str, float], run_id: str) -> None:
    async with asyncio.timeout(60):
        while run_id not in seen:
            await asyncio.sleep(0.005)


async def ends(store: Store, run_id: str) -> None:
    async with asyncio.timeout(60):
        while (await store.get_run(run_id)).status is not RunStatus.completed:
            await asyncio.sleep(0.005)


@pytest.fixture
def no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but what a test is about makes the dispatcher look."""
    monkeypatch.setattr(embedded, "NET", 3600.0)
    monkeypatch.setattr(embedded, "IDLE", 3600.0)


@pytest.mark.usefixtures("no_net")
def test_a_bell_starts_at_once_what_another_process_queued(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (engine, other, _):
            await other.start_run(new_run("run_1"))
            assert ring(tmp_path / "bell")
            await appears(engine.seen, "run_1")

    asyncio.run(story())


def test_a_lost_ring_costs_a_second_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedded.NET == 1.0
    monkeypatch.setattr(embedded, "IDLE", 3600.0)

    async def story() -> None:
        async with serving(tmp_path) as (engine, other, _):
            await other.start_run(new_run("run_1"))
            await appears(engine.seen, "run_1")

    asyncio.run(story())


def test_ringing_where_nobody_listens_is_harmless(tmp_path: Path) -> None:
    assert ring(tmp_path / "nobody") is False


def test_a_bell_works_however_deep_the_repository_lies(tmp_path: Path) -> None:
    """Socket addresses hold 107 bytes; paths of people do not care."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    path = deep / "bell"
    assert len(str(path)) > MAX_PATH
    bell = Bell(path)
    assert ring(path)
    bell.drain()
    bell.close()
    assert not ring(path)


@pytest.mark.usefixtures("no_net")
def test_one_timer_wakes_a_waiting_run_when_it_is_due(tmp_path: Path) -> None:
    async def story() -> None:
        own = open_sqlite(tmp_path / "b.db")
        await own.start_run(new_run("run_1"))
        claim = await own.claim("run_1", 1, "w0", 30)
        assert claim is not None
        due = time.time() + 0.7
        await own.wait("run_1", claim.run.epoch, [wait_for("bell", due, expires=due + 60)], {}, Carried())
        await own.close()
        async with serving(tmp_path) as (engine, _, _):
            await appears(engine.seen, "run_1")
            assert engine.seen["run_1"] > due - 0.01

    asyncio.run(story())


def test_what_an_earlier_engine_left_running_is_started_again(tmp_path: Path) -> None:
    """Under the engine lock every other worker is dead: boot requeues without waiting for a lease to expire."""

    async def story() -> None:
        own = open_sqlite(tmp_path / "b.db")
        await own.join(worker("w0"), alone=True)
        await own.start_run(new_run("run_1"))
        assert await own.claim("run_1", 1, "w0", 3600) is not None
        await own.close()
        async with serving(tmp_path) as (_, other, _):
            await ends(other, "run_1")

    asyncio.run(story())


def test_a_run_that_was_taken_away_is_stopped(tmp_path: Path) -> None:
    """The heartbeat finds the claim gone; the worker's task for it ends and writes nothing more."""

    async def story() -> None:
        async with serving(tmp_path, "sit") as (engine, other, _):
            await other.start_run(new_run("run_1"))
            ring(tmp_path / "bell")
            await appears(engine.seen, "run_1")
            taken: tuple[str, ...] = ()
            while not taken:  # its heart may beat in between
                with contextlib.closing(sqlite3.connect(tmp_path / "b.db", timeout=60)) as database, database:
                    database.execute("update runs set lease_until = 0")
                taken = await other.requeue_lost()
            assert taken == ("run_1",)
            while not engine.cancelled:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize("behaviour", FIRST)
def test_whatever_comes_of_a_claim_its_run_is_taken_up_again_and_ends(tmp_path: Path, behaviour: str) -> None:
    """The same worker claims it anew, and no heartbeat takes the new claim for the old one or renews what is lost."""

    async def story() -> None:
        async with serving(tmp_path, behaviour) as (engine, other, _):
            await other.start_run(new_run("run_1", group="g"))
            await other.start_run(new_run("run_2", group="g"))
            ring(tmp_path / "bell")
            await ends(other, "run_1")
            await ends(other, "run_2")
            assert engine.cancelled == []
            assert (await other.get_run("run_1")).epoch == 3

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_person_s_cancel_of_a_run_that_nobody_is_at_work_on_ends_it(tmp_path: Path) -> None:
    """The rows say that this worker is at work on it, with a lease of an hour; it is not."""

    async def story() -> None:
        async with serving(tmp_path) as (_, other, _):
            await other.start_run(new_run("run_1"))
            assert await other.claim("run_1", 1, "w1", 3600) is not None
            await other.ask_cancel("run_1", person("me"), "enough")
            ring(tmp_path / "bell")
            while (await other.get_run("run_1")).ended_at is None:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_claim_that_fails_at_once_is_not_tried_in_circles(tmp_path: Path) -> None:
    """A full disk: every claim fails without a pause. It must not keep a core busy and fill the log."""
    tries = 0

    class Refused(Recorder):
        async def advance(self, run_id: str, segment: int) -> object:
            nonlocal tries
            tries += 1
            raise StoreUnavailable("database or disk is full")

    async def story() -> None:
        own = open_sqlite(tmp_path / "b.db")
        await own.start_run(new_run("run_1"))
        dispatcher = EmbeddedDispatcher(DispatcherContext(engine=Refused(own), store=own, worker=worker("w1"), ttl=TTL))
        task = asyncio.create_task(dispatcher.serve())
        begin = time.monotonic()
        await asyncio.sleep(1.5)
        assert 1 <= tries <= 2 + (time.monotonic() - begin) / embedded.NET
        dispatcher.stop()
        await task
        await own.close()

    asyncio.run(story())


def test_a_worker_that_is_declared_dead_ends_its_process(tmp_path: Path) -> None:
    async def story() -> None:
        own, other = open_sqlite(tmp_path / "b.db"), open_sqlite(tmp_path / "b.db")
        dispatcher = EmbeddedDispatcher(
            DispatcherContext(engine=Recorder(own), store=own, worker=worker("w1"), ttl=TTL)
        )
        task = asyncio.create_task(dispatcher.serve())
        await joined(other)
        await other.join(worker("w2"), alone=True)
        with pytest.raises(WorkerDeclaredDead):
            await asyncio.wait_for(task, 60)
        await own.close()
        await other.close()

    asyncio.run(story())


def test_stopping_gives_back_what_was_at_work(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, "sit") as (engine, other, dispatcher):
            await other.start_run(new_run("run_1"))
            ring(tmp_path / "bell")
            await appears(engine.seen, "run_1")
            dispatcher.stop()
            while (await other.get_run("run_1")).status is not RunStatus.queued:
                await asyncio.sleep(0.01)
            assert engine.cancelled == ["run_1"]

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_person_s_cancel_reaches_the_engine_at_work(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, "sit") as (engine, other, _):
            await other.start_run(new_run("run_1"))
            ring(tmp_path / "bell")
            await appears(engine.seen, "run_1")
            await other.ask_cancel("run_1", person("me"), "enough")
            ring(tmp_path / "bell")
            while not engine.interrupted:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_only_so_many_runs_are_at_work_at_once_and_all_of_them_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, at_once=3) as (engine, other, dispatcher):
            for number in range(12):
                await other.start_run(new_run(f"run_{number:02}"))
            ring(tmp_path / "bell")
            while len(await other.list_runs(RunFilter(statuses=(RunStatus.completed,)))) < 12:
                await asyncio.sleep(0.01)
            assert engine.most <= 3
            assert await dispatcher.idle() in (True, False)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_chore_or_a_resident_that_fails_stops_nobody_else(tmp_path: Path) -> None:
    """L32: trouble of one component holds up no other."""
    tried: list[str] = []

    async def broken() -> None:
        tried.append("chore")
        raise RuntimeError("broken chore")

    async def restless() -> None:
        tried.append("resident")
        raise RuntimeError("broken resident")

    async def story() -> None:
        async with serving(tmp_path, chores=[broken], residents=[restless]) as (engine, other, _):
            await other.start_run(new_run("run_1"))
            ring(tmp_path / "bell")
            await appears(engine.seen, "run_1")
            while tried.count("resident") < 2:
                await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(story(), 60))
    assert "chore" in tried


def test_an_idle_dispatcher_sleeps(tmp_path: Path) -> None:
    """Looks are caused by bells, due times and ends of runs, not by a clock."""
    looks = 0

    async def count() -> None:
        nonlocal looks
        looks += 1

    async def story() -> None:
        async with serving(tmp_path, chores=[count]):
            begin = time.monotonic()
            await asyncio.sleep(2.5)
            assert looks <= 2 + (time.monotonic() - begin) / embedded.NET

    asyncio.run(story())


def test_after_a_clock_jump_the_worker_keeps_what_it_holds(tmp_path: Path) -> None:
    """A suspended machine finds its own leases expired; nobody else had a chance to take them."""
    clock = ManualClock()

    async def story() -> None:
        own = open_sqlite(tmp_path / "b.db", clock)
        engine = Recorder(own, "sit")
        dispatcher = EmbeddedDispatcher(DispatcherContext(engine=engine, store=own, worker=worker("w1"), ttl=30.0))
        task = asyncio.create_task(dispatcher.serve())
        await own.start_run(new_run("run_1"))
        dispatcher.kick()
        await appears(engine.seen, "run_1")
        clock.advance(8 * 3600)
        dispatcher.kick()
        await asyncio.sleep(0.3)
        run = await own.get_run("run_1")
        assert (run.status, run.epoch) == (RunStatus.running, 1)
        dispatcher.stop()
        await task
        await own.close()

    asyncio.run(story())


def test_what_is_due_and_served_by_nobody_here_is_not_looked_at_in_circles(tmp_path: Path) -> None:
    """An overdue schedule under `becket run` is the daemon's; it must not keep a core busy."""
    looks = 0

    async def count() -> None:
        nonlocal looks
        looks += 1

    async def story() -> None:
        async with serving(tmp_path, chores=[count]) as (_, other, _):
            await other.fire(None, Cursor(name="schedule:x", value="x", due_at=1.0), ())
            ring(tmp_path / "bell")
            begin = time.monotonic()
            await asyncio.sleep(2.0)
            assert looks < 15 + (time.monotonic() - begin) / embedded.SHORTEST_NAP / 4

    asyncio.run(story())
