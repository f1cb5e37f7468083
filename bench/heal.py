"""What a heal cycle costs, beside the polling script that people write (heal_baseline.sh): one run, ratios.

On a generated repository of 2,000 files. `--quick` takes fewer rounds; `--check` exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import culprit
from figures import Row, show

from becket.app.compose import App
from becket.app.state import StateFolder, find_state
from becket.kernel.contract.run import ENDED, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store import open_sqlite
from becket.testing.world import IDENTITY, commit_all, make_repository
from becket_lab.simulated.judge import judge
from becket_lab.simulated.play import Play
from becket_lab.simulated.project import Odds, begin, broken, module, source, truly_green

FILES = 2_000
SCRIPT = Path(__file__).with_name("heal_baseline.sh")
POLL = 2.0
FAST, SLOW = "grep -q return.1 value.py", "test -s src/d00/f00.txt"
AGENT = "sed -i s/0/1/ value.py"
GOOD = "def value():\n    return 1\n"
CONFIG = f"""\
version: 1
autonomy: merge
gates:
  fast: [{{name: check, run: "{FAST}"}}]
  slow: [{{name: whole, run: "{SLOW}"}}]
test_side: ["tests/**"]
sandbox: {{use: SANDBOX, without: [files, processes, network]}}
agents: {{fixer: {{driver: command, run: "{AGENT}", network: none}}}}
"""


def make_project(folder: Path, sandbox: str = "auto") -> Path:
    make_repository(folder)
    for number in range(FILES):
        place = folder / "src" / f"d{number // 50:02}" / f"f{number % 50:02}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"file {number}\n" * 40)
    (folder / "value.py").write_text(GOOD)
    (folder / "becket.yaml").write_text(CONFIG.replace("SANDBOX", sandbox))
    (folder / ".gitignore").write_text(".worktrees/\n")
    commit_all(folder, "two thousand files")
    return folder


def change(folder: Path, number: int, *, red: bool = False) -> str:
    """A person's commit: three files, and the bug where there shall be one."""
    for one in range(3):
        (folder / "src" / f"d{one:02}" / "f07.txt").write_text(f"change {number} {time.time_ns()}\n")
    if red:
        (folder / "value.py").write_text(f"def value():\n    return 0  # {number}\n")
    return commit_all(folder, f"change {number}")


def script_environment() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return plain | IDENTITY | {"GATE": f"{FAST}\n{SLOW}", "AGENT": AGENT}


def bare_gate(folder: Path, rounds: int) -> float:
    """What the gates themselves take: both commands, each in a shell of its own."""

    def once() -> float:
        begin_at = time.perf_counter()
        for command in (FAST, SLOW):
            subprocess.run(["sh", "-euc", command], cwd=folder, check=True)
        return time.perf_counter() - begin_at

    return statistics.median(once() for _ in range(rounds))


def cpu() -> float:
    """Of this process and of everything it started and saw the end of."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Cycles:
    """One way to heal on a repository of its own: what every cycle took, and the CPU of the green ones."""

    def __init__(self, folder: Path, once: Callable[[], Awaitable[float]]) -> None:
        self._folder = folder
        self._once = once
        self.figures: dict[str, list[float]] = {"green": [], "red": [], "cpu": []}

    async def turn(self, number: int, color: str) -> None:
        change(self._folder, number, red=color == "red")
        before = cpu()
        self.figures[color].append(await self._once())
        self.figures["cpu"] += [cpu() - before] if color == "green" else []
        if "return 1" not in (self._folder / "value.py").read_text():
            raise SystemExit(f"{self._folder.name} did not repair it")


def script_once(folder: Path) -> Callable[[], Awaitable[float]]:
    env = script_environment()

    async def once() -> float:
        begin_at = time.perf_counter()
        subprocess.run(["sh", str(SCRIPT), str(folder), "once"], env=env, check=True)  # noqa: ASYNC221 - all that runs
        return time.perf_counter() - begin_at

    return once


def becket_once(app: App) -> Callable[[], Awaitable[float]]:
    """A warm engine, as in the daemon: from the start of the run to its end, journal on disk."""

    async def once() -> float:
        begin_at = time.perf_counter()
        started = await app.intake.start(StartRequest(loop_id="heal"))
        assert started.run is not None
        await app.engine.advance(started.run.run_id, started.run.segment)
        seconds = time.perf_counter() - begin_at
        run = await app.store.get_run(started.run.run_id)
        if run.status is not RunStatus.completed:
            raise SystemExit(f"the run ended as {run.status}: {run.reason} {run.detail}")
        return seconds

    return once


async def in_turns(ways: dict[str, tuple[Path, Callable[[], Awaitable[float]]]], rounds: int) -> dict[str, Any]:
    """Every way once in every round, so that a busy moment of the machine meets them all."""
    every = {name: Cycles(folder, once) for name, (folder, once) in ways.items()}
    for _, once in ways.values():
        await once()
    for number in range(rounds):
        for color in ("green", "red"):
            for one in every.values():
                await one.turn(number, color)
    return {name: one.figures for name, one in every.items()}


async def cycles(folder: Path, rounds: int) -> dict[str, Any]:
    script = make_project(folder / "script")
    ways = {"script": (script, script_once(script))}
    apps = []
    for kind in ("auto", "none"):
        state = find_state(make_project(folder / kind, kind)).make()
        app = App(state, open_sqlite(state.database))
        await app.store.join(app.worker("daemon", time.time()), alone=True)
        ways[kind] = (folder / kind, becket_once(app))
        apps.append(app)
    told = await in_turns(ways, rounds)
    for app in apps:
        await app.store.close()
    return {"gate": bare_gate(script, rounds), "sandbox": shutil.which("bwrap") is not None, **told}


def verdicts(folder: Path, count: int) -> dict[str, list[float]]:
    """Seconds from a commit to its verdict, a daemon and the polling script at once, each on its own repository."""
    ours, theirs = make_project(folder / "daemon"), make_project(folder / "polled")
    state = find_state(ours).make()
    figures: dict[str, list[float]] = {"becket": [], "script": []}
    with daemon(state), poller(theirs) as log:
        change(ours, -1)
        change(theirs, -1)
        time.sleep(2 * POLL)
        for number in range(count):
            time.sleep(0.3 + POLL * number / count)
            mine, other = change(ours, number), change(theirs, number)
            figures["becket"].append(asyncio.run(proven_at(state, mine)) - moved_at(ours))
            figures["script"].append(told_at(log, other) - moved_at(theirs))
    return figures


def moved_at(folder: Path) -> float:
    return (folder / ".git" / "refs" / "heads" / "main").stat().st_mtime


async def proven_at(state: StateFolder, sha: str) -> float:
    """When the run's own journal says that main is proven."""
    store = open_sqlite(state.database)
    try:
        for _ in range(1200):
            for run in await store.list_runs(RunFilter(limit=3)):
                if run.subject.name == f"main@{sha}" and run.status in ENDED:
                    if run.status is not RunStatus.completed:
                        raise SystemExit(f"the run ended as {run.status}: {run.reason} {run.detail}")
                    steps = await store.steps(run.run_id)
                    return next(step.ended_at for step in steps if step.id == "settle")
            await asyncio.sleep(0.05)
    finally:
        await store.close()
    raise SystemExit(f"no verdict about {sha} within a minute")


def told_at(log: Path, sha: str) -> float:
    for _ in range(1200):
        for line in log.read_text().splitlines() if log.exists() else ():
            if line.startswith(f"{sha} green "):
                return float(line.split()[2])
        time.sleep(0.05)
    raise SystemExit(f"the script said nothing about {sha} within a minute")


@contextmanager
def daemon(state: StateFolder) -> Iterator[None]:
    becket = [sys.executable, "-m", "becket.cli"]
    subprocess.run([*becket, "up", "--detach"], cwd=state.root, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run([*becket, "down"], cwd=state.root, check=False, capture_output=True)


@contextmanager
def poller(folder: Path) -> Iterator[Path]:
    command = ["sh", str(SCRIPT), str(folder), "watch", str(POLL)]
    running = subprocess.Popen(command, env=script_environment(), start_new_session=True)
    try:
        yield folder / ".git" / "heal_baseline.log"
    finally:
        os.killpg(running.pid, 15)
        running.wait()


def trace(folder: Path, events: int) -> dict[str, Any]:
    """Runs of gate steps per commit that got its proof, on one trace; the naive gate is asked about every commit."""
    play = Play(folder, 1, 240.0)

    async def story() -> dict[str, Any]:
        await play.run(events)
        found = await judge(play)
        return {
            "whole": found.gate_runs, "selected": found.reran, "proven": found.proven, "promoted": found.promoted,
            "wrong": list(found.wrong),
        }  # fmt: skip

    ours = asyncio.run(story())
    return {"events": events, "becket": ours, "naive": naive(play)}


def naive(play: Play) -> dict[str, int]:
    """The script's loop on the same trace: newest commit, both gates, agent and both gates again, merge if it fits."""
    chance = random.Random(play.seed)
    odds, files = Odds(), dict(begin())
    left = [(at, dict(changes)) for at, changes in play.trace]
    now, told = 0.0, {"runs": 0, "proven": 0, "promoted": 0, "wrong": 0}
    while left:
        now = max(now, left[0][0])
        while left and left[0][0] <= now:
            files |= {path: text for path, text in left.pop(0)[1].items() if text is not None}
        tree, green = dict(files), False
        for _ in range(6):
            green = all(gate_says(tree, part, chance, odds) for part in (range(6), range(6, 10)))
            told["runs"] += 2
            now += play.proof
            if green or chance.random() >= 0.62:
                break
            now += chance.uniform(20.0, 240.0)
            tree |= {module(number): source("good", number, "r") for number in broken(tree)}
        moved = bool(left) and left[0][0] <= now
        told["wrong"] += green and not truly_green(tree)
        told["proven"] += green and not (moved and tree != files)
        if green and not moved and tree != files:
            files, told["promoted"] = tree, told["promoted"] + 1
    return told


def gate_says(tree: dict[str, str], part: range, chance: random.Random, odds: Odds) -> bool:
    flaked = chance.random() < odds.flake
    torn = any("# torn" in tree[module(n)] and chance.random() < 0.4 for n in part)
    return not flaked and not torn and not set(broken(tree)) & set(part)


def culprits(trials: int) -> list[dict[str, float]]:
    """At 10% false-fail, over all sizes: as bench/culprit.py has it."""

    async def both(false_pass: float) -> dict[str, float]:
        noise = culprit.ErrorRates(false_fail=culprit.BAR_AT, false_pass=false_pass)
        ours = [await culprit.score("becket", size, noise, trials) for size in culprit.SIZES]
        theirs = [await culprit.score("retry-three", size, noise, trials) for size in culprit.SIZES]
        return {
            "false_pass": false_pass, "right": min(one.right for one in ours), "runs": sum(one.runs for one in ours),
            "their_right": min(one.right for one in theirs), "their_runs": sum(one.runs for one in theirs),
        }  # fmt: skip

    return [asyncio.run(both(false_pass)) for false_pass in culprit.FALSE_PASS]


def parts(folder: Path, quick: bool) -> dict[str, Callable[[], Any]]:
    return {
        "cycles": lambda: asyncio.run(cycles(folder / "cycles", 3 if quick else 9)),
        "verdicts": lambda: verdicts(folder / "verdicts", 6 if quick else 12),
        "trace": lambda: trace(folder / "trace", 100 if quick else 600),
        "culprits": lambda: culprits(300 if quick else 1000),
    }


def table(told: dict[str, Any]) -> list[Row]:
    return [*cycle_rows(told["cycles"]), *verdict_rows(told["verdicts"]), *trace_rows(told["trace"]),
            *culprit_rows(told["culprits"])]  # fmt: skip


def cycle_rows(told: dict[str, Any]) -> list[Row]:
    gate, median = told["gate"], statistics.median
    script = {color: median(told["script"][color]) for color in ("green", "red")}
    ours = {color: median(told["auto"][color]) for color in ("green", "red")}
    bare = {color: median(told["none"][color]) for color in ("green", "red")}
    ratio = (ours["green"] - gate) / (script["green"] - gate)
    repair = ours["red"] / script["red"]
    plain = (bare["green"] - gate) / (script["green"] - gate)
    busy = {name: median(told[name]["cpu"]) for name in ("script", "auto")}
    kind = "bubblewrap" if told["sandbox"] else "no sandbox here"
    return [
        Row("both gates by themselves", _ms(gate)),
        Row("green cycle: the script (proves nothing)", _ms(script["green"])),
        Row(f"green cycle: Becket ({kind})", _ms(ours["green"]), f"{ratio:.1f}x, gates left out", "<= 5x", ratio <= 5),
        Row("green cycle: Becket (sandbox: none)", _ms(bare["green"]), f"{plain:.1f}x, gates left out"),
        Row("  CPU of it, all processes", _ms(busy["auto"]), f"the script's {_ms(busy['script'])}"),
        Row("red, repair, green: the script", _ms(script["red"])),
        Row(f"red, repair, green: Becket ({kind})", _ms(ours["red"]), f"{repair:.1f}x", "<= 20x", repair <= 20),
        Row("red, repair, green: Becket (sandbox: none)", _ms(bare["red"]), f"{bare['red'] / script['red']:.1f}x"),
    ]


def verdict_rows(told: dict[str, list[float]]) -> list[Row]:
    mine, polled = statistics.mean(told["becket"]), statistics.mean(told["script"])
    faster = polled / mine
    return [
        Row("commit to proven verdict: `becket up`, mean", _ms(mine)),
        Row(
            f"commit to verdict: the script, {POLL:g} s poll", _ms(polled), f"{faster:.1f}x ours", ">= 3x", faster >= 3
        ),
    ]


def trace_rows(told: dict[str, Any]) -> list[Row]:
    ours, theirs = told["becket"], told["naive"]
    per = (ours["whole"] / max(ours["proven"], 1), theirs["runs"] / max(theirs["proven"], 1))
    return [
        Row(
            f"gate steps per proven commit ({told['events']} commits)", f"{per[0]:.2f}",
            f"naive {per[1]:.2f}: {per[0] / per[1]:.2f}x",
        ),
        Row("  and reruns of failing tests alone", f"{ours['selected'] / max(ours['proven'], 1):.2f}"),
        Row("  repairs promoted", str(ours["promoted"]), f"naive {theirs['promoted']}"),
        Row("  wrong in the judge's eyes", str(len(ours["wrong"])), f"naive {theirs['wrong']} broken trees", "none",
            not ours["wrong"]),
    ]  # fmt: skip


def culprit_rows(told: list[dict[str, float]]) -> list[Row]:
    rows = []
    for one in told:
        ratio = one["runs"] / one["their_runs"]
        what = f"culprit, 10% false-fail, {one['false_pass']:.0%} false-pass"
        theirs = f"retry-three {one['their_right']:.1%}"
        rows.append(Row(f"{what}: right", f"{one['right']:.1%}", theirs, ">= 95%", one["right"] >= 0.95))
        rows.append(Row(f"{what}: runs", f"{one['runs']:.1f}", f"{ratio:.2f}x retry-three's", "< 1x", ratio < 1))
    return rows


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def in_child(part: str, arguments: list[str]) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, "--part", part, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{part} failed:\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--part")
    options = parser.parse_args()
    if options.part and options.folder:
        print(json.dumps(parts(options.folder, options.quick)[options.part]()))
        return 0
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="becket-bench-", dir=options.folder) as folder:
        arguments = ["--folder", folder, *(["--quick"] if options.quick else [])]
        for name in [options.part] if options.part else parts(Path(folder), options.quick):
            print(f"measuring {name} ...", file=sys.stderr)
            told[name] = in_child(name, arguments)
    if options.part:
        print(json.dumps(told[options.part], indent=1))
        return 0
    rows = table(told)
    return show(rows, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
