"""One keeper, seen from Becket: spawned, told its job, listened to, and put away."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from becket.adapters.process import identity
from becket.adapters.process.keeper.job import STARTED, Job, Report
from becket.adapters.process.keeper.main import KILL
from becket.contract.process import ChildRef

_BOOT = "import sys; sys.path.append(sys.argv[1]); from keeper.main import main; main(*map(int, sys.argv[2:]))"
_PATIENCE = KILL + 3.0
_REPORT_LIMIT = 16_384


@dataclass(frozen=True, slots=True)
class KeeperProgram:
    """The interpreter that runs a keeper, and the folder with the keeper's package."""

    python: Path
    package: Path

    @classmethod
    def default(cls) -> KeeperProgram:
        base = getattr(sys, "_base_executable", None) or sys.executable  # a virtual environment's would only be slower
        return cls(Path(base), Path(__file__).parent / "keeper")

    def command(self, *descriptors: int) -> list[str]:
        """`descriptors`: the control socket, the log and, if it is wanted apart, standard output."""
        isolated = ["-I", "-S", "-X", "utf8"]
        return [str(self.python), *isolated, "-c", _BOOT, str(self.package.parent), *map(str, descriptors)]


class Child:
    """A keeper and its child. Until `release`, nothing of the child runs; after `put_away`, nothing of it lives."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, said: int) -> None:
        self._process = process
        self._control = control
        self._said = said
        self.ref: ChildRef = identity.reference(process.pid)
        self.ran_from: float | None = None
        self.last_words = ""

    @classmethod
    def spawn(
        cls, command: Sequence[str], control: socket.socket, far_end: int, outputs: Sequence[int], stdin: bytes
    ) -> Child:
        """Start a keeper, by what a sandbox made of its command. An OSError if no process can be made."""
        said = os.memfd_create("becket-said")
        fed = _as_file(stdin)
        try:
            process = subprocess.Popen(
                list(command),
                stdin=fed,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd="/",
                env={},
                pass_fds=(far_end, *outputs),
                start_new_session=True,
            )
        except BaseException:
            os.close(said)
            raise
        finally:
            os.close(fed)
        return cls(process, control, said)

    async def release(self, job: Job) -> Report | None:
        """Let the child run, and wait for its report. None if the keeper ended without one."""
        loop = asyncio.get_running_loop()
        heard = b""
        try:
            await loop.sock_sendall(self._control, job.encode())
            while len(heard) < _REPORT_LIMIT and (piece := await loop.sock_recv(self._control, 4096)):
                heard += piece
                if self.ran_from is None and heard.startswith(STARTED):
                    self.ran_from = time.monotonic()
        except ConnectionError:
            pass  # the keeper is gone; what it said before counts
        return Report.decode(heard.removeprefix(STARTED))

    async def put_away(self) -> bool:
        """End whatever is left. True if the keeper itself did that and ended in order."""
        self._control.close()  # the keeper's sign to kill everything, if it has not ended by itself
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._exit()
        except TimeoutError:
            self._process.kill()
            await self._exit()
        self.last_words = self._listen()
        return self._process.returncode == 0

    async def _exit(self) -> None:
        """Wait without a thread: a pidfd is readable when its process has ended."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        handle = os.pidfd_open(self._process.pid)
        loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
            self._process.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)

    def _listen(self) -> str:
        """The last line that the sandbox or the keeper printed about itself."""
        size = os.fstat(self._said).st_size
        text = os.pread(self._said, 4096, max(size - 4096, 0)).decode("utf-8", "replace").strip()
        os.close(self._said)
        return text.splitlines()[-1] if text else ""


def _as_file(data: bytes) -> int:
    """A descriptor to read `data` from: never blocks the writer, unlike a pipe."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    file = os.memfd_create("becket-stdin")
    with open(file, "wb", closefd=False) as stream:
        stream.write(data)
    os.lseek(file, 0, os.SEEK_SET)
    return file
