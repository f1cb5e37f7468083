"""The journal is taken away, emptied, replaced or set back while Becket works, and before it starts."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_stage import wait_for
from damage_world import Shop
from test_daemon import House as DaemonHouse

from becket.app.state import holder


class House(DaemonHouse):
    """Knows its processes when their locks are gone."""

    def __init__(self, folder: Path, *loops: str) -> None:
        super().__init__(folder, *loops)
        self.seen: set[int] = set()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.release()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "repo", "greet", "slow")
    yield house
    for pid in {*house.seen, *(pid for pid in (house.watchdog, house.daemon) if pid)}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def replace_journal(shop: Shop) -> None:
    copy = shop.folder / "copy.db"
    shutil.copy(shop.paths.database, copy)
    copy.replace(shop.paths.database)


DEEDS: dict[str, Callable[[Shop], object]] = {
    "the journal removed": lambda shop: shop.paths.database.unlink(),
    "the journal replaced": replace_journal,
    "the state folder removed": lambda shop: shutil.rmtree(shop.state),
    "the state folder renamed": lambda shop: shop.state.rename(shop.folder / "elsewhere"),
    "the driver's lock removed": lambda shop: [lock.unlink() for lock in shop.paths.drivers.iterdir()],
}


@pytest.mark.parametrize(
    "deed", [deed if deed == "the journal removed" else pytest.param(deed, marks=pytest.mark.slow) for deed in DEEDS]
)
def test_an_engine_whose_ground_is_taken_away_ends_before_its_next_effect(shop: Shop, deed: str) -> None:
    """No repair is promoted that no journal records, and no new journal is made."""
    shop.becket("run", "heal")  # green: so that the repair that follows would be promoted
    shop.break_it()
    before = shop.main
    shop.hold()
    heal = shop.start("run", "heal")
    wait_for(lambda: shop.agent_waits)
    DEEDS[deed](shop)
    gone = not shop.paths.database.exists()
    shop.release()
    answer = shop.end(heal)
    assert answer.code == 2, answer.out + answer.err
    assert "cannot be trusted" in answer.err
    assert "becket store" in answer.err
    assert "internal error" not in answer.err
    assert (shop.main, shop.promoted()) == (before, [])
    assert shop.paths.database.exists() != gone
    if gone:
        assert "gone or empty" in shop.becket("run", "heal", code=2).err
        assert (shop.main, shop.paths.database.exists()) == (before, False)


@pytest.mark.slow
def test_a_journal_that_is_lost_is_restored_and_what_it_missed_is_told(shop: Shop) -> None:
    """The repair was promoted after the backup: it is named, kept, and not promoted a second time."""
    shop.becket("run", "heal")
    made = shop.json("store", "backup")
    shop.break_it()
    shop.becket("run", "heal")
    healed, keys = shop.main, shop.promoted()
    assert len(keys) == 1
    kept = shop.git("for-each-ref", "--format=%(refname)", "refs/becket/candidate")
    os.truncate(shop.paths.database, 0)
    assert "becket store restore" in shop.becket("status", code=2).err
    doctor = shop.json("doctor", code=1)
    assert ("becket store restore", True) in [
        (one["mend"], "gone or empty" in one["what"]) for one in doctor["diagnoses"] if one["name"] == "database"
    ]
    assert made["name"] in str([one["what"] for one in doctor["diagnoses"] if one["name"] == "backup"])
    restored = shop.json("store", "restore")
    assert restored["backup"] == made
    assert (Path(restored["aside"]) / "becket.db").exists()
    assert [(one["sha"], one["key"]) for one in restored["unrecorded"]["promotions"]] == [(healed, keys[0])]
    assert any(one.startswith("candidate/") for one in restored["unrecorded"]["refs"])
    checked = shop.json("store", "check", code=1)
    assert [one["what"] for one in checked["checks"] if not one["ok"]] == ["git"]
    shop.becket("run", "heal")
    assert (shop.main, shop.promoted()) == (healed, keys)
    assert set(kept.split()) <= set(shop.git("for-each-ref", "--format=%(refname)", "refs/becket").split())
    assert shop.json("store", "accept")["anew"] is False
    assert shop.json("store", "check")["ok"]


def test_a_damaged_journal_can_be_left_behind_knowingly(house: House) -> None:
    house.becket("run", "greet")
    with house.paths.database.open("r+b") as file:
        file.write(b"no database here")
    damaged = house.paths.database.read_bytes()
    for verb in (["status"], ["runs", "list"], ["run", "greet"], ["up", "--detach"]):
        assert "becket store" in house.becket(*verb, code=2).err
    assert "no backup" in house.becket("store", "restore", code=2).err
    assert house.paths.database.read_bytes() == damaged
    accepted = house.json("store", "accept")
    assert accepted["anew"] is True
    assert (Path(accepted["aside"]) / "becket.db").read_bytes() == damaged
    assert house.json("runs", "list") == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["restore.set_aside", "restore.put_back"])
def test_a_killed_restore_is_done_again(house: House, point: str) -> None:
    house.becket("run", "greet")
    made = house.json("store", "backup")
    house.becket("run", "greet")
    os.truncate(house.paths.database, 5000)
    house.becket("store", "restore", code=-signal.SIGKILL, env={"BECKET_CRASH_AT": point})
    house.becket("runs", "list", code=2)
    assert house.json("store", "restore")["backup"] == made
    assert len(house.json("runs", "list")) == 1


@pytest.mark.slow
def test_a_backup_that_is_damaged_is_passed_over(house: House) -> None:
    house.becket("run", "greet")
    good, bad = house.json("store", "backup"), house.json("store", "backup")
    with Path(bad["path"]).open("r+b") as file:
        file.seek(9000)
        file.write(b"x" * 99)
    assert "contents" in house.becket("store", "restore", bad["name"], code=2).err
    assert house.json("store", "restore")["backup"] == good


@pytest.mark.slow
def test_a_daemon_whose_state_folder_is_removed_ends_and_begins_nothing_anew(house: House) -> None:
    house.becket("run", "greet")
    house.up()
    pids = [house.daemon, house.watchdog]
    assert all(pids)
    house.seen.update(pid for pid in pids if pid)
    subprocess.run(["rm", "-rf", str(house.state)], check=True)  # files come and go in it meanwhile
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 30)
    assert not house.paths.database.exists()
    assert "becket store" in house.becket("up", "--detach", code=2).err
    assert holder(house.paths.daemon_lock) is None
    house.becket("store", "accept")
    house.up()
    house.becket("down")


@pytest.mark.slow
def test_a_damaged_journal_is_an_alarm_and_a_restored_one_is_taken_up_again(house: House) -> None:
    house.becket("run", "greet")
    house.becket("store", "backup")
    house.up()
    daemon = house.daemon
    wait_for(lambda: house.json("status")["daemon"] == daemon)
    house.paths.database.unlink()
    wait_for(lambda: not Path(f"/proc/{daemon}").exists(), 30)
    wait_for(lambda: any("becket store restore" in alarm["text"] for alarm in house.alarms()), 60)
    house.becket("down")
    house.becket("store", "restore")
    house.up()
    assert [run["status"] for run in house.runs("greet")] == ["completed"]
    house.becket("down")


@pytest.mark.slow
def test_the_store_is_not_restored_under_an_engine(house: House) -> None:
    """And the daemon makes the first backup by itself."""
    house.becket("run", "greet")
    house.up()
    wait_for(lambda: list(house.paths.backups.glob("*-daily-*")))
    assert "becket down" in house.becket("store", "restore", code=2).err
    house.becket("down")


def test_after_the_loss_of_the_whole_state_folder_heal_repairs_again(shop: Shop) -> None:
    """The test tree of before was Becket's: it is kept, and stands in nobody's way."""
    shop.becket("run", "heal")
    tree = shop.paths.resident[1]
    assert tree.exists()
    shutil.rmtree(shop.state)
    (kept,) = (Path(one) for one in [shop.json("store", "accept")["tree"]])
    assert (kept / "it.py").exists()
    shop.becket("run", "heal")  # green
    shop.break_it()
    shop.becket("run", "heal")
    assert len(shop.promoted()) == 1


def test_files_of_a_person_where_the_test_tree_belongs_are_named_and_left(shop: Shop) -> None:
    place = shop.paths.resident[1]
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine")
    assert f"mv -- {place}" in shop.becket("store", "accept").out
    assert (place / "mine.txt").exists()
