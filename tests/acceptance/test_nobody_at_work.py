"""A run at work outlives a journal that another process keeps busy, and a cancel outlives an engine that is stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from cli_stage import SLOW, Stage, wait_for

NAP = SLOW.replace("loop_id: slow", "loop_id: nap").replace(
    "touch resting; while [ ! -e wake ]; do sleep 0.05; done", "touch FOLDER/begun; sleep 1; echo once >> FOLDER/times"
)


@pytest.mark.slow
@pytest.mark.parametrize("held", [8.0, 12.0], ids=["as one write waits", "until a heartbeat waits too"])
def test_a_run_goes_on_and_ends_after_another_process_held_the_journal(tmp_path: Path, held: float) -> None:
    """The write at the end of its action is waited for: nothing is done twice, nobody takes it over."""
    stage = Stage(tmp_path / "repo")
    stage.write("becket.yaml", "version: 1\nbranch: main\nautonomy: propose\nsandbox: none\n")
    stage.write(".becket/loops/nap.yaml", NAP.replace("FOLDER", str(tmp_path)))
    stage.commit("a loop")
    running = stage.start("run", "nap", "--json")
    wait_for((tmp_path / "begun").exists)
    with contextlib.closing(sqlite3.connect(stage.state / "becket.db", timeout=60, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(held)
        other.execute("ROLLBACK")
    try:
        answer = stage.end(running)
    finally:
        running.kill()
    assert answer.code == 0, answer.err
    run = answer.json["run"]
    assert (run["status"], run["epoch"]) == ("completed", 1)
    assert (tmp_path / "times").read_text() == "once\n"


@pytest.mark.slow
def test_a_cancel_returns_although_the_engine_is_stopped_and_the_engine_is_fenced(tmp_path: Path) -> None:
    """At the latest when the lease of the one who does not listen has run out; meanwhile status says how it is."""
    stage = Stage(tmp_path / "repo", "slow")
    running = stage.start("run", "slow", "--json")
    run = wait_for(lambda: next(iter(stage.json("runs", "list", "--status", "running")), None))
    wait_for((stage.scratch_of(run["run_id"]) / "resting").exists)
    os.kill(running.pid, signal.SIGSTOP)
    try:
        told = stage.becket("runs", "cancel", run["run_id"])
    finally:
        os.kill(running.pid, signal.SIGCONT)
    assert told.out.strip() == f"{run['run_id']} is cancelled."
    assert stage.end(running).json["run"]["status"] == "cancelled"
