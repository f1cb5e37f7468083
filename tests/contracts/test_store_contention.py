"""Contract of the store: many at once. Holders never overlap, nothing is started twice, a sleeper writes nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_worlds import (
    START,
    ManualClock,
    check_chain,
    claim_again,
    claimed,
    contents,
    every_store,
    make_world,
    new_run,
    note,
    recorded,
    started,
    wait_for,
    worker,
)

from becket.kernel.contract.errors import Fenced
from becket.kernel.contract.run import Move, RunStatus
from becket.kernel.contract.store import Carried, End, SignalEnd, SpendLimit, Store
from becket.kernel.store import open_sqlite

RUNS = 200
PROCESSES = 4


async def work_until_done(store: Store, worker: str, log: Callable[[str], None]) -> None:
    """Claim, say so outside, say goodbye outside, end: until no run of the group is left."""
    while True:
        ready = await store.startable(1)
        claim = await store.claim(*ready[0], worker, 30) if ready else None
        if claim is not None:
            log(f"enter {claim.run.run_id} {worker}")
            await asyncio.sleep(0)
            log(f"leave {claim.run.run_id} {worker}")
            await store.end(claim.run.run_id, claim.run.epoch, End(move=Move.complete, reason="done"))
        elif (await store.count_runs())[RunStatus.completed] == RUNS:
            return
        else:
            await asyncio.sleep(0.005)  # leaves the processor to whoever holds the lease


def check_holders(lines: list[str]) -> None:
    """Each `enter` is followed by the `leave` of the same holder; every run was held exactly once."""
    assert len(lines) == 2 * RUNS
    held = []
    for enter, leave in zip(lines[::2], lines[1::2], strict=True):
        assert enter.removeprefix("enter ") == leave.removeprefix("leave ")
        held.append(enter.split()[1])
    assert len(set(held)) == RUNS


@contextmanager
def helpers(task: str, path: Path, how_many: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that do one of the tasks below once they are let go."""
    command = [sys.executable, __file__, task, str(path)]
    made = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(how_many)
    ]
    try:
        for process in made:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield made
    finally:
        for process in made:
            process.kill()
            process.communicate()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def test_a_lease_is_never_held_twice_under_200_concurrent_starts_sqlite(tmp_path: Path) -> None:
    """Four processes start fifty runs each in one group and work them off; a log outside shows who held the lease."""
    asyncio.run(open_sqlite(tmp_path / "journal.db").close())
    with helpers("share", tmp_path, PROCESSES) as processes:
        for process in processes:
            tell(process, "go")
        for process in processes:
            process.communicate(timeout=300)
        assert [process.returncode for process in processes] == [0] * PROCESSES
    check_holders((tmp_path / "log").read_text().splitlines())

    async def whole() -> None:
        store = open_sqlite(tmp_path / "journal.db")
        for number in range(0, RUNS, 37):
            check_chain(await store.events(f"run_{number % PROCESSES}_{number // PROCESSES}"))
        await store.close()

    asyncio.run(whole())


async def _share(folder: Path, me: str) -> None:
    store = open_sqlite(folder / "journal.db")
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(RUNS // PROCESSES):
        await started(store, f"run_{me}_{number}", group="g")
    await work_until_done(store, f"w{me}", lambda line: os.write(log, f"{line}\n".encode()) and None)
    await store.close()


def test_a_lease_is_never_held_twice_under_200_concurrent_starts_postgres(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two hundred tasks over two pools of connections, the database's own clock."""
    world = make_world("postgres", tmp_path, request.config)
    world.clock = None  # type: ignore[assignment]
    lines: list[str] = []

    async def start_and_try(store: Store, number: int) -> None:
        run_id = await started(store, f"run_{number}", group="g")
        claim = await store.claim(run_id, 1, f"w{number}", 30)
        if claim is not None:
            lines.append(f"enter {run_id}")
            await asyncio.sleep(0)
            lines.append(f"leave {run_id}")
            await store.end(run_id, claim.run.epoch, End(move=Move.complete, reason="done"))

    async def whole() -> None:
        stores = (world.open(), world.open())
        await asyncio.gather(*(start_and_try(stores[number % 2], number) for number in range(RUNS)))
        await asyncio.gather(
            *(work_until_done(stores[number % 2], f"w{number}", lines.append) for number in range(PROCESSES))
        )
        for number in range(0, RUNS, 37):
            check_chain(await stores[0].events(f"run_{number}"))
        for store in stores:
            await store.close()

    asyncio.run(whole())
    check_holders([line if line.count(" ") == 2 else f"{line} w" for line in lines])


@every_store
async def test_200_concurrent_starts_with_one_key_make_one_run(store: Store, clock: ManualClock) -> None:
    """L35: check-then-set would race here."""
    same = await asyncio.gather(
        *(store.start_run(new_run(subject=f"s{number}", origin_key="event-7", group="g")) for number in range(RUNS))
    )
    assert sum(item.created for item in same) == 1
    assert len({item.run and item.run.run_id for item in same}) == 1
    subject = await asyncio.gather(*(store.start_run(new_run(subject="same")) for _ in range(50)))
    assert sum(item.created for item in subject) == 1
    dropped = await asyncio.gather(*(store.start_run(new_run(group="d", on_busy="drop")) for _ in range(50)))
    assert sum(item.created for item in dropped) == 1


@every_store
async def test_of_200_concurrent_claims_of_one_run_one_succeeds(store: Store, clock: ManualClock) -> None:
    await started(store, "run_a")
    claims = await asyncio.gather(*(store.claim("run_a", 1, f"w{number}", 30) for number in range(RUNS)))
    assert [claim.run.epoch for claim in claims if claim is not None] == [1]


@every_store
async def test_the_chain_has_no_hole_under_interleaved_writers(store: Store, clock: ManualClock) -> None:
    """L44: a claim writes its steps while people and other runs send signals to the same run."""
    claim = await claimed(store, "run_a")

    async def steps() -> None:
        for number in range(20):
            await store.record("run_a", 1, recorded(claim, f"step{number}"))

    async def signals(who: int) -> None:
        for number in range(10):
            await store.signal("run_a", "x", {"n": number}, f"{who}-{number}")
            await store.append("run_a", None, [note("a"), note("b")])

    await asyncio.gather(steps(), *(signals(who) for who in range(5)))
    events = await store.events("run_a")
    check_chain(events)
    assert len(events) == 2 + 20 + 5 * 10 * 3


@every_store
async def test_of_many_equal_signals_one_wakes_the_run(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    await store.wait("run_a", claim.run.epoch, [wait_for("go", START + 9)], {}, Carried())
    ends = await asyncio.gather(*(store.signal("run_a", "go", {}, "the same") for _ in range(40)))
    assert sorted(ends) == [SignalEnd.duplicate] * 39 + [SignalEnd.woke]


@every_store
async def test_limits_hold_when_many_book_at_once(store: Store, clock: ManualClock) -> None:
    limit = SpendLimit(name="the day's usd", kind="usd", most=10.0)
    runs = [await claimed(store) for _ in range(30)]
    booked = await asyncio.gather(
        *(store.reserve(f"k{run.run.run_id}", run.run.run_id, 1, {"usd": 1.0}, (limit,)) for run in runs)
    )
    assert booked.count(None) == 10
    assert await store.spent() == {"usd": 10.0}


@every_store
async def test_expired_leases_are_taken_over_once_while_their_holders_beat(store: Store, clock: ManualClock) -> None:
    """Take-overs, late heartbeats and the old holders' writes at the same moment: each run has one holder."""
    await store.join(worker("w1"), alone=False)
    old = [await claimed(store, f"run_old{number}", group=f"g{number}") for number in range(10)]
    for number in range(10):
        await started(store, f"run_new{number}", group=f"g{number}")
    clock.forward(31)

    async def write_late(number: int) -> str:
        try:
            await store.record(f"run_old{number}", 1, recorded(old[number], "late"))
        except Fenced:
            return "fenced"
        return "written"

    *results, _beat, _lost = await asyncio.gather(
        *(store.claim(f"run_new{number}", 1, "w2", 30) for number in range(10)),
        *(write_late(number) for number in range(10)),
        store.beat("w1", 30, {f"run_old{number}": 1 for number in range(10)}),
        store.requeue_lost(),
    )
    for number, (claim, late) in enumerate(zip(results[:10], results[10:], strict=True)):
        run = await store.get_run(f"run_old{number}")
        # Whoever came first decides; what must not be is both at work, or a write after the fence.
        assert (run.status is RunStatus.running) is (claim is None or run.epoch > 2)
        assert len(await store.steps(run.run_id)) == (late == "written")
        check_chain(await store.events(run.run_id))


def test_a_stopped_process_that_wakes_after_a_take_over_writes_nothing(tmp_path: Path) -> None:
    """L31: the process is stopped by the system, its lease expires, another goes on; then it wakes up."""
    clock_file = tmp_path / "clock"
    clock_file.write_text(str(START))
    clock = _file_clock(clock_file)
    with helpers("sleeper", tmp_path, 1) as [sleeper]:
        os.kill(sleeper.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED)
        clock_file.write_text(str(START + 31))

        async def take_over() -> dict[str, object]:
            store = open_sqlite(tmp_path / "journal.db", clock)
            assert await store.requeue_lost() == ("run_a",)
            await claim_again(store, "run_a", "w2")
            seen = await contents(store)
            await store.close()
            return dict(seen)

        before = asyncio.run(take_over())
        os.kill(sleeper.pid, signal.SIGCONT)
        said, _ = sleeper.communicate("go\n", timeout=300)
        assert said.split() == ["Fenced"] * 4

    async def look() -> dict[str, object]:
        store = open_sqlite(tmp_path / "journal.db", clock)
        seen = await contents(store)
        await store.close()
        return dict(seen)

    assert asyncio.run(look()) == before


def _file_clock(path: Path) -> Callable[[], float]:
    return lambda: float(path.read_text())


async def _sleeper(folder: Path, me: str) -> None:
    store = open_sqlite(folder / "journal.db", _file_clock(folder / "clock"))
    claim = await claimed(store, "run_a", group="g")
    print("ready", flush=True)
    sys.stdin.readline()
    for call in (
        store.record("run_a", 1, recorded(claim)),
        store.append("run_a", 1, [note("late")]),
        store.wait("run_a", 1, [wait_for("x", START + 99)], {}, Carried()),
        store.end("run_a", 1, End(move=Move.complete, reason="late")),
    ):
        try:
            await call
            print("written")
        except Fenced:
            print("Fenced")
    await store.close()


if __name__ == "__main__":
    task, where, number = sys.argv[1:]
    asyncio.run({"share": _share, "sleeper": _sleeper}[task](Path(where), number))
