"""Processes between alive and dead: stopped, blocked, slow to start, always dying. Real ones, with short limits.

A test makes a process slow or deaf from outside the product, by a `sitecustomize` that only its processes import.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_stage import PROGRAM, Answer, Stage, environment

from becket.app.keeper import RESTARTS, read_restarts
from becket.app.liveness import stopped
from becket.app.state import StateFolder, holder, last_sign, silent_for

pytestmark = pytest.mark.slow

DEAF_AFTER = 4.0
LIMITS = {"BECKET_WATCHDOG_EVERY": "0.2", "BECKET_DEAF_AFTER": str(DEAF_AFTER), "BECKET_START_WITHIN": "90"}

SITE = """\
import os, signal, time
words = open("/proc/self/cmdline").read().split("\\0")
here = os.path.dirname(__file__)
mine = "up" in words and "--detach" not in words
if mine and os.path.exists(here + "/slow"):
    with open(here + "/starts", "a") as starts:
        starts.write("x")
    while os.path.exists(here + "/slow"):
        time.sleep(0.05)
if mine and os.path.exists(here + "/die"):
    raise SystemExit("no start today")
if mine:
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(100))
"""


class House(Stage):
    """A repository whose processes are certainly gone when the test ends."""

    def __init__(self, folder: Path, *loops: str) -> None:
        super().__init__(folder / "repo", *loops)
        self.children: list[subprocess.Popen[str]] = []
        self.site = folder / "site"
        self.site.mkdir()
        (self.site / "sitecustomize.py").write_text(SITE)
        self.paths = StateFolder(root=self.root, common=self.root / ".git")

    @property
    def env(self) -> dict[str, str]:
        return environment() | LIMITS | {"PYTHONPATH": str(self.site)}

    def do(self, *arguments: str, code: int = 0) -> Answer:
        return self.becket(*arguments, code=code, env=self.env)

    def background(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PROGRAM, *arguments], cwd=self.root, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        self.children.append(process)
        return process

    @property
    def daemon(self) -> int:
        return holder(self.paths.daemon_lock) or 0

    @property
    def watchdog(self) -> int:
        return holder(self.paths.watchdog_lock) or 0

    def up(self) -> None:
        """Both are up, and have shown it."""
        self.do("up", "--detach")
        until("both show life", lambda: self.alive("daemon") and self.alive("watchdog"))

    def alive(self, name: str) -> bool:
        silent = silent_for(self.state / f"{name}.lock")
        return silent is not None and silent < 3

    def alarms(self) -> list[dict[str, Any]]:
        file = self.state / "outbox" / "alarms.jsonl"
        return [json.loads(line)["payload"] for line in file.read_text().splitlines()] if file.exists() else []

    def told(self, key: str) -> str:
        return next((alarm["text"] for alarm in self.alarms() if alarm["alarm"] == key), "")

    def status(self) -> str:
        return self.do("status").out

    def log(self, name: str) -> str:
        file = self.state / "logs" / name
        return file.read_text() if file.exists() else ""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, "greet", "slow")
    try:
        yield house
    finally:
        house.paths.wanted.unlink(missing_ok=True)
        house.paths.services_wanted.unlink(missing_ok=True)
        for name in ("watchdog.lock", "daemon.lock", "daemon.start", "watchdog.start", "engine.lock"):
            if (pid := holder(house.state / name)) is not None and pid > 1:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for child in house.children:
            child.kill()
            with contextlib.suppress(ValueError):  # its words were read already
                child.communicate()


def until(what: str, look: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return True


def test_a_stopped_daemon_is_replaced_and_its_run_goes_on(house: House) -> None:
    house.up()
    run_id = house.do("run", "slow", "--no-follow").out.strip()
    resting = house.scratch_of(run_id) / "resting"
    until("the run is at work", resting.exists)
    resting.unlink()
    first, watchdog = house.daemon, house.watchdog
    os.kill(first, signal.SIGSTOP)
    until("another daemon lives", lambda: house.daemon not in (0, first) and house.alive("daemon"))
    assert gone(first)
    assert house.watchdog == watchdog
    until("the run is at work again", resting.exists)
    (house.scratch_of(run_id) / "wake").touch()
    until("it is completed", lambda: house.json("runs", "list")[0]["status"] == "completed")
    until("it was told", lambda: "found it unresponsive" in house.told("daemon_dead"))
    assert len(read_restarts(house.paths.daemon_restarts).at) == 1


def test_a_daemon_whose_event_loop_is_blocked_is_replaced(house: House) -> None:
    house.up()
    first = house.daemon
    os.kill(first, signal.SIGUSR1)
    until("another daemon lives", lambda: house.daemon not in (0, first) and house.alive("daemon"))
    assert gone(first)


def test_a_stopped_watchdog_is_replaced_by_the_daemon(house: House) -> None:
    house.up()
    first, daemon = house.watchdog, house.daemon
    os.kill(first, signal.SIGSTOP)
    until("another watchdog lives", lambda: house.watchdog not in (0, first) and house.alive("watchdog"))
    assert gone(first)
    assert house.daemon == daemon


def test_a_pair_that_was_stopped_together_goes_on_and_nobody_is_ended(house: House) -> None:
    """As after a suspended machine: silence counts only while whoever judges it was running."""
    house.up()
    pair = house.daemon, house.watchdog
    for pid in pair:
        os.kill(pid, signal.SIGSTOP)
    asleep = last_sign(house.paths.daemon_lock) or 0.0
    until("it was longer than a deaf one is given", lambda: time.monotonic() - asleep > 2 * DEAF_AFTER)
    for pid in reversed(pair):
        os.kill(pid, signal.SIGCONT)
    awake = time.monotonic()
    until("both live", lambda: (last_sign(house.paths.daemon_lock) or 0) > awake + DEAF_AFTER)
    assert (house.daemon, house.watchdog) == pair


def test_up_replaces_a_pair_that_is_stopped_and_says_so(house: House) -> None:
    """Nobody is left who could replace anybody, but the person who types."""
    house.up()
    pair = house.daemon, house.watchdog
    for pid in pair:
        os.kill(pid, signal.SIGSTOP)
    until("it shows", lambda: house.status().count("not responding: pid") == 2)
    shown = house.status()
    assert "`becket up --detach` replaces it" in shown
    answer = house.do("up", "--detach")
    assert "no sign of life" in answer.err
    assert "already" not in answer.out
    assert house.daemon not in (0, pair[0])
    assert house.watchdog not in (0, pair[1])
    assert gone(pair[0])
    assert gone(pair[1])


def test_down_ends_a_stopped_daemon_quickly_and_says_that_it_was_killed(house: House) -> None:
    house.up()
    pair = house.daemon, house.watchdog
    for pid in pair:
        os.kill(pid, signal.SIGSTOP)
    assert "did not respond and was killed" in house.do("down").out
    assert gone(pair[0])
    assert gone(pair[1])
    assert "Nothing was running" in house.do("down").out


def test_a_daemon_that_waits_for_a_busy_journal_is_left_alone(house: House) -> None:
    house.up()
    first = house.daemon
    with contextlib.closing(sqlite3.connect(house.state / "becket.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        os.kill(first, signal.SIGSTOP)  # as deaf as can be, and excused as long as somebody else writes
        until("longer than a deaf one is given", lambda: time.monotonic() - began > 3 * DEAF_AFTER)
        assert house.daemon == first
        os.kill(first, signal.SIGCONT)
        other.execute("ROLLBACK")
    until("it lives", lambda: house.alive("daemon"))
    assert house.daemon == first


def test_a_slow_start_is_waited_for_and_burns_no_restart(house: House) -> None:
    house.up()
    first = house.daemon
    (house.site / "slow").touch()
    os.kill(first, signal.SIGKILL)
    until("the start is under way", (house.site / "starts").exists)
    until("it is known by its pid", lambda: "starting (pid" in house.status())
    began = time.monotonic()
    until("twenty looks went by", lambda: time.monotonic() - began > 4)
    assert (house.site / "starts").read_text() == "x"
    (house.site / "slow").unlink()
    until("it is up", lambda: house.alive("daemon"))
    assert len(read_restarts(house.paths.daemon_restarts).at) == 1


def test_a_watchdog_that_was_killed_meanwhile_knows_the_start_that_is_under_way(house: House) -> None:
    house.up()
    (house.site / "slow").touch()
    os.kill(house.daemon, signal.SIGKILL)
    until("the start is under way", (house.site / "starts").exists)
    starting = holder(house.paths.daemon_start)
    os.kill(house.watchdog, signal.SIGKILL)
    second = house.background("watchdog")
    until("another one watches", lambda: house.watchdog == second.pid and house.alive("watchdog"))
    began = time.monotonic()
    until("ten looks went by", lambda: time.monotonic() - began > 2)
    assert (house.site / "starts").read_text() == "x"
    (house.site / "slow").unlink()
    until("it is up", lambda: house.alive("daemon"))
    assert house.daemon == starting


def test_down_ends_a_start_that_is_under_way(house: House) -> None:
    (house.site / "slow").touch()
    up = house.background("up", "--detach")
    until("the start is under way", lambda: (holder(house.paths.daemon_start) or 0) > 1)
    starting = holder(house.paths.daemon_start)
    assert f"daemon (pid {starting}" in house.do("down").out
    _, said = up.communicate(timeout=60)
    assert up.returncode == 1
    assert "did not start" in said
    assert not house.paths.wanted.exists()


def test_a_daemon_that_always_dies_is_given_up_which_is_told_and_up_begins_afresh(house: House) -> None:
    """L28, and the count outlives the watchdog."""
    (house.site / "die").touch()
    assert "no start today" in house.do("up", "--detach", code=1).err
    (house.site / "die").unlink()
    house.up()
    (house.site / "die").touch()
    os.kill(house.daemon, signal.SIGKILL)
    until("some restarts", lambda: len(read_restarts(house.paths.daemon_restarts).at) >= 2)
    os.kill(house.watchdog, signal.SIGKILL)
    watchdog = house.background("watchdog")
    until("it is told", lambda: house.told("gave_up"), 240)
    assert "no start today" in house.told("gave_up")
    assert "`becket up --detach`" in house.told("gave_up")
    assert len(read_restarts(house.paths.daemon_restarts).at) == RESTARTS
    assert house.log("up.out").count("SystemExit: no start today") == 1 + RESTARTS
    assert "gave up" in house.status()
    (house.site / "die").unlink()
    house.up()
    forgiven = read_restarts(house.paths.daemon_restarts)
    assert (forgiven.at, forgiven.given_up) == ((), False)
    assert house.watchdog == watchdog.pid
    until("it is well", lambda: "stays up again" in house.told("well:gave_up"))


def test_whoever_waits_for_a_deaf_engine_is_told(house: House) -> None:
    house.up()
    pair = house.daemon, house.watchdog
    for pid in pair:
        os.kill(pid, signal.SIGSTOP)
    client = house.background("run", "greet", "--follow")
    assert client.stderr is not None
    assert select.select([client.stderr], [], [], 120)[0]
    for pid in pair:
        os.kill(pid, signal.SIGCONT)
    _, said = client.communicate(timeout=120)
    assert client.returncode == 0
    assert f"The daemon (pid {pair[0]}) has given no sign of life" in said
    assert "Replace it with `becket up --detach`" in said


def test_a_stopped_run_in_a_terminal_is_told_of_and_not_ended(house: House) -> None:
    mine = house.background("run", "slow")
    until("it drives its run and shows life", lambda: driver(house))
    lock = driver(house)
    assert lock is not None
    assert holder(lock) == mine.pid
    until("its command runs", lambda: list(house.state.glob("runs/*/scratch/resting")))
    os.kill(mine.pid, signal.SIGSTOP)
    house.up()
    house.do("run", "greet", "--follow")  # nobody else's run waits for it
    (run,) = house.json("runs", "list", "--loop", "slow")
    waits = house.background("runs", "show", run["run_id"], "--follow")
    until("the alarm is told", lambda: house.told("engine_deaf"))
    assert waits.stderr is not None
    assert select.select([waits.stderr], [], [], 120)[0], "who waits is told, too"
    for text in (house.told("engine_deaf"), house.status()):
        assert f"pid {mine.pid} (`becket run slow`) is stopped" in text
        assert "`fg`" in text
    os.kill(mine.pid, signal.SIGCONT)
    (house.scratch_of(run["run_id"]) / "wake").touch()
    assert mine.wait(timeout=120) == 0
    _, said = waits.communicate(timeout=120)
    assert waits.returncode == 0
    assert "is stopped (Ctrl-Z?): its run does not move" in said
    assert house.json("runs", "show", run["run_id"])["run"]["epoch"] == 1, "the daemon did not take it"
    until("it is over", lambda: "No unresponsive process" in house.told("well:engine_deaf"))


def driver(house: House) -> Path | None:
    """The lock of the command that drives a run."""
    return next((path for path in house.paths.drivers.glob("*") if last_sign(path) is not None), None)


SERVICE = """\
version: 1
sandbox: none
services:
  main:
    start: "exec {python} -m http.server --bind 127.0.0.1 {{port}}"
    port: {port}
    health: {{url: /, samples: 2, soak: 200ms}}
"""


@pytest.fixture
def shop(house: House) -> Iterator[House]:
    """A house with a service that runs."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    house.write("becket.yaml", SERVICE.format(python=sys.executable, port=port))
    house.commit("a service")
    try:
        house.do("service", "main", "start")
        yield house
    finally:
        house.do("service", "main", "stop")


def test_a_replaced_watchdog_adopts_the_services_and_restarts_none(shop: House) -> None:
    shop.up()
    before = shop.json("service", "main", "status")
    first = shop.watchdog
    os.kill(first, signal.SIGSTOP)
    until("another watchdog lives", lambda: shop.watchdog not in (0, first) and shop.alive("watchdog"))
    assert gone(first)
    until("it looks after the service", lambda: shop.json("service", "main", "status")["state"] == "up")
    after = shop.json("service", "main", "status")
    assert (after["pid"], after["starts"]) == (before["pid"], before["starts"])
    os.kill(after["pid"], signal.SIGKILL)
    until(
        "and restarts one that died", lambda: shop.json("service", "main", "status")["pid"] not in (None, after["pid"])
    )


def test_a_stopped_watchdog_that_nobody_keeps_is_replaced_by_whoever_asks_it(shop: House) -> None:
    """Without a daemon there is only the person who types."""
    before, first = shop.json("service", "main", "status"), shop.watchdog
    until("it shows life", lambda: shop.alive("watchdog"))
    os.kill(first, signal.SIGSTOP)
    shop.do("service", "main", "start")
    assert shop.watchdog not in (0, first)
    assert gone(first)
    assert shop.json("service", "main", "status")["pid"] == before["pid"]


def test_ctrl_z_on_a_run_says_what_stops_with_it(house: House) -> None:
    ours, theirs = pty.openpty()
    mine = subprocess.Popen(
        [*PROGRAM, "run", "slow"], cwd=house.root, env=house.env, stdout=subprocess.PIPE, stderr=theirs, text=True,
        start_new_session=True,
    )  # fmt: skip
    house.children.append(mine)
    os.close(theirs)
    until("it drives its run", lambda: driver(house))
    os.kill(mine.pid, signal.SIGTSTP)
    seen = ""
    while "its run does not move until `fg`" not in seen:
        assert select.select([ours], [], [], 120)[0], seen
        seen += os.read(ours, 4096).decode()
    until("it is stopped", lambda: stopped(mine.pid))
    os.kill(mine.pid, signal.SIGCONT)
    (run,) = house.json("runs", "list")
    (house.scratch_of(run["run_id"]) / "wake").touch()
    assert mine.wait(timeout=120) == 0
    os.close(ours)
