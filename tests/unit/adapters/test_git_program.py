"""How the git program is run: its environment, its end, and what is said when it fails."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from becket.kernel.contract.errors import GitFailed, UsageError
from becket.kernel.git import program
from becket.kernel.git.program import GitCommandFailed, GitOutput, GitPlace, GitTimedOut, environment, run, run_at_start


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named git, first on the PATH, that writes its pid and does what `script` holds."""
    path = tmp_path / "bin" / "git"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\n. "{tmp_path}/script"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return tmp_path / "script"


EXITING = 0x4  # the kernel's PF_EXITING: none of the process's own code runs any more


def gone(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return fields[0] == "Z" or bool(int(fields[6]) & EXITING)


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
        asyncio.run(run(GitPlace(tmp_path / ".git", tmp_path), "ls-remote", f"file://{tmp_path}"))


def test_a_failure_names_the_command_the_place_and_gits_words(tmp_path: Path) -> None:
    run_at_start(tmp_path, "init", "--quiet")
    with pytest.raises(GitCommandFailed) as failed:
        asyncio.run(run(GitPlace(tmp_path / ".git", tmp_path), "rev-parse", "--verify", "no such"))
    assert failed.value.code == 128
    assert "`git rev-parse --verify 'no such'`" in str(failed.value)
    assert str(tmp_path) in str(failed.value)
    assert "Needed a single revision" in str(failed.value)


def test_a_missing_program_and_a_missing_folder_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitFailed, match="could not be started"):
        asyncio.run(run(GitPlace(tmp_path / "gone"), "version"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="install git"):
        asyncio.run(run(GitPlace(tmp_path), "version"))
    with pytest.raises(UsageError, match="install git"):
        run_at_start(tmp_path, "version")


def test_an_argument_git_cannot_be_given_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="null byte"):
        asyncio.run(run(GitPlace(tmp_path), "rev-parse", "a\0b"))


def timed_out(folder: Path, ready: Path) -> GitTimedOut:
    """Of a command that gets as much time as it needs to make the file `ready`, however slow the machine is."""
    for timeout in (0.3, 1.5, 6.0, 24.0):
        with pytest.raises(GitTimedOut, match=f"took longer than {timeout:g} s") as failed:
            asyncio.run(run(GitPlace(folder), "status", timeout=timeout))
        if ready.exists():
            break
    return failed.value


def test_a_command_that_hangs_is_ended_with_all_it_started(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM first, so that git can remove its locks; its children go with it, and the last of them is waited for."""
    monkeypatch.setattr(program, "GRACE", 60.0)
    fake.write_text(f"trap 'echo removed > \"{tmp_path}/locks\"; exit 1' TERM\n" + with_a_child("sleep .5; exit"))
    timed_out(tmp_path, tmp_path / "child")
    assert (tmp_path / "locks").exists()
    assert gone(int((tmp_path / "pid").read_text()))
    assert gone(int((tmp_path / "child").read_text()))


def with_a_child(told_to_go: str) -> str:
    """A script's end: a child that is as it should be when the file `child` is there, and nothing more to do."""
    return (
        f"( trap '{told_to_go}' TERM\n"
        'here="${0%/bin/git}"\n'
        'sh -c \'echo $PPID\' > "$here/child.new"; mv "$here/child.new" "$here/child"\n'
        "sleep 300 & wait ) &\nwait\n"
    )


def test_a_child_that_ignores_term_is_killed_though_git_has_ended(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "GRACE", 0.5)
    fake.write_text("trap 'exit 1' TERM\n" + with_a_child(""))
    timed_out(tmp_path, tmp_path / "child")
    assert gone(int((tmp_path / "child").read_text()))


def test_a_command_that_ignores_term_is_killed(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", 0.2)
    fake.write_text(f"trap '' TERM\n: > \"{tmp_path}/ready\"\nsleep 300 & wait\nsleep 300\n")
    timed_out(tmp_path, tmp_path / "ready")
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_cancelled_command_is_ended_before_the_cancellation_leaves(fake: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    fake.write_text(f'echo > "{tmp_path}/started"\nexec sleep 300\n')

    async def cancel_it() -> None:
        command = asyncio.create_task(run(GitPlace(tmp_path), "status"))
        await asyncio.to_thread((tmp_path / "started").read_text)
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command
        assert gone(int((tmp_path / "pid").read_text()))

    asyncio.run(cancel_it())


def lingering(folder: Path) -> str:
    """A script that is ready when the file `ready` is there, says by the pipe `told` that it is to go, and waits for
    a line in the pipe `go`.
    """
    os.mkfifo(folder / "told")
    os.mkfifo(folder / "go")
    return (
        f'trap \'echo > "{folder}/told"; timeout 60 cat "{folder}/go"; exit 1\' TERM\n'
        f': > "{folder}/ready"\nsleep 300 & wait\n'
    )


async def cancelled_again_while_it_ends(folder: Path, command: asyncio.Task[GitOutput]) -> None:
    await asyncio.to_thread((folder / "told").read_text)
    for _ in range(5):
        command.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not command.done(), "git still lives"
    await asyncio.to_thread((folder / "go").write_text, "go\n")
    with pytest.raises(asyncio.CancelledError):
        await command
    assert gone(int((folder / "pid").read_text()))


def test_a_command_that_is_cancelled_again_and_again_is_ended_before_the_cancellation_leaves(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "GRACE", 60.0)
    fake.write_text(lingering(tmp_path))

    async def story() -> None:
        command = asyncio.create_task(run(GitPlace(tmp_path), "status"))
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0.01)
        command.cancel()
        await cancelled_again_while_it_ends(tmp_path, command)

    asyncio.run(story())


def test_a_cancellation_while_a_command_that_took_too_long_is_ended_is_not_lost(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "GRACE", 60.0)
    fake.write_text(lingering(tmp_path))

    async def story() -> None:
        for timeout in (0.5, 3.0, 18.0):  # as much time as it needs to be ready
            (tmp_path / "ready").unlink(missing_ok=True)
            command = asyncio.create_task(run(GitPlace(tmp_path), "status", timeout=timeout))
            while not (tmp_path / "ready").exists() and not command.done():
                await asyncio.sleep(0.01)
            if not command.done():
                break
        await cancelled_again_while_it_ends(tmp_path, command)

    asyncio.run(story())


IGNORING = """
import asyncio, signal, sys
from pathlib import Path
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from becket.kernel.git.program import GitPlace, run, run_at_start
from becket.kernel.contract.errors import GitFailed
here = Path(sys.argv[1])
for command in (lambda: asyncio.run(run(GitPlace(here), "rev-parse", "--verify", "none")),
                lambda: run_at_start(here, "rev-parse", "--verify", "none")):
    try:
        print("ended", command().code)
    except GitFailed as failed:
        print(failed)
"""


def test_no_failure_looks_like_success_where_ends_of_children_are_ignored(tmp_path: Path) -> None:
    """An ignored SIGCHLD is inherited from whoever started us; the kernel then keeps no exit code."""
    said = subprocess.run([sys.executable, "-c", IGNORING, str(tmp_path)], capture_output=True, text=True, check=True)
    assert [("exit code is lost" in line, "SIGCHLD" in line) for line in said.stdout.splitlines()] == [(True, True)] * 2


def test_the_program_itself_listens_to_the_ends_of_its_children_again(tmp_path: Path) -> None:
    script = (
        "import atexit, signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from becket.cli import main\n"
        "atexit.register(lambda: print(signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL))\n"
        "sys.argv = ['becket', '--version']\n"
        "main()\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.stdout.splitlines()[-1] == "True", said


def test_a_lack_of_descriptors_is_told_as_an_error_of_git(tmp_path: Path) -> None:
    async def starved() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            with pytest.raises(GitFailed, match=os.strerror(errno.EMFILE)):
                await run(GitPlace(tmp_path), "version")
            with pytest.raises(GitFailed, match=os.strerror(errno.EMFILE)):
                run_at_start(tmp_path, "version")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    asyncio.run(starved())


def test_git_gets_a_session_of_its_own(fake: Path, tmp_path: Path) -> None:
    """L27: a signal to its group must not reach us."""
    fake.write_text("cut -d' ' -f6 /proc/$$/stat\n")
    output = asyncio.run(run(GitPlace(tmp_path), "status"))
    assert output.text == (tmp_path / "pid").read_text().strip()
