"""The daemon behind the verbs, and the live view on a terminal; by the real program."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_stage import PROGRAM, Stage, environment, wait_for


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "repo", "greet", "ask")
    yield stage
    stage.becket("down")


def test_up_works_on_what_others_start_until_down(stage: Stage) -> None:
    """L30: stop means stopped."""
    up = stage.json("up", "--detach")
    assert up["already"] is False
    status = stage.json("status")
    assert (status["daemon"], status["wanted"]) == (up["pid"], True)
    assert "already" in stage.becket("up", "--detach").out
    told = stage.becket("run", "greet")
    run_id = told.out.strip()
    assert "The daemon works on it" in told.err
    ended = wait_for(lambda: [run for run in stage.json("runs", "list") if run["status"] == "completed"])
    assert ended[0]["run_id"] == run_id
    followed = stage.json("run", "greet", "--with", "who=bob", "--follow")
    assert followed["run"]["status"] == "completed"
    down = stage.json("down")
    assert down["daemon"] == up["pid"]
    assert not any(alive(pid) for pid in (down["daemon"], down["watchdog"]))
    assert "down" in stage.becket("status").out
    assert "Nothing was running" in stage.becket("down").out


def test_up_with_a_becket_yaml_that_does_not_load_never_says_that_it_is_up(stage: Stage) -> None:
    stage.write("becket.yaml", "version: 1\nnonsense: 1\n")
    up = stage.becket("up", code=2)
    assert "becket.yaml:2:1: unknown-key" in up.err
    assert "is up" not in up.out


def alive(pid: int) -> bool:
    """A process that is over but that nobody reaped yet counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def test_an_approval_rings_the_daemon(stage: Stage) -> None:
    stage.becket("up", "--detach")
    stage.becket("run", "ask")
    (approval,) = wait_for(lambda: stage.json("approvals", "list"))
    stage.becket("approve", approval["approval_id"])
    wait_for(lambda: stage.json("status")["counts"] == {"completed": 1})


def on_a_terminal(stage: Stage, *arguments: str, **env: str) -> tuple[int, str]:
    """The program with a pseudo-terminal as its standard output."""
    ours, theirs = pty.openpty()
    env = environment() | {"TERM": "xterm-256color", "COLUMNS": "90", "LINES": "40"} | env
    with subprocess.Popen([*PROGRAM, *arguments], cwd=stage.root, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        os.close(ours)
    return process.returncode, seen.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_gets_a_live_view_and_then_the_end(stage: Stage) -> None:
    code, seen = on_a_terminal(stage, "run", "greet")
    assert code == 0
    assert "\x1b[" in seen
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert "greet  guest/world" in shown
    assert "greet: A greeting is written and was seen (completed)" in shown
    assert shown.rstrip().splitlines()[-1].startswith("Next: becket runs show run_")
    assert "asked for by" not in shown


def test_no_color_is_respected_on_a_terminal(stage: Stage) -> None:
    stage.becket("run", "greet")
    ours = stage.json("runs", "list")[0]["run_id"]
    for arguments in (("status",), ("runs", "list"), ("runs", "show", ours)):
        _, seen = on_a_terminal(stage, *arguments, NO_COLOR="1")
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]", seen)


def test_status_shows_the_sandbox_that_the_daemon_has_and_a_cap_is_told(stage: Stage, tmp_path: Path) -> None:
    """L18: what another process would find is not what the daemon goes by."""
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    broken.chmod(0o755)
    stage.write("becket.yaml", "version: 1\nbranch: main\nautonomy: merge\n")
    stage.becket("up", "--detach", env={"PATH": f"{broken.parent}:{os.environ['PATH']}"})
    status = wait_for(lambda: (told := stage.json("status"))["alerts"] and told)
    assert status["autonomy"]["allowed"] == "propose"
    assert "does not hold" in status["autonomy"]["because"]
    (alert,) = status["alerts"]
    assert alert["key"] == "autonomy:capped"
    assert status["autonomy"]["because"] in alert["text"]
    stage.write("becket.yaml", "version: 1\nbranch: main\nautonomy: propose\n")
    wait_for(lambda: not stage.json("status")["alerts"])
