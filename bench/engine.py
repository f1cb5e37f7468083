"""What the engine costs, beside the physical limit and its peers: `make bench`.

Prints one table. `--quick` takes fewer rounds; `--check` exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import peers
from figures import Row, show

from becket.app.compose import App
from becket.app.serve import serve
from becket.app.state import find_state
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.run import RunStatus
from becket.kernel.dispatch.bell import Bell
from becket.kernel.dispatch.embedded import DispatcherContext, EmbeddedDispatcher
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store import open_sqlite
from becket.testing.world import commit_all, make_repository, run_git

LOOP = """\
version: 1
loop_id: {name}
goal: Be measured.
trigger: [{trigger}]
subject: "{{start}}"
max_iterations: 1
deadline: 30d
stop_conditions: [{stop}]
{more}
phases:
  act:
    objective: work
    actions:
{actions}
  verify:
    objective: look
    verifiers: [{{id: seen, uses: conditions_hold, with: {{all_of: [{stop}]}}}}]
"""


async def nothing(context: ActionContext, params: Record) -> Result:
    return Result(conditions=(Condition(name="worked"),))


async def stamp(context: ActionContext, params: Record) -> Result:
    SEEN[str(context.run.subject.fields.get("sha", context.run.run_id))] = time.time()
    return Result(conditions=(Condition(name="worked"),))


async def busy(context: ActionContext, params: Record) -> Result:
    SEEN[context.run.run_id] = time.time()
    return Result(conditions=(Condition(name="busy" if "woken" not in context.conditions else "worked"),))


SEEN: dict[str, float] = {}
RAISED = (ConditionGroup(names=("worked", "busy")),)
ACTIONS = tuple(
    ActionDef(name=f"bench.{run.__name__}", summary="measured", run=run, raises=RAISED)
    for run in (nothing, stamp, busy)
)


def make_app(folder: Path) -> App:
    if not folder.exists():
        make_repository(folder)
    state = find_state(folder).make()
    app = App(state, open_sqlite(state.database))
    actions = {**app.registry.actions, **{one.name: one for one in ACTIONS}}
    app.registry = replace(app.registry, actions=actions, signals=(*app.registry.signals, "bell"))
    return app


def write_loop(
    app: App, name: str, actions: str, trigger: str = "{manual: {}}", more: str = "", stop: str = "worked"
) -> None:
    app.state.loops.mkdir(parents=True, exist_ok=True)
    text = LOOP.format(name=name, trigger=trigger, actions=actions, more=more, stop=stop)
    (app.state.loops / f"{name}.yaml").write_text(text)


async def per_action(folder: Path, steps: int, rounds: int) -> list[float]:
    """A run of many actions minus a run of one, per action."""
    app = make_app(folder)
    for name, count in (("many", steps + 1), ("one", 1)):
        write_loop(app, name, "\n".join(f"      - {{id: a{n}, uses: bench.nothing}}" for n in range(count)))

    async def once(name: str) -> float:
        started = await app.intake.start(StartRequest(loop_id=name))
        assert started.run is not None
        begin = time.perf_counter()
        await app.engine.advance(started.run.run_id, started.run.segment)
        seconds = time.perf_counter() - begin
        assert (await app.store.get_run(started.run.run_id)).status is RunStatus.completed
        return seconds

    await once("many")
    figures = [(await once("many") - await once("one")) / steps for _ in range(rounds)]
    await app.store.close()
    return figures


async def waiting_runs(folder: Path, count: int) -> dict[str, float]:
    """Memory, idle CPU and wake latency with many runs that wait."""
    app = make_app(folder)
    more = "wait_conditions: {busy: {wake: bell, for: 20d}}"
    write_loop(app, "sleeper", "      - {id: look, uses: bench.busy}", more=more)
    worker = app.worker("daemon", await app.store.now())
    bell = Bell(app.state.bell)
    dispatcher = EmbeddedDispatcher(DispatcherContext(engine=app.engine, store=app.store, worker=worker), bell)
    app.kick = dispatcher.kick
    task = asyncio.create_task(dispatcher.serve())
    await asyncio.sleep(0.2)
    before = rss()
    runs = [await _sleeper(app) for _ in range(count)]
    while (await app.store.count_runs()).get(RunStatus.waiting, 0) < count:
        await asyncio.sleep(0.1)
    after = rss()
    await asyncio.sleep(2)
    cpu, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    await asyncio.sleep(10)
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = (used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime) / (time.perf_counter() - begin)
    by_signal = [await _wake(app, run_id, by_signal=True) for run_id in runs[:20]]
    by_deadline = [await _wake(app, run_id, by_signal=False) for run_id in runs[20:40]]
    dispatcher.stop()
    await task
    bell.close()
    await app.store.close()
    return {
        "megabytes": (after - before) / 1e6, "cpu": spent,
        "by_signal": statistics.median(by_signal), "by_deadline": statistics.median(by_deadline),
    }  # fmt: skip


async def _sleeper(app: App) -> str:
    started = await app.intake.start(StartRequest(loop_id="sleeper"))
    assert started.run is not None
    await asyncio.sleep(0)
    return started.run.run_id


async def _wake(app: App, run_id: str, *, by_signal: bool) -> float:
    """Seconds from a signal (or a due time) set by another connection until the run's action is at work."""
    SEEN.pop(run_id, None)
    code = SIGNAL if by_signal else DUE
    done = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(app.state.root), run_id, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await done.communicate()
    while run_id not in SEEN:
        await asyncio.sleep(0.001)
    return SEEN[run_id] - float(told)


SIGNAL = """
import asyncio, sys, time
from pathlib import Path
from becket.kernel.dispatch.bell import ring
from becket.kernel.store import open_sqlite
from becket.app.state import find_state
state = find_state(Path(sys.argv[1]))
async def main():
    store = open_sqlite(state.database)
    at = time.time()
    await store.signal(sys.argv[2], "bell", {}, sys.argv[2])
    ring(state.bell)
    print(at)
asyncio.run(main())
"""

DUE = """
import sqlite3, sys, time
from pathlib import Path
from becket.kernel.dispatch.bell import ring
from becket.app.state import find_state
state = find_state(Path(sys.argv[1]))
at = time.time() + 0.5
database = sqlite3.connect(state.database)
with database:
    database.execute("update wakeups set due = ? where run_id = ?", (at, sys.argv[2]))
ring(state.bell)
print(at)
"""


async def commits(folder: Path, count: int) -> tuple[list[float], list[float]]:
    """Seconds from a commit to the first action, and to the next look of a loop that polls every 2 seconds."""
    app = make_app(folder)
    more = 'concurrency: {group: "{repo}"}'
    write_loop(
        app,
        "seen",
        "      - {id: look, uses: bench.stamp}",
        trigger="{commit: {branch: main, debounce: 1ms}}",
        more=more,
    )
    commit_all(folder, "the loop")
    stop = asyncio.Event()
    task = asyncio.create_task(serve(app, "daemon", stop=stop))
    await asyncio.sleep(1.5)
    polled: dict[str, float] = {}
    ended = threading.Event()
    poller = threading.Thread(target=_poll, args=(folder, polled, ended))
    poller.start()
    ours, theirs = [], []
    for number in range(count):
        await asyncio.sleep(0.3 + 1.7 * number / count)
        (folder / "file").write_text(str(number))
        sha = await asyncio.to_thread(commit_all, folder, f"change {number}")
        at = (folder / ".git" / "refs" / "heads" / "main").stat().st_mtime
        while sha not in SEEN or sha not in polled:
            await asyncio.sleep(0.01)
        ours.append(SEEN[sha] - at)
        theirs.append(polled[sha] - at)
    ended.set()
    await asyncio.to_thread(poller.join)
    stop.set()
    await task
    await app.store.close()
    return ours, theirs


def _poll(folder: Path, polled: dict[str, float], ended: threading.Event) -> None:
    while not ended.wait(2.0):
        polled.setdefault(run_git(folder, ["rev-parse", "main"]), time.time())


def cold_start(folder: Path, rounds: int) -> dict[str, float]:
    """Whole processes, from spawn to exit."""
    app = make_app(folder)
    one = "      - {id: echo, run: 'true', in: scratch, raises: {\"0\": worked}}"
    write_loop(app, "one", one)
    commit_all(folder, "the loop")
    commands = {"--help": ["--help"], "status": ["status"], "run": ["run", "one"], "python": None}
    figures: dict[str, float] = {}
    for name, arguments in commands.items():
        command = (
            [sys.executable, "-c", "pass"] if arguments is None else [sys.executable, "-m", "becket.cli", *arguments]
        )
        figures[name] = statistics.median(_timed(command, folder) for _ in range(rounds))
    asyncio.run(app.store.close())
    return figures


def _timed(command: list[str], folder: Path) -> float:
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return time.perf_counter() - begin


def rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def in_child(part: str, arguments: list[str]) -> Any:
    """Each part in a process of its own, so that none pays for the other's imports and memory."""
    done = subprocess.run(
        [sys.executable, __file__, "--part", part, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{part} failed:\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def parts(folder: Path, quick: bool) -> dict[str, Callable[[], Any]]:
    steps, rounds = (100, 3) if quick else (300, 7)

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    return {
        "bare": lambda: peers.bare_commit(folder, steps, rounds),
        "ours": lambda: run(per_action(folder / "ours", steps, rounds)),
        "dbos": lambda: peers.dbos_step(folder, steps, rounds),
        "langgraph": lambda: peers.langgraph_step(folder, steps, rounds),
        "waiting": lambda: run(waiting_runs(folder / "waiting", 1000 if quick else 10_000)),
        "commits": lambda: run(commits(folder / "commits", 5 if quick else 12)),
        "cold": lambda: cold_start(folder / "cold", 3 if quick else 9),
    }


def table(told: dict[str, Any], quick: bool) -> list[Row]:
    bare, ours = statistics.median(told["bare"]), statistics.median(told["ours"])
    dbos, graph = statistics.median(told["dbos"]), statistics.median(told["langgraph"])
    mine, polling = statistics.mean(told["commits"][0]), statistics.mean(told["commits"][1])
    wait, cold = told["waiting"], told["cold"]
    count = "1,000" if quick else "10,000"
    return [
        Row("one bare SQLite commit (synchronous=FULL)", _ms(bare), "the physical limit"),
        Row("one journaled action", _ms(ours), f"{ours / bare:.2f}x the bare commit", "<= 3x", ours / bare <= 3),
        Row("one DBOS step", _ms(dbos), f"{dbos / ours:.1f}x ours", "> 1x", dbos > ours),
        Row("one LangGraph step (SqliteSaver, sync)", _ms(graph), f"{graph / ours:.1f}x ours", "> 1x", graph > ours),
        Row(f"{count} waiting runs: memory", f"{wait['megabytes']:.1f} MB", "", "<= 10 MB", wait["megabytes"] <= 10),
        Row(f"{count} waiting runs: idle CPU", f"{wait['cpu']:.2%} of a core", "", "<= 0.5%", wait["cpu"] <= 0.005),
        Row("wake by signal of another process", _ms(wait["by_signal"])),
        Row("wake by deadline (lateness)", _ms(wait["by_deadline"])),
        Row("commit to first action, mean", _ms(mine)),
        Row(
            "commit seen by 2 s polling, mean",
            _ms(polling),
            f"{polling / mine:.0f}x ours",
            ">= 20x",
            polling >= 20 * mine,
        ),
        Row(
            "becket --help",
            _ms(cold["--help"]),
            f"python itself: {_ms(cold['python'])}",
            "<= 250 ms",
            cold["--help"] <= 0.25,
        ),
        Row("becket status", _ms(cold["status"]), "", "<= 250 ms", cold["status"] <= 0.25),
        Row("becket run, one action", _ms(cold["run"]), "", "<= 1 s", cold["run"] <= 1.0),
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--part")
    options = parser.parse_args()
    if options.part:
        print(json.dumps(parts(options.folder, options.quick)[options.part]()))
        return 0
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="becket-bench-", dir=options.folder) as folder:
        arguments = ["--folder", folder, *(["--quick"] if options.quick else [])]
        for name in parts(Path(folder), options.quick):
            print(f"measuring {name} ...", file=sys.stderr)
            told[name] = in_child(name, arguments)
    rows = table(told, options.quick)
    return show(rows, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
