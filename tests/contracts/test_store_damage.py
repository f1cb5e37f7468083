"""A damaged journal is named and never worked over: flipped, emptied, gone, replaced, older, another's."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_worlds import started

from becket.kernel.contract.errors import NotFound, StoreDamaged, StoreUnavailable
from becket.kernel.contract.store import Store
from becket.kernel.store import open_sqlite
from becket.kernel.store.backups import backups, make_backup, problem
from becket.kernel.store.mark import JournalMark, read_mark

Deed = Callable[[Path], object]


class Place:
    """A journal with its mark outside of its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "state"
        self.folder.mkdir()
        self.journal = self.folder / "becket.db"
        self.mark = folder / "mark.json"

    def open(self) -> Store:
        return open_sqlite(self.journal, mark=self.mark)

    def live(self, *runs: str) -> None:
        """Start runs, and close it."""

        async def story() -> None:
            store = self.open()
            for run in runs:
                await started(store, run)
            await store.close()

        asyncio.run(story())

    def known(self) -> int:
        async def story() -> int:
            store = self.open()
            try:
                return sum((await store.count_runs()).values())
            finally:
                await store.close()

        return asyncio.run(story())

    def bytes(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir()) if path.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_first_use_is_silent_and_every_start_is_marked(place: Place) -> None:
    place.live("run_a", "run_b")
    mark = read_mark(place.mark)
    assert mark is not None
    assert mark.journal > 0
    assert mark.count == 2
    assert place.known() == 2


def flip_the_header(journal: Path) -> None:
    with journal.open("r+b") as file:
        file.write(b"not a database!")


def flip_a_page(journal: Path) -> None:
    with journal.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 200)


def drop_a_table(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as raw:
        raw.execute("DROP TABLE events")


def another_program(journal: Path) -> None:
    journal.unlink()
    with closing(sqlite3.connect(journal)) as raw:
        raw.execute("CREATE TABLE customers (name TEXT)")


def made_a_folder(journal: Path) -> None:
    journal.unlink()
    journal.mkdir()


@pytest.mark.parametrize(
    "deed",
    [
        flip_the_header,
        flip_a_page,
        lambda journal: os.truncate(journal, 0),
        lambda journal: os.truncate(journal, journal.stat().st_size // 2),
        lambda journal: os.truncate(journal, 50),
        lambda journal: journal.unlink(),
        lambda journal: shutil.rmtree(journal.parent),
        drop_a_table,
        another_program,
        made_a_folder,
    ],
    ids=["header", "page", "emptied", "half", "stump", "removed", "folder gone", "no table", "foreign", "folder"],
)
def test_a_journal_that_is_not_what_it_was_is_named_and_left_alone(place: Place, deed: Deed) -> None:
    place.live("run_a")
    deed(place.journal)
    place.folder.mkdir(exist_ok=True)
    before = place.bytes()
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"becket\.db.*becket store restore") as caught:
            place.known()
        assert caught.value.exit_code == 2
    assert place.bytes() == before


def test_an_older_copy_is_told_from_the_journal(place: Place, tmp_path: Path) -> None:
    place.live("run_a")
    shutil.copy(place.journal, tmp_path / "old.db")
    place.live("run_b", "run_c")
    shutil.copy(tmp_path / "old.db", place.journal)
    with pytest.raises(StoreDamaged, match="older copy: 2 of"):
        place.open()


def test_another_journal_is_told_from_ours(place: Place, tmp_path: Path) -> None:
    place.live("run_a")
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    other.live("run_x", "run_y")
    shutil.copy(other.journal, place.journal)
    with pytest.raises(StoreDamaged, match="another journal"):
        place.open()


def test_a_journal_from_before_there_were_marks_is_taken_as_it_is(place: Place) -> None:
    asyncio.run(open_sqlite(place.journal).close())
    place.live("run_a")
    assert place.known() == 1
    mark = read_mark(place.mark)
    assert mark is not None
    assert mark.count == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"journal": "x", "count": 1}', "\0\0"])
def test_a_mark_that_cannot_be_read_does_no_harm_and_forgives_nothing(place: Place, text: str) -> None:
    place.live("run_a")
    place.mark.write_text(text)
    os.truncate(place.journal, 0)
    with pytest.raises(StoreDamaged, match="gone or empty"):
        place.open()
    shutil.rmtree(place.folder)
    place.mark.unlink()
    place.folder.mkdir()
    place.live("run_b")
    place.mark.write_text(text)
    assert place.known() == 1
    assert read_mark(place.mark) == JournalMark(json.loads(place.mark.read_text())["journal"], 1)


def replaced(journal: Path) -> None:
    shutil.copy(journal, journal.with_suffix(".copy"))
    journal.with_suffix(".copy").replace(journal)


def beside(journal: Path, end: str) -> Path:
    return journal.with_name(journal.name + end)


LIVE: dict[str, Deed] = {
    "removed": lambda journal: journal.unlink(),
    "replaced": replaced,
    "renamed": lambda journal: journal.rename(journal.with_suffix(".old")),
    "emptied": lambda journal: os.truncate(journal, 0),
    "commits removed": lambda journal: beside(journal, "-wal").unlink(),
    "index removed": lambda journal: beside(journal, "-shm").unlink(),
    "folder removed": lambda journal: shutil.rmtree(journal.parent),
    "folder renamed": lambda journal: journal.parent.rename(journal.parent.with_name("elsewhere")),
}


@pytest.mark.parametrize("how", LIVE)
def test_a_journal_that_changes_under_us_takes_nothing_more(place: Place, how: str) -> None:
    async def story() -> None:
        store = place.open()
        await started(store, "run_a")
        await asyncio.to_thread(_checkpoint, place.journal)
        await store.now()
        LIVE[how](place.journal)
        before = place.bytes() if place.folder.exists() else {}
        for work in (store.now, lambda: started(store, "run_b"), store.version_changed, store.now):
            with pytest.raises(StoreDamaged, match=r"was (removed|replaced|cut off).*becket store"):
                await work()
        await store.close()
        after = place.bytes() if place.folder.exists() else {}
        assert after.get("becket.db") == before.get("becket.db")

    asyncio.run(story())


def _checkpoint(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def zeroed(wal: Path) -> None:
    with wal.open("r+b") as file:
        file.write(bytes(wal.stat().st_size))


def emptied_and_longer_again(wal: Path) -> None:
    size = wal.stat().st_size
    os.truncate(wal, 0)
    os.truncate(wal, size + 4120)


COMMITS: dict[str, Deed] = {
    "emptied": lambda wal: os.truncate(wal, 0),
    "cut off": lambda wal: os.truncate(wal, 5000),
    "zeroed": zeroed,
    "emptied and longer again": emptied_and_longer_again,
}


@pytest.mark.parametrize("how", COMMITS)
def test_commits_that_are_lost_under_us_are_noticed_before_anything_is_decided_by_them(place: Place, how: str) -> None:
    """The connection itself would go on by what it remembers, and promote on a journal that nobody can read."""

    async def story() -> None:
        store = place.open()
        for number in range(5):
            await started(store, f"run_{number}")
        wal = beside(place.journal, "-wal")
        COMMITS[how](wal)
        before = wal.read_bytes()
        for _ in range(2):
            with pytest.raises(StoreDamaged, match=r"(cut off|written over) while it was open.*becket store"):
                await started(store, "run_x")
        assert wal.read_bytes() == before
        await store.close()

    asyncio.run(story())


def test_an_older_copy_that_is_written_over_an_open_journal_is_noticed(place: Place, tmp_path: Path) -> None:
    place.live("run_a")
    shutil.copy(place.journal, tmp_path / "old.db")

    async def story() -> None:
        store = place.open()
        await started(store, "run_b")
        await asyncio.to_thread(_checkpoint, place.journal)
        await store.now()
        await asyncio.to_thread(shutil.copyfile, tmp_path / "old.db", place.journal)
        with pytest.raises(StoreDamaged, match=r"older copy was put over it|cut off"):
            await started(store, "run_c")
        await store.close()

    asyncio.run(story())


def test_a_checkpoint_and_a_vacuum_of_another_process_are_no_damage(place: Place) -> None:
    async def story() -> None:
        store = place.open()
        for number in range(20):
            await started(store, f"run_{number}")
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript('PRAGMA wal_checkpoint; VACUUM')"
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code, str(place.journal)], check=True)
        await started(store, "run_x")
        assert await store.faults(whole=True) == ()
        await store.close()

    asyncio.run(story())
    assert place.known() == 21


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bytes_are_named_or_harmless(place: Place, seed: int) -> None:
    """Whatever was flipped: every answer is a right one, or StoreDamaged."""
    place.live(*(f"run_{number}" for number in range(10)))
    chance = random.Random(seed)
    with place.journal.open("r+b") as file:
        size = place.journal.stat().st_size
        for _ in range(40):
            file.seek(chance.randrange(size))
            file.write(chance.randbytes(8))

    assert set(asyncio.run(answers(place))) <= {"right", "named"}


async def answers(place: Place) -> list[str]:
    try:
        store = place.open()
    except StoreUnavailable:
        return ["named"]
    told = []
    for number in range(10):
        try:
            told.append("right" if (await store.get_run(f"run_{number}")).run_id == f"run_{number}" else "wrong")
        except (StoreUnavailable, NotFound):
            told.append("named")
    await store.close()
    return told


def test_a_kill_between_the_commit_and_the_mark_is_no_damage(place: Place) -> None:
    place.live("run_a")
    code = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from store_worlds import started; from becket.kernel.store import open_sqlite\n"
        "store = open_sqlite(sys.argv[2], mark=Path(sys.argv[3])); asyncio.run(started(store, 'run_b'))"
    )
    victim = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(place.journal), str(place.mark)],
        env={**os.environ, "BECKET_CRASH_AT": "mark.before"}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert victim.returncode == -signal.SIGKILL, victim.stderr
    mark = read_mark(place.mark)
    assert mark is not None
    assert mark.count == 1
    assert place.known() == 2
    place.live("run_c")
    assert place.known() == 3


def test_a_backup_is_whole_while_the_journal_is_written_to(place: Place) -> None:
    async def story() -> None:
        store = place.open()
        await started(store, "run_a")
        made = await asyncio.to_thread(make_backup, place.journal, place.folder / "backups", "asked", 3)
        await started(store, "run_b")
        assert problem(made) == ""
        assert made.path.stat().st_mode & 0o077 == 0
        with closing(sqlite3.connect(made.path)) as raw:
            assert raw.execute("SELECT COUNT(*) FROM runs").fetchone() == (1,)
        await store.close()

    asyncio.run(story())


def test_backups_are_bounded_and_a_changed_one_is_known(place: Place) -> None:
    folder = place.folder / "backups"
    for number in range(5):
        place.live(f"run_{number}")
        make_backup(place.journal, folder, "daily", 3)
    kept = backups(folder)
    assert len(kept) == 3
    with kept[0].path.open("r+b") as file:
        file.seek(kept[0].size // 2)
        file.write(b"x" * 16)
    assert problem(kept[0])
    assert not problem(kept[1])


def test_no_backup_is_made_of_a_damaged_journal(place: Place) -> None:
    place.live("run_a")
    make_backup(place.journal, place.folder / "backups", "daily", 3)
    flip_a_page(place.journal)
    with pytest.raises(StoreDamaged, match=r"becket\.db"):
        make_backup(place.journal, place.folder / "backups", "daily", 3)
    assert len(list((place.folder / "backups").iterdir())) == 1


def test_a_journal_is_copied_before_its_tables_are_changed(place: Place) -> None:
    place.live("run_a")
    with closing(sqlite3.connect(place.journal)) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '0003'")
        raw.execute("ALTER TABLE runs ADD COLUMN lost_by TEXT")
        raw.execute("CREATE INDEX ix_runs_lost ON runs (lost_by)")
        raw.execute("CREATE INDEX ix_leases_worker ON leases (worker)")
        for name in ("role", "via"):
            raw.execute(f"ALTER TABLE controls DROP COLUMN {name}")
        raw.commit()
    assert place.known() == 1
    (kept,) = backups(place.folder / "backups")
    assert kept.why == "migration"
    with closing(sqlite3.connect(kept.path)) as raw:
        assert raw.execute("SELECT version_num FROM alembic_version").fetchone() == ("0003",)
