"""Runs the git program: no `GIT_*` inherited, no hooks, no terminal, no network, never for longer than a minute."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import select
import shlex
import signal
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from becket.kernel.contract.errors import GitFailed, UsageError
from becket.kernel.contract.outlasting import to_its_end
from becket.kernel.contract.readiness import readable

T = TypeVar("T")

TIMEOUT = 60.0
GRACE = 2.0  # after TERM git removes its lock files; after KILL it cannot
_SHOWN = 2000
_LOST = -1000  # in the place of an exit code that nobody kept; a signal's is above -100

_HARMLESS = (
    "--no-pager",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.auto=0"),
)


@dataclass(frozen=True, slots=True)
class GitPlace:
    """The repository a command is about. Named in full, so that git neither searches for it nor asks who owns it.

    A `private` place is one of ours: the person's and the machine's git configuration do not count there, so that
    the same commit gives the same files everywhere and no configured filter runs.
    """

    git_dir: Path
    work_tree: Path | None = None
    private: bool = False
    index: Path | None = None  # instead of the work tree's own
    inherits: tuple[int, ...] = ()  # descriptors whose locks shall live as long as git does
    objects: Path | None = None  # new objects are written there instead
    variables: tuple[tuple[str, str], ...] = ()  # on top of the usual environment

    @property
    def cwd(self) -> Path:
        return self.work_tree or self.git_dir

    @property
    def options(self) -> tuple[str, ...]:
        git_dir = f"--git-dir={self.git_dir}"
        return (git_dir,) if self.work_tree is None else (git_dir, f"--work-tree={self.work_tree}")


@dataclass(frozen=True, slots=True)
class GitOutput:
    """What a command that ended said."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return shown(self.stdout).strip()


class GitCommandFailed(GitFailed):
    """Git ran and said no."""

    def __init__(self, command: tuple[str, ...], cwd: Path, code: int, stderr: str) -> None:
        self.command = command
        self.code = code
        self.stderr = stderr.strip()
        said = self.stderr[:_SHOWN] or "it said nothing"
        super().__init__(f"`git {shlex.join(command)}` failed in {cwd} with exit code {code}: {said}")


class GitTimedOut(GitFailed):
    """Git was ended because it took too long; it may have done its work or not."""

    def __init__(self, command: tuple[str, ...], cwd: Path, seconds: float) -> None:
        super().__init__(
            f"`git {shlex.join(command)}` took longer than {seconds:g} s in {cwd} and was ended; "
            "see whether the disk answers and whether another git holds a lock there"
        )


def shown(raw: bytes) -> str:
    """Bytes of git as text that any record can hold; what is not UTF-8 is escaped."""
    return raw.decode("utf-8", "backslashreplace")


def environment(ceiling: Path, *, private: bool = False) -> dict[str, str]:
    """Our own environment without any `GIT_*` (L1), and git's ways to the outside closed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {
        "LC_ALL": "C",
        "GIT_CEILING_DIRECTORIES": str(ceiling),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",  # reading must not write the person's index
        "GIT_ALLOW_PROTOCOL": "",  # no transport at all: a partial clone would fetch what it lacks
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",  # a hash must mean the object of that hash
        "GIT_AUTHOR_NAME": "Becket",
        "GIT_AUTHOR_EMAIL": "becket@localhost",
        "GIT_COMMITTER_NAME": "Becket",
        "GIT_COMMITTER_EMAIL": "becket@localhost",
    }
    if private:
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    return env


async def start(place: GitPlace, *command: str, stdin: int) -> asyncio.subprocess.Process:
    """Start one command to talk with, in a session of its own; whoever calls this sees to its end."""
    with _told_if_not_started(place, command):
        return await asyncio.create_subprocess_exec(
            *_argv(place, command),
            cwd=place.cwd,
            env=_environment(place),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=place.inherits,
        )


def _argv(place: GitPlace, command: tuple[str, ...]) -> tuple[str, ...]:
    return ("git", *_HARMLESS, *place.options, *command)


def _environment(place: GitPlace) -> dict[str, str]:
    env = environment(place.cwd.parent, private=place.private)
    if place.objects is not None:
        env["GIT_OBJECT_DIRECTORY"] = str(place.objects)
    if place.index is not None:
        env["GIT_INDEX_FILE"] = str(place.index)
    return env | dict(place.variables)


@contextlib.contextmanager
def _told_if_not_started(place: GitPlace, command: tuple[str, ...]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise not_started(place.cwd, error) from error
    except ValueError as error:  # a NUL in an argument
        raise GitFailed(f"`git {' '.join(command)!r}` cannot be run: {error}") from error


async def run(
    place: GitPlace, *command: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,), timeout: float = TIMEOUT
) -> GitOutput:
    """Run one command to its end; an exit code that is not in `ok` is a GitCommandFailed.

    On cancellation git is ended before CancelledError leaves. What it reads and says lies in memory: there is nothing
    to attend to but its end, and that costs half of three pipes and a thread.
    """
    with contextlib.ExitStack() as files:
        with _told_if_not_started(place, command):
            given, said, complained = (files.enter_context(_in_memory()) for _ in range(3))
            given.write(stdin)
            given.seek(0)
            process, lifeline = _start_with_files(place, command, given, said, complained)
        try:
            async with asyncio.timeout(timeout):
                await _exit(process)
        except TimeoutError:
            raise GitTimedOut(command, place.cwd, timeout) from None
        finally:
            if process.returncode is None:
                await to_its_end(_end_all(process, lifeline))
            else:
                os.close(lifeline)
        output = _output(command, place.cwd, process, said, complained)
    if output.code not in ok:
        raise GitCommandFailed(command, place.cwd, output.code, output.stderr)
    return output


def _start_with_files(
    place: GitPlace, command: tuple[str, ...], stdin: io.FileIO, stdout: io.FileIO, stderr: io.FileIO
) -> tuple[subprocess.Popen[bytes], int]:
    """Git, and a descriptor that is at its end when git and all it started have ended."""
    lifeline, held = os.pipe()
    try:
        process = subprocess.Popen(
            _argv(place, command),
            cwd=place.cwd,
            env=_environment(place),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            pass_fds=(*place.inherits, held),
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(held)
    return process, lifeline


def _in_memory() -> io.FileIO:
    return io.FileIO(os.memfd_create("becket-git"), "r+")


def _content(file: io.FileIO) -> bytes:
    file.seek(0)
    return file.readall()


def _output(
    command: tuple[str, ...], cwd: Path, process: subprocess.Popen[bytes], said: io.FileIO, complained: io.FileIO
) -> GitOutput:
    if process.returncode == _LOST:
        raise GitFailed(
            f"`git {shlex.join(command)}` ended in {cwd}, and its exit code is lost: something takes away the ends "
            "of our child processes; see whether this program was started with SIGCHLD ignored"
        )
    return GitOutput(process.returncode, _content(said), shown(_content(complained)))


async def _exit(process: subprocess.Popen[bytes]) -> None:
    await _ended(process)
    _reap(process)


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait without a thread: a pidfd is readable when its process has ended."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:  # it ended, and somebody else has reaped it
        return
    try:
        await readable(handle)
    finally:
        os.close(handle)


def _reap(process: subprocess.Popen[bytes], options: int = 0) -> None:
    """By ourselves: where SIGCHLD is ignored no exit code is kept, and `Popen.wait` calls that a success."""
    try:
        pid, status = os.waitpid(process.pid, options)
    except ChildProcessError:
        process.returncode = _LOST
        return
    if pid:
        process.returncode = os.waitstatus_to_exitcode(status)


def run_at_start(folder: Path, *command: str) -> GitOutput:
    """Run one command that finds its repository by itself, blocking: only for start-up, before anything else runs."""
    with contextlib.ExitStack() as files:
        try:
            said, complained = (files.enter_context(_in_memory()) for _ in range(2))
            process = subprocess.Popen(
                ["git", *_HARMLESS, *command],
                cwd=folder,
                env=environment(Path("/")),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
            )
        except OSError as error:
            raise not_started(folder, error) from error
        ended = False
        try:
            ended = _ends_within(process, TIMEOUT)
        finally:
            if not ended:
                _signal(process.pid, signal.SIGKILL)
            _reap(process)
        if not ended:
            raise GitTimedOut(command, folder, TIMEOUT)
        return _output(command, folder, process, said, complained)


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        look = select.poll()
        look.register(handle, select.POLLIN)
        return bool(look.poll(seconds * 1000))
    finally:
        os.close(handle)


def not_started(folder: Path, error: OSError) -> GitFailed | UsageError:
    if isinstance(error, FileNotFoundError) and folder.is_dir():
        return UsageError("the git program is not on the PATH; install git")
    return GitFailed(f"git could not be started in {folder}: {error}")


async def end(process: asyncio.subprocess.Process) -> None:
    """TERM, then KILL, the whole session: git's own children hold its pipes open."""
    await _end_session(process.pid, process.wait)


async def _end_all(process: subprocess.Popen[bytes], lifeline: int) -> None:
    """Git is reaped last: until then its number, and so that of its session, cannot be another's."""

    async def all_ended() -> None:
        await _ended(process)
        await readable(lifeline)

    try:
        await _end_session(process.pid, all_ended)
    finally:
        _reap(process, os.WNOHANG)
        os.close(lifeline)


async def _end_session(pid: int, ended: Callable[[], Coroutine[None, None, object]]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended(), GRACE)
            return


def _signal(pid: int, number: signal.Signals) -> None:
    """To the whole session, if its leader is not reaped: else its number may be another's."""
    with contextlib.suppress(ChildProcessError, ProcessLookupError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.killpg(pid, number)
