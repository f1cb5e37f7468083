"""Where a repository's state lives. Imported by the quick verbs: standard library only."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from becket.kernel.contract.errors import UsageError


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder `<git common dir>/becket`: `git clean -fdx` cannot eat it."""

    root: Path  # the work tree
    common: Path  # the git common dir

    @property
    def folder(self) -> Path:
        return self.common / "becket"

    @property
    def config(self) -> Path:
        return self.root / "becket.yaml"

    @property
    def loops(self) -> Path:
        return self.root / ".becket" / "loops"

    @property
    def resident(self) -> tuple[Path, Path]:
        """The test tree: the folder of its workspace, and the tree itself, where people look. Each linked worktree has
        one of its own.
        """
        name = _linked_name(self.root, self.common)
        return self.folder / "worktrees" / (f"test-{name}" if name else "test"), self.root / ".worktrees" / "base"

    @property
    def database(self) -> Path:
        return self.folder / "becket.db"

    @property
    def journal_mark(self) -> Path:
        """Tells of the journal when it is gone; beside the folder, so that it outlives that as well."""
        return self.common / "becket-journal.json"

    @property
    def backups(self) -> Path:
        return self.folder / "backups"  # the store itself puts one there before it changes tables

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def outbox(self) -> Path:
        return self.folder / "outbox"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def bell(self) -> Path:
        return self.folder / "bell"

    @property
    def engine_lock(self) -> Path:
        return self.folder / "engine.lock"

    @property
    def drivers(self) -> Path:
        """One lock for each command that drives a run of its own, named after its worker."""
        return self.folder / "drivers"

    @property
    def daemon_lock(self) -> Path:
        return self.folder / "daemon.lock"

    @property
    def watchdog_lock(self) -> Path:
        return self.folder / "watchdog.lock"

    @property
    def daemon_start(self) -> Path:
        """Locked in the name of a daemon that is being started, until it holds its own lock."""
        return self.folder / "daemon.start"

    @property
    def watchdog_start(self) -> Path:
        return self.folder / "watchdog.start"

    @property
    def daemon_restarts(self) -> Path:
        """When the daemon was started again, and whether the watchdog gave up; `becket up` removes it."""
        return self.folder / "daemon.restarts"

    @property
    def watchdog_restarts(self) -> Path:
        return self.folder / "watchdog.restarts"

    @property
    def autonomy(self) -> Path:
        """How far the daemon lets runs go, as it found out for itself; it names its process id."""
        return self.folder / "autonomy.json"

    @property
    def watchdog_database(self) -> Path:
        return self.folder / "watchdog.db"

    @property
    def watchdog_socket(self) -> Path:
        return self.folder / "watchdog.sock"

    @property
    def services_database(self) -> Path:
        return self.folder / "services.db"

    @property
    def services_wanted(self) -> Path:
        """Exists while the watchdog has services to care for, whether or not the daemon is supposed to be up."""
        return self.folder / "services.wanted"

    @property
    def releases(self) -> Path:
        return self.folder / "releases"

    @property
    def wanted(self) -> Path:
        """Exists while the daemon is supposed to be up; `becket down` removes it."""
        return self.folder / "wanted"

    def make(self) -> StateFolder:
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the state folder {self.folder} cannot be made ({error.strerror})") from None
        return self


def find_state(start: Path | None = None) -> StateFolder:
    """The state of the repository around `start`, or around where this process is."""
    return _state_around(start or Path.cwd())


@cache
def _state_around(start: Path) -> StateFolder:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        told = subprocess.run(
            ["git", "-C", str(start), "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel"],
            capture_output=True, text=True, check=False, env=clean,
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError("git was not found on PATH; install git 2.32 or newer") from None
    lines = told.stdout.splitlines()
    if told.returncode != 0 or len(lines) != 2:
        said = told.stderr.strip().splitlines()
        why = said[0] if said else "a bare repository"
        raise UsageError(f"{start} is not inside a git work tree ({why}); go to one, or `git init`")
    return StateFolder(root=Path(lines[1]), common=Path(lines[0]))


def _linked_name(root: Path, common: Path) -> str:
    """What git calls the linked worktree at `root`; empty for the first one, whose `.git` is a folder."""
    try:
        told = (root / ".git").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    own = root / told.removeprefix("gitdir:").strip()
    return own.name if own.parent.resolve() == (common / "worktrees").resolve() else ""


_FLOCK = struct.Struct("hhqqi4x")  # struct flock of fcntl(2): type, whence, start, length, pid


_SIGN = 1 << 32
"""Where on a lock its owner shows when it was last alive: beyond every process id."""


def ask_kernel(file: int, command: int, length: int, start: int = 0) -> tuple[int, int, int]:
    """An exclusive lock on so many bytes from `start` on: the kernel's answer as (type, length, pid)."""
    answer = fcntl.fcntl(file, command, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0))
    kind, _, _, found, pid = _FLOCK.unpack(answer)
    return kind, found, pid


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Nothing at the lock's place is to blame for these."""


_HELD: set[Path] = set()
"""By this process, which the kernel does not tell: a process id may be another's in another container."""


class Lock:
    """An operating-system lock held by this process: it cannot outlive its owner (L31).

    It covers as many bytes as the owner's process id says. Any two overlap in the first byte, so there is one owner;
    and whoever asks the kernel about the lock learns who that is, in the same breath and without taking it.

    The owner's last sign of life is kept the same way, as the length of a second range. It is shown without a write to
    any disk, which may be what hangs; it is gone with its owner; and anybody sees it without the owner's help.
    """

    def __init__(self, path: Path, about: Sequence[str] = ()) -> None:
        self._path = path
        self._file: int | None = None
        self._text = " ".join((str(os.getpid()), *about))

    def acquire(self) -> bool:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in _DISK:
                raise
            raise UsageError(f"the lock {self._path} cannot be used ({error.strerror}); remove what is there") from None
        try:
            ask_kernel(file, fcntl.F_OFD_SETLK, os.getpid())
        except (BlockingIOError, PermissionError):
            os.close(file)
            return False
        self._file = file
        _HELD.add(self._path)
        with suppress(OSError):  # for people, and for `doctor` when the process was killed; nothing is decided by it
            os.ftruncate(file, 0)
            os.pwrite(file, self._text.encode(), 0)
        return True

    def show_life(self) -> None:
        """Called by the owner's event loop as it goes round."""
        if self._file is not None:
            ask_kernel(self._file, fcntl.F_OFD_SETLK, time.monotonic_ns() // 1_000_000, _SIGN)

    def stands(self) -> bool:
        """Is the file that is locked still the one at the path? Another process would lock the new one as well."""
        try:
            return self._file is not None and os.path.samestat(os.fstat(self._file), self._path.stat())
        except OSError:
            return False

    def release(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None
            _HELD.discard(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from another one at the same path; None if there is none."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def lost_journal(path: Path, seen: tuple[int, int]) -> str:
    """Why nothing may be done that the journal could not record, such as to move a branch; or empty."""
    return "" if identity(path) == seen else f"the journal {path} was removed or replaced; see `becket store check`"


def is_ours(path: Path) -> bool:
    return path in _HELD


def holder(path: Path) -> int | None:
    """The pid that holds the lock now, or None. Only looks: it is in nobody's way."""
    return _length(path, 0)


def last_sign(path: Path) -> float | None:
    """When the lock's owner last showed life, by the monotonic clock; None if it never did, or there is no owner."""
    shown = _length(path, _SIGN)
    return None if shown is None else shown / 1000


def silent_for(path: Path) -> float | None:
    """Seconds since the last sign of life; the time for which the machine was suspended does not count."""
    sign = last_sign(path)
    return None if sign is None else max(time.monotonic() - sign, 0.0)


def _length(path: Path, start: int) -> int | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"the lock {path} cannot be read ({error.strerror}); remove what is there") from None
    try:
        kind, length, _ = ask_kernel(file, fcntl.F_OFD_GETLK, 1, start)
    except OSError:
        return None  # a folder or the like: nobody can hold it
    finally:
        os.close(file)
    return None if kind == fcntl.F_UNLCK else length
