"""An agent that prints without end, by the real program: its time limit and Ctrl-C are kept all the same."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from cli_stage import Stage, wait_for

CONFIG = """\
version: 1
branch: main
autonomy: propose
gates: {fast: [{name: unit, run: "true"}]}
agents:
  chatty: {driver: command, run: "exec yes", limits: {time: 3s}}
  endless: {driver: command, run: "exec yes 'token: abc123def456'"}
"""
ON_DISK = 100_000_000


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path / "repo")
    made.write("becket.yaml", CONFIG)
    made.commit("agents")
    return made


def test_it_is_over_at_its_time_limit_and_its_disk_is_bounded(stage: Stage) -> None:
    began = time.monotonic()
    told = stage.becket("agent", "run", "chatty", "say something", code=1)
    assert time.monotonic() - began < 3 + 25  # with the start of the program, and what it says being kept
    assert "it did not end within its time" in told.out
    (run,) = stage.json("runs", "list")
    (call,) = stage.json("runs", "show", run["run_id"])["calls"]
    assert call["end"]["outcome"] == "limit_reached"
    assert call["end"]["usage"]["seconds"] < 3 + 5
    assert sum(path.stat().st_size for path in stage.state.rglob("*") if path.is_file()) < ON_DISK


def test_an_interrupt_is_served_while_it_prints(stage: Stage) -> None:
    assert any(seconds_to_interrupt(stage) < 5 for _ in range(3))  # machines are noisy


def seconds_to_interrupt(stage: Stage) -> float:
    before = {path.name for path in stage.state.glob("runs/*")}
    process = stage.start("agent", "run", "endless", "say something", "--json")

    def has_said_much() -> bool:
        raws = [path for path in stage.state.glob("runs/*/calls/*/raw.jsonl") if path.parts[-4] not in before]
        return any(path.stat().st_size > 20_000_000 for path in raws)

    wait_for(has_said_much)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    ended = stage.end(process)
    taken = time.monotonic() - asked
    assert ended.code == 130, ended
    return taken
