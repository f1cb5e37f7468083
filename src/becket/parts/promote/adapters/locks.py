"""The locks of a promotion: a ref transaction held open by a live git, and the index locks, held by ourselves.

Holding the ref alone is not enough: a `git switch` that meets it has changed index and files already when it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.promote import LockMark, ProcessMark, PromoteRequest, WhyNot
from becket.kernel.git.move import RefBusy, RefLost, explained
from becket.kernel.git.program import GRACE, GitCommandFailed, GitPlace, end, shown, start
from becket.parts.promote.adapters.intent import lock_mark, process_mark, remove_ours
from becket.parts.promote.adapters.places import PromotionRefused, WorkTree

_COMMAND = ("update-ref", "--no-deref", "--stdin", "-z", "-m")
_ANSWER = 60.0
_SETTLED = 1.0
_SETTLING = 0.05
_NOTE = b"Becket holds this lock while it moves the branch. If Becket was killed, its next start removes it.\n"


def reflog_words(key: str) -> str:
    """What the reflogs say of the promotion with this key."""
    return f"becket: promote {key}"


class RefTransaction:
    """`git update-ref --stdin`, kept at `prepare` for as long as the files are moved. Leaving it aborts it."""

    def __init__(self, process: asyncio.subprocess.Process, request: PromoteRequest, ref: Path, head: Path) -> None:
        self._process = process
        self._request = request
        self._lock = ref.with_name(f"{ref.name}.lock")
        self._head = head
        self.mark: ProcessMark = process_mark(process.pid)
        self.locks: tuple[LockMark, ...] = ()

    @classmethod
    async def begin(cls, place: GitPlace, common_dir: Path, request: PromoteRequest) -> Self:
        """Start git; it takes no lock before `prepare`."""
        process = await start(place, *_COMMAND, reflog_words(request.key), stdin=subprocess.PIPE)
        return cls(process, request, common_dir / request.ref, place.git_dir / "HEAD")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._end()

    async def prepare(self) -> None:
        """Take the ref's lock, if the ref has the expected value. Git locks a HEAD on it too, to write its reflog."""
        request = self._request
        head = self._head_now()
        change = f"start\0update {request.ref}\0{request.new}\0{request.old}\0prepare\0"
        if not await self._says(change, "start: ok", "prepare: ok"):
            raise await self._refusal()
        if head != self._head_now():
            raise PromotionRefused(WhyNot.main_busy, f"{self._head} was moved meanwhile; try again")
        on_head = head[0] == f"ref: {request.ref}"
        paths = [self._lock, self._head.with_name("HEAD.lock")] if on_head else [self._lock]
        self.locks = tuple(lock_mark(path) for path in paths)

    async def commit(self) -> bool:
        """Move the ref. False: git has ended without a word, and only the ref itself can tell."""
        if await self._says("commit\0", "commit: ok"):
            return True
        await self._end()
        return False

    def _head_now(self) -> tuple[str, int, int]:
        """Changes with every switch: git replaces the file each time."""
        found = self._head.lstat()
        return WorkTree(self._head.parent, None).head, found.st_ino, found.st_mtime_ns

    async def _says(self, command: str, *answers: str) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(command.encode())
            await self._process.stdin.drain()
            async with asyncio.timeout(_ANSWER):
                heard = [await self._process.stdout.readline() for _ in answers]
        except (ConnectionError, TimeoutError):
            return False
        return heard == [f"{answer}\n".encode() for answer in answers]

    async def _end(self) -> None:
        """Let git end by itself, so that it removes its own locks; what a killed one left is removed by mark."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), GRACE)
        if self._process.returncode is None:
            await end(self._process)
        if self._process.returncode != 0:
            for mark in self.locks:
                remove_ours(mark)

    async def _refusal(self) -> PromotionRefused | GitFailed:
        await self._end()
        assert self._process.stderr is not None
        said = shown(await self._process.stderr.read())
        code = self._process.returncode or -1
        failed = explained(self._request.ref, GitCommandFailed(_COMMAND, self._lock.parent, code, said))
        if isinstance(failed, RefBusy):
            advice = (
                f"if no git is running, a killed one has left a lock beside {self._lock} or {self._head}: remove it"
            )
            return PromotionRefused(WhyNot.ref_locked, f"{failed}; {advice}")
        return PromotionRefused(WhyNot.main_moved, str(failed)) if isinstance(failed, RefLost) else failed


class IndexLock:
    """The lock of one work tree's index, taken as git takes it: by a file that only one can create.

    Its inode is known before it is taken, because it is a second name of a file in a folder of ours.
    """

    def __init__(self, tree: WorkTree) -> None:
        self.tree = tree
        self.index = tree.git_dir / "index"
        self.folder = tree.git_dir / "becket-promote"
        self._path = tree.git_dir / "index.lock"
        self._pin = self.folder / "lock"

    def prepare(self) -> LockMark:
        """Make the folder and the file; nothing is locked yet."""
        if self.index.is_symlink():
            raise PromotionRefused(WhyNot.unsupported, f"{self.index} is a symbolic link; promote cannot replace it")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self._pin.write_bytes(_NOTE)
        return lock_mark(self._path, of=self._pin)

    def take(self) -> bool:
        """False: somebody else holds it."""
        try:
            os.link(self._pin, self._path)
        except FileExistsError:
            return False
        except PermissionError as error:  # what a file system without hard links says
            raise PromotionRefused(WhyNot.unsupported, f"{self._path} cannot be made: {error}") from error
        return True

    def age(self) -> float:
        """Of somebody's lock, in seconds; 0 if it has just gone."""
        with contextlib.suppress(FileNotFoundError):
            return time.time() - self._path.lstat().st_mtime
        return 0.0

    @property
    def fresh(self) -> bool:
        """The index was written so lately that its writer may still be about to move HEAD."""
        with contextlib.suppress(FileNotFoundError):
            return time.time() - self.index.stat().st_mtime < _SETTLED
        return False

    def busy(self) -> PromotionRefused:
        return PromotionRefused(
            WhyNot.main_busy,
            f"another git holds {self._path}; let it end, or, if none is running, remove the file",
        )

    def release(self, mark: LockMark) -> None:
        """Give it back, if it is ours, and forget everything about it."""
        remove_ours(mark)
        shutil.rmtree(self.folder, ignore_errors=True)


async def settle(locks: list[IndexLock]) -> None:
    """Git writes the index, lets its lock go, and only then moves HEAD: let whoever is in between get there."""
    if any(lock.fresh for lock in locks):
        await asyncio.sleep(_SETTLING)
