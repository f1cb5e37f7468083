"""Contract of the store: how a journal is made, found, migrated and refused."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from store_worlds import World, agent_call, claimed, make_world, postgres_of, question, recorded, started, worker

from becket.kernel.contract.caller import Via
from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.errors import StoreUnavailable, UsageError
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import Carried, Control, RunFilter, Store
from becket.kernel.store import open_postgres, open_sqlite
from becket.kernel.store.schema import MIGRATIONS, REVISIONS, migrate, version_of
from becket.kernel.store.tables import VERSION, metadata
from becket.testing.people import person


def sqlite_shape(conn: sa.Connection) -> dict[str, Any]:
    """What SQLite itself says about every table and index; index texts include the conditions of partial ones."""
    names = sa.inspect(conn).get_table_names()
    columns = {name: conn.exec_driver_sql(f"PRAGMA table_xinfo({name})").all() for name in names}
    indexes = conn.exec_driver_sql("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index'").all()
    auto = conn.exec_driver_sql("SELECT count(*) FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'").all()
    return {"columns": columns, "indexes": sorted(indexes, key=str), "auto": auto}


def postgres_shape(conn: sa.Connection) -> dict[str, Any]:
    def rows(query: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in conn.exec_driver_sql(query)), key=str)

    return {
        "columns": rows(
            # By rank: the number of a dropped column is not given again.
            "SELECT table_name, rank() OVER (PARTITION BY table_name ORDER BY ordinal_position), column_name, "
            "data_type, is_nullable, column_default, is_identity "
            "FROM information_schema.columns WHERE table_schema = 'public'"
        ),
        "indexes": rows("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"),
        "constraints": rows(
            "SELECT conname, conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace"
        ),
    }


def shapes(made: str, migrated: str, shape: Callable[[sa.Connection], dict[str, Any]]) -> tuple[Any, Any]:
    """Of a journal made at once, and of one built by the migrations."""
    found = []
    for url, build in ((made, False), (migrated, True)):
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.connect() as conn:
            if build:
                migrate(conn, VERSION)
                conn.commit()
            found.append(shape(conn))
            assert conn.exec_driver_sql("SELECT version_num FROM alembic_version").all() == [(VERSION,)]
        engine.dispose()
    return found[0], found[1]


def test_migrations_build_what_the_tables_say_sqlite(tmp_path: Path) -> None:
    asyncio.run(open_sqlite(tmp_path / "made.db").close())
    made, migrated = shapes(f"sqlite:///{tmp_path}/made.db", f"sqlite:///{tmp_path}/migrated.db", sqlite_shape)
    assert set(made["columns"]) == {*metadata.tables, "alembic_version"}
    assert made == migrated


def test_migrations_build_what_the_tables_say_postgres(request: pytest.FixtureRequest) -> None:
    server = postgres_of(request.config)
    made, migrated = shapes(
        *(
            url.replace("postgresql:", "postgresql+psycopg:")
            for url in (server.fresh_database(), server.empty_database())
        ),
        shape=postgres_shape,
    )
    assert len(made["columns"]) > 200
    assert made == migrated


def test_every_migration_is_known_in_order() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(MIGRATIONS))
    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == REVISIONS
    assert REVISIONS[-1] == VERSION


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_journal_outlives_its_process(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = make_world(kind, tmp_path, request.config)

    async def write() -> None:
        store = world.open()
        await claimed(store, "run_a")
        await store.close()

    async def read() -> None:
        store = world.open()
        assert (await store.get_run("run_a")).epoch == 1
        await store.close()

    asyncio.run(write())
    asyncio.run(read())


def change_version(world: World, version: str) -> None:
    engine = engine_of(world)
    with engine.begin() as conn:
        conn.execute(sa.text("UPDATE alembic_version SET version_num = :version"), {"version": version})
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_journal_of_a_newer_becket_is_refused(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = make_world(kind, tmp_path, request.config)
    asyncio.run(world.open().close())
    change_version(world, "9999")
    with pytest.raises(StoreUnavailable, match=r"version 9999.*upgrade Becket") as caught:
        world.open()
    assert caught.value.exit_code == 2


def engine_of(world: World) -> sa.Engine:
    url = world.place.replace("postgresql:", "postgresql+psycopg:") if world.kind == "postgres" else ""
    return sa.create_engine(url or f"sqlite:///{world.place}", poolclass=sa.NullPool)


def rows_of(conn: sa.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that the journal really has, but for the columns that a later revision drops."""
    found = sa.MetaData()
    found.reflect(conn)
    return {
        name: sorted((tuple(row) for row in conn.execute(sa.select(*_kept(table)))), key=repr)
        for name, table in found.tables.items()
    }


DROPPED = {"lost_by"}


def _kept(table: sa.Table) -> list[sa.Column[Any]]:
    return [column for column in table.columns if column.name not in DROPPED]


async def _lived_in(store: Store) -> None:
    """A journal with something in most tables."""
    claim = await claimed(store, "run_a", group="g", origin_key="o")
    await started(store, "run_b", parent="run_a")
    await store.record("run_a", 1, recorded(claim))
    await store.next_iteration("run_a", 1, Carried(last="x"), True)
    origin, call = Origin(run_id="run_a"), EffectCall(name="http.post", target="u")
    await store.intend("k", origin, 1, call, "d", EffectClass.keyed, EffectState.intended, 1.0)
    await store.reserve("k", "run_a", 1, {"usd": 1.5}, ())
    await store.ask_approval("run_a", 1, question())
    await store.join(worker("w1"), alone=True)
    await store.raise_alert("a", "text", {})


def journal_of_0001(kind: str, folder: Path, config: pytest.Config) -> tuple[World, dict[str, list[tuple[Any, ...]]]]:
    """A journal as the first revision makes it, lived in; with its rows. Its tables hold the same as today's."""
    place = postgres_of(config).empty_database() if kind == "postgres" else str(folder / "old.db")
    new, old = make_world(kind, folder, config), World(kind, place)
    new.play(lambda store, _: _lived_in(store))
    source, target = engine_of(new), engine_of(old)
    with source.connect() as made, target.begin() as conn:
        migrate(conn, "0001")
        for name in sa.inspect(conn).get_table_names():
            if name != "alembic_version" and (rows := made.execute(sa.select(metadata.tables[name])).all()):
                conn.execute(sa.insert(metadata.tables[name]), [dict(row._mapping) for row in rows])
        before = rows_of(conn)
    source.dispose()
    target.dispose()
    return old, before


def rows_now(world: World) -> dict[str, list[tuple[Any, ...]]]:
    engine = engine_of(world)
    with engine.connect() as conn:
        seen = rows_of(conn)
    engine.dispose()
    return seen


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_journal_of_the_first_revision_is_migrated_with_all_it_holds(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    world, before = journal_of_0001(kind, tmp_path, request.config)
    assert before["alembic_version"] == [("0001",)]
    assert sum(map(bool, before.values())) > 12
    asyncio.run(world.open().close())
    assert rows_now(world) == {**before, "alembic_version": [(VERSION,)], "agent_calls": []}

    async def go_on(store: Store, _: object) -> None:
        assert (await store.get_run("run_a")).status is RunStatus.running
        await store.begin_call(agent_call("c1", "run_a"), 1, {"usd": 0.5}, ())
        assert await store.spent(run_id="run_a") == {"usd": 2.0}

    world.play(go_on)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_brake_from_before_it_said_who_may_set_it_stands(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    world, _ = journal_of_0001(kind, tmp_path, request.config)
    engine = engine_of(world)
    with engine.begin() as conn:
        conn.execute(sa.text("INSERT INTO controls (scope, set_by, note, at) VALUES ('all', 'ann', 'lunch', 7.0)"))
    engine.dispose()

    async def story(store: Store, _: object) -> None:
        old = Control(scope="all", by="ann", note="lunch", at=7.0)
        assert await store.controls() == (old,)
        (_, new) = await store.set_control("loop:heal", True, person("bob", "member", Via.chat), "")
        assert (new.by, new.role, new.via) == ("bob", "member", Via.chat)

    world.play(story)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_migration_loses_nothing_and_is_done_by_the_next_process(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A kill -9 with the new tables made and the transaction open: the journal is as it was."""
    world, before = journal_of_0001(kind, tmp_path, request.config)
    command = [sys.executable, __file__, world.kind, world.place]
    victim = subprocess.run(command, input="go\n", text=True, capture_output=True, timeout=300, check=False,
                            env={**os.environ, "BECKET_CRASH_AT": "schema.migrated"})  # fmt: skip
    assert victim.returncode == -signal.SIGKILL, victim.stderr
    assert rows_now(world) == before
    asyncio.run(world.open().close())
    assert rows_now(world) == {**before, "alembic_version": [(VERSION,)], "agent_calls": []}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_becket_of_the_first_revision_refuses_this_journal(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    world = make_world(kind, tmp_path, request.config)
    asyncio.run(world.open().close())
    engine = engine_of(world)
    with engine.connect() as conn, pytest.raises(StoreUnavailable, match=f"of version {VERSION}.*up to 0001; upgrade"):
        version_of(conn, known=("0001",))
    engine.dispose()


def test_an_unreachable_postgres_is_said_plainly_and_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is it running") as caught:
        open_postgres(f"postgresql://becket:secret@/x?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_a_postgres_that_goes_away_is_said_plainly(request: pytest.FixtureRequest) -> None:
    """The connections of this database are ended and it is gone: an error with advice, not a stack of the driver."""
    server = postgres_of(request.config)
    url = server.fresh_database()

    async def story() -> None:
        store = open_postgres(url)
        await started(store)
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {sa.make_url(url).database} WITH (FORCE)")
        with pytest.raises(StoreUnavailable, match="does not exist"):
            await started(store)
        await store.close()

    asyncio.run(story())


def test_a_lost_connection_is_replaced(request: pytest.FixtureRequest) -> None:
    server = postgres_of(request.config)
    url = server.fresh_database()

    async def story() -> None:
        store = open_postgres(url)
        await started(store, "run_a")
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (sa.make_url(url).database,),
            )
        assert (await store.get_run("run_a")).run_id == "run_a"
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize(("url", "words"), [("mysql://x/y", "SQLite or Postgres"), ("no url", "is not a URL")])
def test_a_wrong_database_url_is_a_usage_error(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_postgres(url)


def test_a_file_that_is_no_journal_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_text("this is not a database, but it is long enough to look like one" * 50)
    with pytest.raises(StoreUnavailable, match=r"j\.db"):
        open_sqlite(tmp_path / "j.db")
    with pytest.raises(StoreUnavailable, match="no-such-folder"):
        open_sqlite(tmp_path / "no-such-folder" / "j.db")


def test_a_journal_is_for_its_owner_alone(tmp_path: Path) -> None:
    """L25: it holds what agents and tests said. WAL and index files beside it too."""

    async def story() -> None:
        store = open_sqlite(tmp_path / "j.db")
        await started(store)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == {"j.db": 0o600, "j.db-wal": 0o600, "j.db-shm": 0o600}
        await store.close()

    asyncio.run(story())


def test_sqlite_commits_are_on_disk(tmp_path: Path) -> None:
    async def story() -> None:
        store = open_sqlite(tmp_path / "j.db")

        def pragmas(tx: Any) -> list[Any]:
            return [tx.conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]

        assert await store._db.read(pragmas) == ["wal", 2]  # type: ignore[attr-defined]
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_processes_may_open_a_new_journal_at_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    world = World(kind, str(tmp_path / "j.db"))
    if kind == "postgres":
        world.place = postgres_of(request.config).empty_database()
    command = [sys.executable, __file__, world.kind, world.place]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=300)[0] for process in processes] == ["opened\n"] * 4

    async def look() -> None:
        store = world.open()
        assert sum((await store.count_runs()).values()) == 4
        await store.close()

    asyncio.run(look())


def test_importing_the_package_costs_neither_sqlalchemy_nor_alembic_nor_psycopg() -> None:
    """Start-up: quick verbs do not pay for the journal; opening an up-to-date one does not pay for migrations."""
    look = "print([name for name in ('sqlalchemy', 'alembic', 'psycopg', 'greenlet') if name in sys.modules])"
    first = f"import sys, becket.kernel.store; {look}"
    second = f"import sys, asyncio; from becket.kernel.store import open_memory; open_memory(); {look}"
    for code, allowed in ((first, "[]"), (second, "['sqlalchemy']")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == allowed


def test_what_a_dispatcher_asks_all_the_time_is_answered_by_indexes(tmp_path: Path) -> None:
    """Ten thousand waiting runs cost nothing: no question reads every run or every wait."""
    asked: list[str] = []

    async def story() -> None:
        store = open_sqlite(tmp_path / "j.db")
        await claimed(store, "run_a", group="g")
        await started(store, "run_b", group="g")
        raw = store._db._raw  # type: ignore[attr-defined]
        raw.set_trace_callback(asked.append)
        for ask in (store.next_due, store.wake_due, store.startable, store.requeue_lost, store.unfollowed,
                    store.due_effects):  # fmt: skip
            await ask()
        await store.at_work("w1")
        await store.claim("run_b", 1, "w2", 30)
        await store.signal("run_a", "x", {}, "s")
        await store.list_runs(RunFilter(statuses=(RunStatus.running,), limit=1))
        raw.set_trace_callback(None)
        plans = {
            query: [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {query}")]
            for query in asked
            if query.startswith(("SELECT", "UPDATE", "DELETE"))
        }
        assert len(plans) > 15
        whole = {
            query: plan
            for query, plan in plans.items()
            if any(line in ("SCAN runs", "SCAN other", "SCAN wakeups", "SCAN effects", "SCAN signals") for line in plan)
        }
        assert whole == {}
        await store.close()

    asyncio.run(story())


async def _open_and_start(kind: str, place: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    store = open_sqlite(place) if kind == "sqlite" else open_postgres(place)
    await started(store, f"run_{os.getpid()}")
    await store.close()
    print("opened", flush=True)


if __name__ == "__main__":
    asyncio.run(_open_and_start(*sys.argv[1:]))
