"""`becket service` as a person uses it: real program, real watchdog, a real tiny service."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli_stage import Stage, wait_for

from becket.app.state import StateFolder, holder
from becket.kernel.contract.caller import Via
from becket.parts.services.ports import ServiceRequest

CONFIG = """\
version: 1
sandbox: none
services:
  main:
    start: "echo begins; exec {python} -m http.server --bind 127.0.0.1 {{port}}"
    port: {port}
    health: {{url: /, samples: 2, soak: 200ms}}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    stage = Stage(tmp_path / "repo")
    stage.write("becket.yaml", CONFIG.format(python=sys.executable, port=port))
    stage.commit("a service")
    try:
        yield stage
    finally:
        if (stage.state / "services.db").exists():
            stage.becket("service", "main", "stop")
        if pid := watchdog_of(stage):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def watchdog_of(stage: Stage) -> int | None:
    return holder(StateFolder(root=stage.root, common=stage.root / ".git").watchdog_lock)


def asked(stage: Stage) -> list[ServiceRequest]:
    """What the watchdog keeps of people's wishes."""
    with closing(sqlite3.connect(StateFolder(root=stage.root, common=stage.root / ".git").services_database)) as conn:
        return [ServiceRequest.model_validate_json(body) for (body,) in conn.execute("SELECT body FROM requests")]


def test_a_service_is_started_watched_over_and_stopped_without_a_daemon(stage: Stage) -> None:
    """L8, L26, L30: the first start says that nothing is proven; the pid is the real one; stop means stopped."""
    started = stage.json("service", "main", "start")
    assert (started["ending"], started["unproven"]) == ("kept", True)
    assert started["sha"] == stage.git("rev-parse", "main").strip()
    assert "NOT proven" in started["reason"]
    pid = started["now"]["pid"]
    assert b"http.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    (now,) = stage.json("status")["services"]
    assert (now["name"], now["state"], now["pid"], now["supervised"]) == ("main", "up", pid, True)
    assert "begins" in stage.becket("service", "main", "logs", "-n", "500").out
    os.kill(pid, signal.SIGKILL)
    again = wait_for(lambda: (found := stage.json("service", "main", "status"))["pid"] not in (None, pid) and found)
    assert again["starts"] == 2
    assert stage.json("service", "main", "restart")["ending"] == "done"
    stage.becket("service", "main", "stop")
    assert stage.json("service", "list")[0]["state"] == "down"
    assert [one.by and one.by.via for one in asked(stage)] == [Via.command_line] * 3, "start, restart and stop"


def test_unknown_names_and_missing_words_are_usage_errors(stage: Stage) -> None:
    assert "main" in stage.becket("service", "other", "status", code=2).err
    assert "start|stop" in stage.becket("service", "main", code=2).err
    assert "main" in stage.becket("service", "list").out


def test_a_commit_that_cannot_serve_is_told_and_leaves_nothing_behind(stage: Stage) -> None:
    stage.write("becket.yaml", (stage.root / "becket.yaml").read_text().replace("exec", "exit 5;"))
    stage.commit("a broken start")
    failed = stage.json("service", "main", "start", code=1)
    assert failed["ending"] == "failed"
    assert "exit code 5" in failed["reason"]
    assert failed["now"]["state"] == "down"
