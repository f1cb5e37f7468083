"""What a call of an agent costs beside the agent's own program: the same command line by hand, and through Becket.

Against a scripted model on this machine, in turns, in one run. The overhead is the median over pairs of calls, with the
bounds between which the true one lies; where they hold the bar, nothing is said of it. `--quick` takes fewer rounds;
`--check` exits with 1 if a bar is surely missed. The programs are those of BECKET_AGENTS or .cache/agents; without
them, the fakes are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from figures import Difference, Row, show

from becket.kernel.contract.agent import Agent, CallContext, CallFiles, Limits
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import (
    ChildControl,
    ChildRef,
    ChildResult,
    ChildSpec,
    ChildWatcher,
    Holds,
    Processes,
    SandboxKind,
)
from becket.kernel.process import ContainedProcesses
from becket.parts.agents.adapters.call_environment import DriverContext
from becket.parts.agents.adapters.prices import prices_with
from becket.parts.agents.configured import made
from becket.testing.world import make_repository
from becket_lab.clis import install

BARS = {SandboxKind.bwrap: 0.150, SandboxKind.none: 0.060}
BRIEF = "Say that you are done."
KEY = "BENCH_MODEL_KEY"
SCRIPT = "- loop: [{say: Done.}]\n"
ROOT = Path(__file__).resolve().parents[1]


class Seen:
    """Remembers what was started, and how long it ran by the process adapter's own account."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.specs: list[ChildSpec] = []
        self.seconds: list[float] = []

    def holds(self) -> Holds:
        return self._processes.holds()

    async def run(
        self, spec: ChildSpec, watcher: ChildWatcher | None = None, control: ChildControl | None = None
    ) -> ChildResult:
        self.specs.append(spec)
        began = time.perf_counter()
        result = await self._processes.run(spec, watcher, control)
        self.seconds.append(time.perf_counter() - began)
        return result

    def sweep(self, children: Sequence[ChildRef]) -> list[ChildRef]:
        return self._processes.sweep(children)


@dataclass
class Bench:
    """One program in one sandbox: called by hand and through the driver, in turns."""

    program: str
    kind: SandboxKind
    folder: Path
    programs: Path
    url: str
    hand: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self.tree, self.home, self.other_home = (self.folder / name for name in ("tree", "home", "other"))
        make_repository(self.tree)
        self.other_home.mkdir()
        self.environ = {"PATH": f"{self.programs}:{os.environ['PATH']}", KEY: "key"}
        self.processes = Seen(ContainedProcesses(self.kind))

    def agent(self) -> Agent:
        model, path = ("scripted", "/v1") if self.program == "codex" else ("claude-sonnet-4-6", "")
        given = {"driver": self.program, "model": model, "endpoint": self.url + path, "key": KEY}
        driver_context = DriverContext(self.processes, (), {}, prices_with({}), self.environ, self.folder / "user")
        return made("bench", AgentConfig.model_validate(given), driver_context)

    async def through_becket(self) -> float:
        self.calls += 1
        call_context = CallContext(files=CallFiles(self.folder / "calls" / str(self.calls)), home=self.home)
        began = time.perf_counter()
        report = await self.agent().run(BRIEF, self.tree, Limits(seconds=120), call_context=call_context)
        seconds = time.perf_counter() - began
        if not report.ended or report.error or "Done." not in report.said:
            raise SystemExit(f"{self.program} in {self.kind} did not work: {report}")
        return seconds

    def by_hand(self) -> float:
        """The very command line, with its output in a file, as whoever writes a script would have it."""
        spec = self.processes.specs[-1]
        env = {"PATH": self.environ["PATH"], "HOME": str(self.other_home), "LANG": "C.UTF-8", **spec.env}
        with (self.folder / "by-hand.log").open("wb") as log:
            began = time.perf_counter()
            done = subprocess.run(
                spec.argv, cwd=spec.tree, env=env, input=spec.stdin, stdout=log, stderr=log, check=False
            )
            seconds = time.perf_counter() - began
        if done.returncode != 0:
            raise SystemExit(f"{self.program} by hand failed:\n{(self.folder / 'by-hand.log').read_text()}")
        return seconds

    def measure(self, rounds: int) -> None:
        async def in_turns() -> None:
            await self.through_becket()
            self.by_hand()
            for number in range(rounds):
                if number % 2:
                    self.hand.append(self.by_hand())
                self.ours.append(await self.through_becket())
                if not number % 2:
                    self.hand.append(self.by_hand())

        asyncio.run(in_turns())

    def rows(self) -> list[Row]:
        own, all_of_it = statistics.median(self.hand), statistics.median(self.ours)
        beyond = Difference.of(self.ours, self.hand)
        sureness = f"{beyond.low * 1000:.0f} to {_ms(beyond.high)}{': noise exceeds it' if beyond.noisy else ''}"
        inside = statistics.median(self.processes.seconds[-len(self.ours) :])
        name = "bubblewrap" if self.kind is SandboxKind.bwrap else "no sandbox"
        bar = BARS[self.kind]
        return [
            Row(f"{self.program}: by hand, flags for {name}", _ms(own)),
            Row(
                f"{self.program}: through Becket, {name}",
                _ms(all_of_it),
                f"{_ms(all_of_it - inside)} outside the child",
            ),
            Row(
                f"{self.program}: our overhead, {name}",
                _ms(beyond.median),
                sureness,
                f"<= {_ms(bar)}",
                beyond.within(bar),
            ),
        ]


@contextmanager
def model_at_work(folder: Path) -> Iterator[str]:
    """In a process of its own, so that what it does is not taken for our time."""
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "becket.testing.model", str(script)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def find_programs(folder: Path) -> tuple[Path, bool]:
    """Where codex and claude are, and whether they are the real ones."""
    for place in (Path(os.environ.get("BECKET_AGENTS") or "/nowhere"), ROOT / ".cache/agents/node_modules/.bin"):
        if all((place / name).exists() for name in ("codex", "claude")):
            return place, True
    install(folder / "bin")
    return folder / "bin", False


def measured(folder: Path, rounds: int) -> list[Row]:
    programs, real = find_programs(folder)
    if not real:
        print("the real programs are not installed (`make .cache/agents/.installed`): these are the FAKES' figures")
    kinds = [SandboxKind.none, *([SandboxKind.bwrap] if shutil.which("bwrap") else [])]
    if SandboxKind.bwrap not in kinds:
        print("bubblewrap is not installed: its bar is not measured")
    rows = []
    with model_at_work(folder) as url:
        for program in ("codex", "claude"):
            for kind in kinds:
                print(f"measuring {program}, {kind} ...", file=sys.stderr)
                bench = Bench(program, kind, folder / f"{program}-{kind}", programs, url)
                bench.measure(rounds)
                rows += bench.rows()
    return rows


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="becket-bench-", dir=options.folder) as folder:
        rows = measured(Path(folder).resolve(), 8 if options.quick else 20)
    return show(rows, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
