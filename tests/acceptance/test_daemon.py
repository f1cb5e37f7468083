"""The daemon and the watchdog as real processes: they start, serve, watch over each other, and stop when told.

The dead-man's second case (the daemon lives, a schedule is silent) takes minutes of real time; it is told with a manual
clock in tests/unit/engine/test_deadman.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_stage import PROGRAM, Stage, environment

from becket.app.state import StateFolder, holder

SEEN = """\
version: 1
loop_id: seen
goal: Every commit is looked at.
trigger: [{commit: {branch: main, debounce: 10ms}}]
subject: "{branch}@{sha}"
max_iterations: 1
deadline: 10m
stop_conditions: [there.pass]
phases:
  verify:
    objective: Look.
    verifiers: [{id: there, run: "git log -1 --format=%H | grep -q {sha}"}]
"""

TICK = """\
version: 1
loop_id: tick
goal: It is tried every second.
trigger: [{schedule: {cron: "* * * * * *", missed: skip}}]
max_iterations: 1
deadline: 10m
stop_conditions: [fine.pass]
phases:
  act:
    objective: Try.
    actions: [{id: attempt, run: "exit 1", in: scratch, on_error: fail}]
  verify:
    objective: Look.
    verifiers: [{id: fine, run: "true", in: scratch}]
"""


class House(Stage):
    """A repository whose daemon and watchdog are certainly gone when the test ends."""

    @property
    def paths(self) -> StateFolder:
        return StateFolder(root=self.root, common=self.root / ".git")

    @property
    def daemon(self) -> int | None:
        return holder(self.paths.daemon_lock)

    @property
    def watchdog(self) -> int | None:
        return holder(self.paths.watchdog_lock)

    def up(self) -> None:
        fast = environment() | {"BECKET_WATCHDOG_EVERY": "0.2"}
        done = subprocess.run(
            [*PROGRAM, "up", "--detach"], cwd=self.root, env=fast, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def alarms(self) -> list[dict[str, Any]]:
        file = self.state / "outbox" / "alarms.jsonl"
        return [json.loads(line)["payload"] for line in file.read_text().splitlines()] if file.exists() else []

    def runs(self, loop: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("runs", "list", "--loop", loop)
        return found


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "repo", "greet", "slow")
    try:
        yield house
    finally:
        pids = [pid for pid in (house.watchdog, house.daemon) if pid]
        house.paths.wanted.unlink(missing_ok=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def until(what: str, look: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def test_up_and_down(house: House) -> None:
    """L30: stopped means stopped; the locks are free and the processes gone."""
    house.up()
    pids = [house.daemon, house.watchdog]
    assert all(pids)
    status = house.json("status")
    assert status["daemon"] == pids[0]
    house.becket("down")
    assert (house.daemon, house.watchdog) == (None, None)
    until("both processes are gone", lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_second_daemon_is_refused(house: House) -> None:
    house.up()
    answer = house.becket("up", code=2)
    assert "already" in answer.err


def test_a_run_is_served_by_the_daemon_and_two_terminals_both_see_their_end(house: House) -> None:
    house.up()
    first = house.start("run", "greet", "--with", "who=one", "--follow")
    second = house.start("run", "greet", "--with", "who=two", "--follow")
    for terminal in (first, second):
        out, err = terminal.communicate(timeout=300)
        assert terminal.returncode == 0, out + err
    assert {run["status"] for run in house.runs("greet")} == {"completed"}


def test_a_commit_starts_a_run_by_itself(house: House) -> None:
    house.write(".becket/loops/seen.yaml", SEEN)
    house.commit("a loop")
    house.up()
    journal = [house.state / name for name in ("becket.db", "becket.db-wal")]
    until(
        "the first commit is remembered",
        lambda: any(file.exists() and b"commit:seen" in file.read_bytes() for file in journal),
    )
    house.write("file", "changed")
    house.commit("a change")
    until("the commit has its run", lambda: [run for run in house.runs("seen") if run["status"] == "completed"])
    (run,) = house.runs("seen")
    assert run["subject"]["name"] == f"main@{house.git('rev-parse', 'main').strip()}"


def test_a_killed_daemon_is_reported_and_started_again(house: House) -> None:
    """L43, first case: the daemon is killed. Its run goes on where it was."""
    house.up()
    house.becket("run", "slow", "--no-follow")
    (run,) = house.runs("slow")
    resting = house.scratch_of(run["run_id"]) / "resting"
    until("the run is at work", resting.exists)
    first = house.daemon
    assert first
    resting.unlink()
    os.kill(first, signal.SIGKILL)
    until("the alarm is told", lambda: any("daemon_dead" in alarm["alarm"] for alarm in house.alarms()))
    until("another daemon runs", lambda: house.daemon not in (None, first))
    until("the run is at work again", resting.exists)
    (house.scratch_of(run["run_id"]) / "wake").touch()
    until("the run is completed", lambda: house.runs("slow")[0]["status"] == "completed")
    until("it is well again", lambda: any("well again" in alarm["text"] for alarm in house.alarms()))


def test_a_killed_watchdog_is_started_again(house: House) -> None:
    house.up()
    first = house.watchdog
    assert first
    os.kill(first, signal.SIGKILL)
    until("another watchdog runs", lambda: house.watchdog not in (None, first))


def test_a_loop_that_fires_and_always_fails_is_reported(house: House) -> None:
    """L43, third case: it fires, and every run fails."""
    house.write(".becket/loops/tick.yaml", TICK)
    house.commit("a loop")
    house.up()
    until("the alarm is told", lambda: any("loop_failing" in alarm["alarm"] for alarm in house.alarms()))
    assert "tick" in next(alarm["text"] for alarm in house.alarms() if "loop_failing" in alarm["alarm"])


@pytest.mark.parametrize("point", ["launch.before_spawn", "launch.after_spawn"])
def test_whoever_starts_the_daemon_is_killed_on_the_way(house: House, point: str) -> None:
    """The next `becket up` finds one daemon, begun by the killed one or by itself."""
    killed = subprocess.run(
        [*PROGRAM, "up", "--detach"], cwd=house.root, env=environment() | {"BECKET_CRASH_AT": point}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    house.up()
    until("a daemon serves", lambda: house.daemon)
    house.becket("run", "greet", "--follow")
    house.becket("down")


def test_a_watchdog_that_is_killed_after_counting_a_restart_is_replaced(house: House) -> None:
    """The restart was counted and not made: somebody else has to make it."""
    fast = environment() | {"BECKET_WATCHDOG_EVERY": "0.2", "BECKET_CRASH_AT": "keeper.counted"}
    subprocess.run([*PROGRAM, "up", "--detach"], cwd=house.root, env=fast, check=True, capture_output=True)
    daemon = house.daemon
    assert daemon is not None
    os.kill(daemon, signal.SIGKILL)
    until("the watchdog is gone too", lambda: house.watchdog is None)
    house.up()
    house.becket("run", "greet", "--follow")
    house.becket("down")
