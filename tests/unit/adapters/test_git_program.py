"""How the git program is run: its environment, its end, and what is said when it fails."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

import pytest

from becket.adapters.git import program
from becket.adapters.git.program import GitCommandFailed, GitTimedOut, Place, environment, run, run_at_start
from becket.contract.errors import GitFailed, UsageError


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named git, first on the PATH, that writes its pid and does what `script` holds."""
    path = tmp_path / "bin" / "git"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\n. "{tmp_path}/script"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return tmp_path / "script"


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def test_no_git_variable_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """L1."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_SSH_COMMAND", "GIT_CONFIG_PARAMETERS", "GIT_TRACE"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    env = environment(Path("/ceiling"))
    assert "planted" not in env.values()
    assert env["LC_ALL"] == "C"
    assert env["GIT_CEILING_DIRECTORIES"] == "/ceiling"
    assert env["GIT_TERMINAL_PROMPT"] == "0"
    assert env["PATH"] == os.environ["PATH"]


def test_no_transport_is_allowed(tmp_path: Path) -> None:
    """None of the port's methods waits for a network."""
    run_at_start(tmp_path, "init", "--quiet")
    with pytest.raises(GitCommandFailed, match="not allowed"):
        asyncio.run(run(Place(tmp_path / ".git", tmp_path), "ls-remote", f"file://{tmp_path}"))


def test_a_failure_names_the_command_the_place_and_gits_words(tmp_path: Path) -> None:
    run_at_start(tmp_path, "init", "--quiet")
    with pytest.raises(GitCommandFailed) as failed:
        asyncio.run(run(Place(tmp_path / ".git", tmp_path), "rev-parse", "--verify", "no such"))
    assert failed.value.code == 128
    assert "`git rev-parse --verify 'no such'`" in str(failed.value)
    assert str(tmp_path) in str(failed.value)
    assert "Needed a single revision" in str(failed.value)


def test_a_missing_program_and_a_missing_folder_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitFailed, match="could not be started"):
        asyncio.run(run(Place(tmp_path / "gone"), "version"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="install git"):
        asyncio.run(run(Place(tmp_path), "version"))
    with pytest.raises(UsageError, match="install git"):
        run_at_start(tmp_path, "version")


def test_an_argument_git_cannot_be_given_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="null byte"):
        asyncio.run(run(Place(tmp_path), "rev-parse", "a\0b"))


def timed_out(folder: Path, ready: Path) -> GitTimedOut:
    """Of a command that gets as much time as it needs to make the file `ready`, however slow the machine is."""
    for timeout in (0.3, 1.5, 6.0, 24.0):
        with pytest.raises(GitTimedOut, match=f"took longer than {timeout:g} s") as failed:
            asyncio.run(run(Place(folder), "status", timeout=timeout))
        if ready.exists():
            break
    return failed.value


def test_a_command_that_hangs_is_ended_with_all_it_started(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM first, so that git can remove its locks; its children go with it."""
    monkeypatch.setattr(program, "GRACE", 3600.0)
    child = tmp_path / "child"
    fake.write_text(
        f"trap 'echo removed > \"{tmp_path}/locks\"; exit 1' TERM\n"
        f'sleep 300 & echo $! > "{child}.new"; mv "{child}.new" "{child}"\nwait\n'
    )
    timed_out(tmp_path, child)
    assert (tmp_path / "locks").exists()
    assert gone(int((tmp_path / "pid").read_text()))
    until = time.monotonic() + 60
    while not gone(int(child.read_text())):  # it got its signal with the others, and nobody waits for it
        assert time.monotonic() < until


def test_a_command_that_ignores_term_is_killed(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", 0.2)
    fake.write_text(f"trap '' TERM\n: > \"{tmp_path}/ready\"\nsleep 300 & wait\nsleep 300\n")
    timed_out(tmp_path, tmp_path / "ready")
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_cancelled_command_is_ended_before_the_cancellation_leaves(fake: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    fake.write_text(f'echo > "{tmp_path}/started"\nexec sleep 300\n')

    async def cancel_it() -> None:
        command = asyncio.create_task(run(Place(tmp_path), "status"))
        await asyncio.to_thread((tmp_path / "started").read_text)
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command
        assert gone(int((tmp_path / "pid").read_text()))

    asyncio.run(cancel_it())


def test_git_gets_a_session_of_its_own(fake: Path, tmp_path: Path) -> None:
    """L27: a signal to its group must not reach us."""
    fake.write_text("cut -d' ' -f6 /proc/$$/stat\n")
    output = asyncio.run(run(Place(tmp_path), "status"))
    assert output.text == (tmp_path / "pid").read_text().strip()
