"""Tables that parts bring: made and moved on with the journal's own, and left alone while the part is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_worlds import ManualClock, World, every_world, started

from becket.kernel.contract.errors import BecketError, StoreDamaged, StoreUnavailable, UnfitTables
from becket.kernel.contract.store import Store
from becket.kernel.contract.tables import Tables, Transaction
from becket.kernel.store import open_sqlite
from becket.kernel.store.backups import backups, make_backup

_FIRST = sa.MetaData()
sa.Table("tide_marks", _FIRST, sa.Column("place", sa.Text, primary_key=True), sa.Column("height", sa.Integer))
_SECOND = sa.MetaData()
MARKS = sa.Table(
    "tide_marks",
    _SECOND,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("height", sa.Integer),
    sa.Column("at", sa.Double),
)


def add_time(conn: sa.Connection) -> None:
    conn.execute(sa.text("ALTER TABLE tide_marks ADD COLUMN at DOUBLE PRECISION"))


OLD = {"tide": Tables(_FIRST)}
NEW = {"tide": Tables(_SECOND, (add_time,))}
PERSISTENT = ("sqlite", "postgres")


def mark(tx: Transaction, place: str, height: int) -> float:
    tx.conn.execute(sa.insert(MARKS), {"place": place, "height": height, "at": tx.now})
    return tx.now


def mark_and_fall(tx: Transaction, place: str) -> None:
    mark(tx, place, 1)
    raise ZeroDivisionError


def marks(tx: Transaction) -> list[tuple[str, int]]:
    rows = tx.conn.execute(sa.select(MARKS.c.place, MARKS.c.height).order_by(MARKS.c.place))
    return [(row.place, row.height) for row in rows]


def mark_as_of_old(tx: Transaction) -> None:
    tx.conn.execute(sa.text("INSERT INTO tide_marks (place, height) VALUES ('quay', 3)"))


def _write_and_read(world: World) -> None:
    """A write is whole or has never been, goes by the journal's time, and stands beside the journal's own rows."""
    world.brought = NEW

    async def story(store: Store, clock: ManualClock) -> None:
        assert await store.write(mark, "quay", height=7) == await store.now()
        with pytest.raises(ZeroDivisionError):
            await store.write(mark_and_fall, "pier")
        assert await store.read(marks) == [("quay", 7)]
        assert await started(store)

    world.play(story)


test_a_write_is_one_transaction_of_the_journal = every_world(_write_and_read)


def _move_on(world: World) -> None:
    async def old(store: Store, clock: ManualClock) -> None:
        await store.write(mark_as_of_old)

    async def new(store: Store, clock: ManualClock) -> None:
        await store.write(mark, "pier", 9)
        assert await store.read(marks) == [("pier", 9), ("quay", 3)]

    world.brought = OLD
    world.play(old)
    world.brought = NEW
    world.play(new)


test_older_tables_are_brought_to_the_version_of_the_part = every_world(_move_on, *PERSISTENT)


def _go_and_come_back(world: World) -> None:
    async def fill(store: Store, clock: ManualClock) -> None:
        await store.write(mark, "quay", 7)

    async def without(store: Store, clock: ManualClock) -> None:
        assert await started(store)
        assert await store.faults(whole=True) == ()

    async def again(store: Store, clock: ManualClock) -> None:
        assert await store.read(marks) == [("quay", 7)]

    for brought, story in ((NEW, fill), ({}, without), (NEW, again)):
        world.brought = brought
        world.play(story)


test_the_tables_of_a_part_that_is_gone_stay_and_are_found_again = every_world(_go_and_come_back, *PERSISTENT)


def _too_old(world: World) -> None:
    async def nothing(store: Store, clock: ManualClock) -> None: ...

    world.brought = NEW
    world.play(nothing)
    world.brought = OLD
    with pytest.raises(StoreUnavailable, match=r"the part tide are of version 2, .*up to 1; upgrade that part"):
        world.open()
    world.brought = {}
    world.play(nothing)


test_tables_of_a_newer_part_are_refused_with_what_to_do = every_world(_too_old, *PERSISTENT)


def falls(conn: sa.Connection) -> None:
    add_time(conn)
    raise ZeroDivisionError("no gauge")


def knows_no_sql(conn: sa.Connection) -> None:
    add_time(conn)
    conn.execute(sa.text("ALTER TABEL tide_marks"))


@pytest.mark.parametrize("step", [falls, knows_no_sql])
def test_a_step_that_fails_changes_nothing_and_is_told_as_the_part_s_own_fault(
    tmp_path: Path, step: Callable[[sa.Connection], None]
) -> None:
    place = tmp_path / "journal.db"
    asyncio.run(open_sqlite(place, brought=OLD).close())
    told = rf"the part tide cannot be brought from version 1 to 2 \({step.__name__}\): .*Nothing was changed"
    with pytest.raises(UnfitTables, match=told) as failed:
        open_sqlite(place, brought={"tide": Tables(_SECOND, (step,))})
    assert not isinstance(failed.value, StoreDamaged)
    assert "restore" not in str(failed.value), "a backup mends no part"
    asyncio.run(open_sqlite(place, brought=NEW).close())


def test_tables_that_cannot_be_made_are_told_as_the_part_s_own_fault(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    asyncio.run(open_sqlite(place, brought=OLD).close())
    with pytest.raises(UnfitTables, match=r"the part flood cannot be made: OperationalError: .*already exists"):
        open_sqlite(place, brought={**OLD, "flood": Tables(_FIRST)})
    asyncio.run(open_sqlite(place, brought=OLD).close())


def test_a_change_that_fails_again_and_again_pushes_no_older_backup_out(tmp_path: Path) -> None:
    place, mark_file, folder = tmp_path / "journal.db", tmp_path / "mark", tmp_path / "backups"
    asyncio.run(open_sqlite(place, mark=mark_file, brought=OLD).close())
    daily = make_backup(place, folder, "daily", 2)
    for _ in range(3):
        with pytest.raises(UnfitTables):
            open_sqlite(place, mark=mark_file, brought={"tide": Tables(_SECOND, (falls,))})
    assert [one.why for one in backups(folder)] == ["migration", "daily"]
    assert backups(folder)[1].name == daily.name


def test_a_journal_is_copied_before_a_part_changes_it(tmp_path: Path) -> None:
    place, mark_file = tmp_path / "journal.db", tmp_path / "mark"
    asyncio.run(open_sqlite(place, mark=mark_file, brought=OLD).close())
    assert not backups(tmp_path / "backups"), "a new journal has nothing to lose"
    asyncio.run(open_sqlite(place, mark=mark_file, brought=NEW).close())
    assert [one.why for one in backups(tmp_path / "backups")] == ["migration"]


def test_a_part_reads_nothing_from_a_journal_that_is_damaged(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    store = open_sqlite(place, brought=NEW)
    place.rename(tmp_path / "away.db")
    with pytest.raises(StoreDamaged):
        asyncio.run(store.read(marks))
    with pytest.raises(StoreDamaged):
        asyncio.run(store.write(mark, "quay", 1))
    asyncio.run(store.close())


def test_a_part_that_asks_for_what_is_not_there_leaves_the_journal_trusted(tmp_path: Path) -> None:
    def lost(tx: Transaction) -> None:
        tx.conn.execute(sa.text("SELECT depth FROM tide_marks"))

    async def story() -> None:
        store = open_sqlite(tmp_path / "journal.db", brought=NEW)
        for ask in (store.read, store.write):
            with pytest.raises(BecketError, match="no such column: depth; mend that part"):
                await ask(lost)
        assert await started(store)
        await store.close()

    asyncio.run(story())
