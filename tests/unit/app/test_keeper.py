"""How often a process is started again, and when that ends."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from becket.app.keeper import (
    RESTART_WINDOW,
    RESTARTS,
    Keeper,
    Restarts,
    RestartTiming,
    read_restarts,
    since_boot,
    write_restarts,
)
from becket.app.launch import LogFile, end_holder, last_words
from becket.app.liveness import KeeperAction, daemon_of
from becket.app.locks import StartLock
from becket.app.state import Lock, StateFolder, holder

NOW = 10_000.0


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(root=tmp_path, common=tmp_path).make()


def ago(*seconds: float) -> Restarts:
    return Restarts(at=tuple(NOW - one for one in seconds))


@pytest.mark.parametrize(
    ("restarts", "turn", "unlimited"),
    [
        (Restarts(), RestartTiming.now, RestartTiming.now),
        (ago(1), RestartTiming.later, RestartTiming.later),
        (ago(2), RestartTiming.now, RestartTiming.now),
        (ago(10, 3), RestartTiming.later, RestartTiming.later),
        (ago(10, 4), RestartTiming.now, RestartTiming.now),
        (ago(500, 400, 300, 200, 100), RestartTiming.never, RestartTiming.now),
        (ago(90, 80, 70, 60, 20), RestartTiming.never, RestartTiming.later),
        (ago(RESTART_WINDOW, 400, 300, 200, 100), RestartTiming.now, RestartTiming.now),
        (Restarts(given_up=True), RestartTiming.never, RestartTiming.now),
        (ago(-50), RestartTiming.now, RestartTiming.now),  # from a clock that is not ours
    ],
)
def test_restarts_back_off_and_end(restarts: Restarts, turn: RestartTiming, unlimited: RestartTiming) -> None:
    assert restarts.turn(NOW) is turn
    assert restarts.unlimited_turn(NOW) is unlimited


def test_a_daemon_that_dies_at_once_is_started_so_often_and_no_more() -> None:
    """L28"""
    restarts, now, starts = Restarts(), NOW, 0
    while now < NOW + 3 * RESTART_WINDOW:
        match restarts.turn(now):
            case RestartTiming.now:
                restarts, starts = restarts.noted(now), starts + 1
            case RestartTiming.never:
                break
            case RestartTiming.later:
                pass
        now += 1
    assert starts == RESTARTS
    assert now < NOW + RESTART_WINDOW


def test_the_count_is_kept_on_disk_until_the_next_boot(state: StateFolder) -> None:
    fresh = read_restarts(state.daemon_restarts)
    noted = fresh.noted(since_boot())
    write_restarts(state.daemon_restarts, noted)
    assert read_restarts(state.daemon_restarts) == noted
    write_restarts(state.daemon_restarts, Restarts(boot="another", at=noted.at, given_up=True))
    assert read_restarts(state.daemon_restarts) == fresh


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"boot": 1}', "\x00", '{"boot":"","at":["x"],"given_up":0,"why":""}']
)
def test_a_count_that_cannot_be_read_counts_as_none(state: StateFolder, text: str) -> None:
    state.daemon_restarts.write_text(text)
    assert read_restarts(state.daemon_restarts).at == ()


def test_a_keeper_that_gave_up_starts_nothing_and_says_why_until_it_is_forgiven(state: StateFolder) -> None:
    (state.folder / "logs").mkdir()
    (state.logs / "up.out").write_text("becket is up (pid 1); Ctrl-C stops it.\nbecket: no room left\n")
    now = since_boot()
    write_restarts(state.daemon_restarts, Restarts(read_restarts(state.daemon_restarts).boot, (now,) * RESTARTS))
    keeper = Keeper(state, daemon_of(state), lambda: True, gives_up=True)
    assert keeper.look() is KeeperAction.start
    kept = read_restarts(state.daemon_restarts)
    assert (kept.given_up, kept.why) == (True, "becket: no room left")
    assert keeper.look() is KeeperAction.start
    assert read_restarts(state.daemon_restarts) == kept
    assert holder(state.daemon_start) is None


def test_nothing_is_kept_that_nobody_wants(state: StateFolder) -> None:
    assert Keeper(state, daemon_of(state), lambda: False, gives_up=True).look() is KeeperAction.wait


def test_a_start_that_was_never_named_is_waited_for_and_nobody_is_ended_for_it(state: StateFolder) -> None:
    start = StartLock(state.daemon_start)
    assert start.acquire()
    ended = end_holder(state.daemon_start)
    assert ended is not None
    assert not ended.gone
    start.close()


def test_another_process_than_the_one_that_was_judged_is_not_ended(state: StateFolder) -> None:
    with Lock(state.daemon_lock) as lock:
        assert lock.acquire()
        assert end_holder(state.daemon_lock, pid=1) is None


def test_the_last_words_are_those_of_the_last_life(state: StateFolder) -> None:
    assert last_words(state, "up") == ""
    state.logs.mkdir()
    (state.logs / "daemon.log").write_text("old\nthe disk is full\n")
    (state.logs / "up.out").write_text("an older fault\nbecket is up (pid 2); Ctrl-C stops it.\n\n")
    assert last_words(state, "up") == "the disk is full"


def test_a_log_that_was_removed_is_made_again_by_its_next_line(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "daemon.log"
    path.parent.mkdir()
    log = LogFile(path)
    for said in ("first", "second"):
        log.handle(logging.LogRecord("becket", logging.INFO, "", 0, said, None, None))
        assert path.read_text() == f"{said}\n"
        shutil.rmtree(path.parent)
    log.close()
