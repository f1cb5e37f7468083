"""Who is deaf: counted by what the one who judges saw itself, and excused where somebody else is to blame."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from becket.app.liveness import (
    KeeperAction,
    LockHolder,
    ProcessObservation,
    Silence,
    SilenceLimits,
    command_of,
    deaf_driver,
    judge,
)
from becket.app.locks import UNNAMED, StartLock, Writer
from becket.app.state import Lock, holder, last_sign, silent_for

LIMITS = SilenceLimits(deaf_after=60, start_within=300)
DAEMON = ProcessObservation(pid=7, sign=1.0)
COMING = ProcessObservation(pid=7, sign=None)
STARTING = ProcessObservation(starting=9)


@pytest.mark.parametrize(
    ("sight", "silent", "do"),
    [
        (ProcessObservation(), 0, KeeperAction.start),
        (ProcessObservation(), 999, KeeperAction.start),
        (DAEMON, 0, KeeperAction.wait),
        (DAEMON, 60, KeeperAction.wait),
        (DAEMON, 61, KeeperAction.end),
        (COMING, 61, KeeperAction.wait),
        (COMING, 300, KeeperAction.wait),
        (COMING, 301, KeeperAction.end),
        (STARTING, 61, KeeperAction.wait),
        (STARTING, 301, KeeperAction.end),
    ],
)
def test_a_start_has_more_time_than_a_daemon_and_a_free_lock_is_a_death(
    sight: ProcessObservation, silent: float, do: KeeperAction
) -> None:
    assert judge(sight, silent, LIMITS) is do


def silence(*looks: tuple[float, ProcessObservation]) -> float:
    counter = Silence(longest_step=4)
    return [counter.of(sight, at) for at, sight in looks][-1]


def every_two(first: int, last: int, sight: ProcessObservation = DAEMON) -> list[tuple[float, ProcessObservation]]:
    return [(float(at), sight) for at in range(first, last + 1, 2)]


@pytest.mark.parametrize(
    ("looks", "seconds"),
    [
        (every_two(100, 160), 60),
        ([(100.0, DAEMON)], 0),  # the first look knows nothing of what was before
        ([(100.0, DAEMON), (900.0, DAEMON)], 4),  # who judges was away himself: suspended, stopped, starved
        ([*every_two(100, 140), (900.0, DAEMON), (902.0, DAEMON)], 46),
        ([*every_two(100, 158), (160.0, ProcessObservation(pid=7, sign=2.0))], 0),  # it went round
        ([*every_two(100, 158), (160.0, ProcessObservation(pid=8, sign=1.0))], 0),  # another one
        (every_two(100, 900, ProcessObservation(7, 1.0, excused=True)), 0),  # somebody else holds the journal
        (
            [
                *every_two(100, 120),
                *every_two(122, 900, ProcessObservation(7, 1.0, excused=True)),
                *every_two(902, 920),
            ],
            40,
        ),
        ([*every_two(100, 130, STARTING), *every_two(132, 140, COMING)], 8),  # a start gets on
    ],
)
def test_silence_counts_only_while_somebody_looked_and_nobody_else_was_to_blame(
    looks: list[tuple[float, ProcessObservation]], seconds: float
) -> None:
    assert silence(*looks) == seconds


def test_a_sign_of_life_is_kept_by_the_kernel_and_gone_with_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Lock(path) as lock:
        assert lock.acquire()
        assert last_sign(path) is None
        lock.show_life()
        first = last_sign(path)
        while last_sign(path) == first:
            lock.show_life()
        assert first is not None
        assert (silent_for(path) or 0.0) < 60
        assert holder(path) == os.getpid(), "the sign is beside the name, not instead of it"
        assert path.stat().st_size < 20, "nothing is written"
    assert last_sign(path) is None


def test_a_start_is_known_by_its_pid_until_it_is_over_whatever_becomes_of_its_starter(tmp_path: Path) -> None:
    path = tmp_path / "start"
    start = StartLock(path)
    assert start.acquire()
    assert holder(path) == UNNAMED
    assert not StartLock(path).acquire(), "one start at a time"
    program = (
        "import os, sys; sys.stdin.read(1); os.close(int(sys.argv[1])); print('over', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(start.file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        pass_fds=(start.file,),
    )  # fmt: skip
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        start.name(child.pid)
        start.close()
        assert holder(path) == child.pid
        child.stdin.write(b"x")
        child.stdin.flush()
        child.stdout.readline()
        assert holder(path) is None
        child.stdin.close()


def test_who_writes_to_a_database_is_known_without_disturbing_anybody(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(sqlite3.connect(path, isolation_level=None)) as mine:
        mine.execute("PRAGMA journal_mode = WAL")
        mine.execute("CREATE TABLE t (x)")
        writer = Writer(path)
        assert writer.pid() is None
        program = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE');"
            "print('has it', flush=True); sys.stdin.read()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert writer.pid() == other.pid
            other.communicate()
        assert writer.pid() is None
        mine.execute("BEGIN IMMEDIATE")
        assert writer.pid() is None, "ourselves"
        with pytest.raises(sqlite3.OperationalError), closing(sqlite3.connect(path, timeout=0)) as third:
            third.execute("BEGIN IMMEDIATE")


def test_a_database_that_is_not_there_has_no_writer(tmp_path: Path) -> None:
    assert Writer(tmp_path / "none").pid() is None


def test_a_stopped_engine_is_told_of_by_what_was_typed() -> None:
    text = deaf_driver(LockHolder(pid=12, silent=70, stopped=True, command="becket run heal"))
    assert "pid 12 (`becket run heal`) is stopped" in text
    assert "`fg`" in text
    assert "`kill -KILL 12`" in text


def test_the_command_of_a_process_is_named_as_a_person_would(tmp_path: Path) -> None:
    file = tmp_path / "becket"
    file.write_text("import sys; print('x', flush=True); sys.stdin.read()")
    with subprocess.Popen(
        [sys.executable, str(file), "run", "heal"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert command_of(child.pid) == "becket run heal"
        child.communicate()
    assert command_of(child.pid) == "?"
