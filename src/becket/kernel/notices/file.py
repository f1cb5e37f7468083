"""notify.file: one notice as one JSON line, appended to a file inside an allowed folder."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.spec import Autonomy, EffectClass

_LONGEST_LINE = 64_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.EAGAIN, errno.EMFILE, errno.ENFILE})


class FileNotice:
    """The payload becomes the line's `payload`. A relative target is meant inside the first folder."""

    def __init__(self, folders: Sequence[Path], now: Callable[[], float] = time.time) -> None:
        self.name = "notify.file"
        self.class_ = EffectClass.queryable
        self.needs = Autonomy.observe
        self.timeout = 10.0
        self._folders = tuple(folder.absolute() for folder in folders)
        self._now = now

    def check(self, call: EffectCall) -> str | None:
        if self._place(call.target) is None:
            allowed = ", ".join(str(folder) for folder in self._folders) or "none is configured"
            return f"the file {call.target!r} is not inside an allowed folder ({allowed})"
        try:
            line = _line("", "", call.payload)
        except (TypeError, ValueError) as error:
            return f"the payload is not JSON: {error}"
        if len(line) > _LONGEST_LINE:
            return f"the notice is longer than {_LONGEST_LINE} bytes; refer to an artifact instead"
        return None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        await asyncio.to_thread(self._append, call.target, _line(permit.key, at, call.payload))
        return {"file": call.target, "at": at}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return await asyncio.to_thread(self._find, call.target, key)

    def _place(self, target: str) -> tuple[Path, tuple[str, ...]] | None:
        """(allowed folder, the path below it), by the text alone; symlinks are refused when the path is opened."""
        path = Path(target)
        if not target or "\0" in target or target.endswith("/") or ".." in path.parts or not self._folders:
            return None
        full = path if path.is_absolute() else self._folders[0] / path
        for folder in self._folders:
            if full != folder and full.is_relative_to(folder):
                return folder, full.relative_to(folder).parts
        return None

    def _open(self, target: str, flags: int, stack: ExitStack) -> tuple[int, int]:
        """(file, its folder). Goes down step by step without following a symlink, so none can lead outside."""
        place = self._place(target)
        if place is None:
            raise OSError(errno.EACCES, "not inside an allowed folder")
        folder, parts = place
        at = self._entered(os.open(folder, _FOLDER), stack)
        for part in parts[:-1]:
            at = self._entered(os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at), stack)
        more = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in its place must not hang us
        file = self._entered(os.open(parts[-1], flags | more, 0o640, dir_fd=at), stack)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EACCES, "not a regular file")
        return file, at

    @staticmethod
    def _entered(descriptor: int, stack: ExitStack) -> int:
        stack.callback(os.close, descriptor)
        return descriptor

    def _append(self, target: str, line: bytes) -> None:
        written = 0
        try:
            with ExitStack() as stack:
                file, folder = self._open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT, stack)
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) != b"\n":
                    line = b"\n" + line  # somebody's torn line stays one line
                written = os.write(file, line)
                if written != len(line):
                    raise OSError(errno.ENOSPC, "only a part of the line was written")
                os.fsync(file)
                os.fsync(folder)
        except OSError as error:
            said = f"cannot append to {target}: {error.strerror or error}"
            raise EffectFailed(said, retryable=error.errno in _PASSING, ambiguous=written > 0) from error

    def _find(self, target: str, key: str) -> LookUpResult:
        try:
            with ExitStack() as stack:
                file, _ = self._open(target, os.O_RDONLY, stack)
                with os.fdopen(os.dup(file), "rb") as lines:
                    return LookUpResult.yes if any(_is_of(line, key) for line in lines) else LookUpResult.no
        except FileNotFoundError:
            return LookUpResult.no
        except OSError:
            return LookUpResult.cannot_tell


def _line(key: str, at: str, payload: dict[str, Json]) -> bytes:
    shown = {"key": key, "at": at, "payload": payload}
    return json.dumps(shown, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace") + b"\n"


def _is_of(line: bytes, key: str) -> bool:
    if key.encode() not in line:
        return False
    try:
        found = json.loads(line)
    except ValueError:
        return False  # torn: that notice did not arrive
    return isinstance(found, dict) and found.get("key") == key
