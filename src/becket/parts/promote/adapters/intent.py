"""The intent of a promotion on disk: one JSON file, and one lock that outlives us as long as our gits do."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from pydantic import ValidationError

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.promote import IntentHeld, LockMark, ProcessMark, PromoteIntent

_POLL = 0.01


class IntentFile:
    """Keeps the one intent of a repository in a folder of the state. Opens nothing before it is asked to. Its owner
    sees to it that there is only one per repository.

    `ground` says why nothing may be promoted now; it is asked at every write, the last thing before the branch moves.
    """

    def __init__(self, folder: Path, ground: Callable[[], str] = lambda: "") -> None:
        self._folder = folder
        self._file = folder / "promote.json"
        self._lock = folder / "promote.lock"
        self._ground = ground

    @contextlib.asynccontextmanager
    async def hold(self, patience: float) -> AsyncIterator[int]:
        """The right to promote, as a locked descriptor. Waits for `patience` seconds, then raises IntentHeld.

        Every git that a promotion starts inherits the descriptor: nobody gets the right while one of them lives.
        """
        self._folder.mkdir(exist_ok=True)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await self._locked(descriptor, time.monotonic() + patience)
            yield descriptor
        finally:
            os.close(descriptor)

    async def _locked(self, descriptor: int, until: float) -> None:
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise IntentHeld(
                        f"another promotion, or a git that one had started, still holds {self._lock}; try again later"
                    ) from None
                await asyncio.sleep(_POLL)

    def write(self, intent: PromoteIntent) -> None:
        """Durable when it returns; replaces the one before."""
        if trouble := self._ground():
            raise GitFailed(f"nothing is promoted: {trouble}")
        fresh = self._file.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(intent.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._file)
        self._sync_folder()

    def read(self) -> PromoteIntent | None:
        try:
            return PromoteIntent.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise GitFailed(
                f"{self._file} tells of an interrupted promotion and cannot be read: {error}; look at `git status` "
                "where the branch is checked out, then remove the file"
            ) from error

    def clear(self) -> None:
        self._file.unlink(missing_ok=True)

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def process_mark(pid: int) -> ProcessMark:
    """Of a process that is alive, or was a moment ago."""
    return ProcessMark(pid=pid, started=_started(pid) or "ended")


def is_alive(mark: ProcessMark) -> bool:
    return _started(mark.pid) == mark.started


def _started(pid: int) -> str | None:
    """Boot and clock ticks since; None for a process that is no more, or is only waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}:{fields[18]}"


def lock_mark(path: Path, of: Path | None = None) -> LockMark:
    """Of the file that is, or will be, at `path`; `of` is another name of the same file."""
    found = (of or path).lstat()
    return LockMark(path=path, device=found.st_dev, inode=found.st_ino, modified_ns=found.st_mtime_ns)


def is_ours(mark: LockMark) -> bool:
    """Whether the file at the mark's path is the marked one."""
    try:
        return lock_mark(mark.path) == mark
    except (FileNotFoundError, NotADirectoryError):
        return False


def remove_ours(mark: LockMark) -> None:
    """Remove a lock file if it is the marked one; a foreign one stays."""
    if is_ours(mark):
        mark.path.unlink(missing_ok=True)
