"""Alarms reach people: again after a failed delivery, and only through the files that were configured for them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from becket.app.daemon import tell_of_watchdog
from becket.app.keeper import RESTARTS, read_restarts, since_boot, write_restarts
from becket.app.watchdog import Watchdog, alarm_file
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import StoreDamaged
from becket.kernel.contract.store import Alert, AlertState
from becket.kernel.store import open_memory
from becket.testing.receiver import Answer, Receiver
from becket.testing.world import World

GIVES_UP = """\
version: 1
loop_id: give_up
goal: Somebody else does it.
trigger:
  - manual: {}
max_iterations: 1
deadline: 7d
stop_conditions: [never.pass]
phases:
  verify:
    objective: It never holds.
    verifiers:
      - {id: never, run: "false", in: scratch}
"""
ALERT = Alert(key="daemon_dead", text="It is dead.", state=AlertState.open, count=1, first_at=1.0, last_at=1.0)


def test_an_alarm_whose_first_delivery_failed_is_delivered_when_the_receiver_is_back(tmp_path: Path) -> None:
    """L42: a failed reaction does not mute the alarm."""
    world = World(tmp_path)
    with Receiver() as receiver:
        receiver.script(Answer(status=400), Answer(status=400), Answer())
        world.write("becket.yaml", f"version: 1\nalarms: [{{url: '{receiver.url}'}}]\n")

        async def story() -> list[bool]:
            watchdog = Watchdog(world.state, open_memory(world.clock))
            told = [await watchdog.tell(ALERT.model_copy(update={"count": number})) for number in (1, 2, 3, 4)]
            await watchdog.close()
            return told

        assert asyncio.run(story()) == [False, False, True, True]
        assert len(receiver.deliveries) == 3
    assert len(alarm_file(world.state).read_text().splitlines()) == 1


def test_an_alarm_file_is_written_where_it_was_configured_and_opens_no_folder_to_loops(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("becket.yaml", "version: 1\nalarms: [{file: alarms.jsonl}]\n")

    async def story() -> None:
        watchdog = Watchdog(world.state, open_memory(world.clock))
        assert await watchdog.tell(ALERT)
        await watchdog.close()

    asyncio.run(story())
    (line,) = (world.root / "alarms.jsonl").read_text().splitlines()
    assert json.loads(line)["payload"]["alarm"] == "daemon_dead"
    call = EffectCall(name="notify.file", target=str(world.root / "README.md"), payload={"text": "x"})
    assert world.app.effects["notify.file"].check(call) is not None


def test_alarms_handoffs_and_questions_reach_a_person_by_the_command_once_each(tmp_path: Path) -> None:
    """L42: one that fails is tried again; a watchdog that begins anew does not say it twice."""
    world = World(tmp_path, store="sqlite")
    command = 'test -e fails && exit 1; printf "%s: %s\\n" "$BECKET_TITLE" "$BECKET_TEXT" >> told'
    world.write("becket.yaml", f"version: 1\nsandbox: none\nnotify: {{command: '{command}'}}\n")
    world.loop(GIVES_UP)
    world.write("fails", "")
    now, own = world.clock(), open_memory(world.clock)

    async def tell() -> None:
        watchdog = Watchdog(world.state, own)
        await watchdog.tell(ALERT.model_copy(update={"first_at": now}))
        await watchdog.tell(ALERT.model_copy(update={"key": "old", "text": "Of last week.", "first_at": now - 700_000}))
        await watchdog.tell_people()
        await watchdog.close()

    async def story() -> None:
        await world.run("give_up")
        await tell()
        (world.root / "fails").unlink()
        await tell()
        await tell()
        await world.store.close()

    asyncio.run(story())
    alarm, *handoff = (world.root / "told").read_text().splitlines()
    assert alarm == "repo: Becket's alarm: It is dead."
    assert handoff[0].startswith("repo: give_up needs ")
    assert handoff[-1].startswith("becket handoffs show hnd_")
    assert sum("give_up needs" in line for line in handoff) == 1


def test_a_watchdog_that_does_not_stay_is_told_of_by_the_daemon_and_one_that_stays_is_well(tmp_path: Path) -> None:
    world = World(tmp_path)
    file = world.state.watchdog_restarts

    async def alert(there: bool) -> None:
        async with asyncio.timeout(60):
            while bool(await world.store.alerts((AlertState.open,))) is not there:
                await asyncio.sleep(0.01)

    async def story() -> None:
        telling = asyncio.create_task(tell_of_watchdog(world.app, every=0.01))
        write_restarts(file, replace(read_restarts(file), at=(since_boot(),) * RESTARTS))
        await alert(there=True)
        file.unlink()
        await alert(there=False)
        telling.cancel()

    asyncio.run(story())


def test_a_damaged_journal_is_not_well_because_its_first_pages_can_be_read(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    database = world.state.database

    async def story() -> None:
        watchdog = Watchdog(world.state, open_memory(world.clock))
        await watchdog.read()
        with closing(sqlite3.connect(database)) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'agent_calls'").fetchone()[0]
        whole = database.read_bytes()
        database.write_bytes(whole[:4096])
        with pytest.raises(StoreDamaged):
            await watchdog.read()
        broken = bytearray(whole)
        broken[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
        database.write_bytes(broken)
        with pytest.raises(StoreDamaged):
            await watchdog.read()
        database.write_bytes(whole)
        await watchdog.read()
        await watchdog.close()

    asyncio.run(story())
