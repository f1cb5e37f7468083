"""A journal that cannot be written is named where one looks, and told of wherever it still can be."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_disk import disk, fill, make_room, mount

from becket.app.record.status import take
from becket.app.state import StateFolder
from becket.app.store_desk import backup, check, restore
from becket.app.watchdog import Watchdog, _tick
from becket.app.writing import unwritable
from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.engine.deadman import DeadManSwitch
from becket.kernel.store import open_sqlite
from becket.testing.receiver import Answer, Receiver
from becket.testing.world import World

HOLDER = """
import sqlite3, sys
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def held(state: StateFolder) -> Iterator[int]:
    command = [sys.executable, "-c", HOLDER, str(state.database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.communicate("\n")


def watched(world: World, until: str) -> list[str]:
    """Keys of the alarms that are open when `until` is among them, or is not any more."""

    async def story() -> list[str]:
        own = open_sqlite(world.state.watchdog_database)
        watchdog = Watchdog(world.state, own, tell_after=0.2)
        switch = DeadManSwitch(watchdog.read, own, watchdog.tell, certain=watchdog.certain, worked=time.monotonic)
        keys: list[str] = []
        async with asyncio.timeout(60):
            while until not in keys:
                await _tick(watchdog, switch)
                keys = [alert.key for alert in await own.alerts()]
                await asyncio.sleep(0.05)
        await own.close()
        await watchdog.close()
        return keys

    return asyncio.run(story())


def test_a_process_that_holds_the_journal_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    assert unwritable(world.state) == ""
    with held(world.state) as pid:
        said = take(world.state).unwritable
        assert f"pid {pid} (`" in said
        assert f"kill -KILL {pid}" in said
        assert watched(world, "unwritable") == ["unwritable"]
    assert unwritable(world.state) == ""


@pytest.mark.slow
def test_a_full_disk_is_named_and_told_although_nothing_can_be_recorded(tmp_path: Path) -> None:
    with disk(tmp_path / "disk") as folder, Receiver() as receiver:
        world = World(folder, store="sqlite")
        world.write("becket.yaml", f"version: 1\nalarms: [{{url: '{receiver.url}'}}]\n")
        receiver.script(*[Answer()] * 5)

        async def story() -> None:
            own = open_sqlite(world.state.watchdog_database)
            watchdog = Watchdog(world.state, own, tell_after=0.2)
            switch = DeadManSwitch(watchdog.read, own, watchdog.tell, certain=watchdog.certain, worked=time.monotonic)
            await _tick(watchdog, switch)
            fill(folder)
            async with asyncio.timeout(60):
                while not receiver.deliveries:
                    await _tick(watchdog, switch)
                    await asyncio.sleep(0.05)
            for _ in range(5):
                await _tick(watchdog, switch)
            make_room(folder)
            await own.close()
            await watchdog.close()

        assert take(world.state).unwritable == ""
        asyncio.run(story())
        fill(folder)
        assert "no bytes left" in take(world.state).unwritable
        assert len(receiver.deliveries) == 1
        make_room(folder)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["no bytes left", "read-only"])
def test_a_disk_that_takes_nothing_is_named_and_its_journal_is_not_called_damaged(tmp_path: Path, way: str) -> None:
    with disk(tmp_path / "disk") as folder:
        world = World(folder, store="sqlite")
        backup(world.state)
        asyncio.run(world.store.close())  # the last one, so that nothing lies beside the journal
        if way == "read-only":
            mount("-o", "remount,ro", str(folder))
        else:
            fill(folder)
        for look in (lambda: asyncio.run(check(world.state)), lambda: take(world.state)):
            with pytest.raises(StoreUnavailable, match=f"nothing is known to be wrong with it.*{way}") as caught:
                look()
            assert "becket store" not in str(caught.value)
        with pytest.raises((StoreUnavailable, OSError)):
            asyncio.run(restore(world.state, None))
        mount("-o", "remount,rw", str(folder))
        make_room(folder)
        assert asyncio.run(check(world.state)).ok
