"""One keeper, seen from Becket: spawned, told its job, listened to, and put away."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.readiness import readable
from becket.kernel.process import identity
from becket.kernel.process.keeper.doors import DOORS
from becket.kernel.process.keeper.job import STARTED, ChildReport, Job
from becket.kernel.process.keeper.main import KILL

_BOOT = "import sys; sys.path.append(sys.argv[1]); from keeper.main import main; main(*map(int, sys.argv[2:]))"
TakeDoors = Callable[[Sequence[socket.socket]], None]
PATIENCE = KILL + 3.0
"""Seconds in which a keeper that was told to end has ended everything, itself included."""
_END = b"."
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
        self._told = asyncio.Event()

    @classmethod
    def spawn(
        cls, command: Sequence[str], control: socket.socket, far_end: int, outputs: Sequence[int], stdin: int
    ) -> Child:
        """Start a keeper, by what a sandbox made of its command. An OSError if no process can be made."""
        said = os.memfd_create("becket-said")
        try:
            process = subprocess.Popen(
                list(command),
                stdin=stdin,
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
        return cls(process, control, said)

    async def release(self, job: Job, take_doors: TakeDoors | None = None) -> ChildReport | None:
        """Let the child run, and wait for its report. None if the keeper ended without one.

        `take_doors` is given the sockets that listen at the job's doors, before the child's program runs.
        """
        loop = asyncio.get_running_loop()
        heard = b""
        try:
            await loop.sock_sendall(self._control, job.encode())
            self._told.set()
            if take_doors is not None and job.doors:
                heard = await self._doors(len(job.doors), take_doors)
            while len(heard) < _REPORT_LIMIT and (piece := await loop.sock_recv(self._control, 4096)):
                heard += piece
                if self.ran_from is None and heard.startswith(STARTED):
                    self.ran_from = time.monotonic()
        except ConnectionError:
            pass  # the keeper is gone; what it said before counts
        return ChildReport.decode(heard.removeprefix(STARTED))

    async def end(self) -> None:
        """Have the keeper kill everything and report, as soon as it knows its job."""
        await self._told.wait()
        with contextlib.suppress(OSError):  # it has ended by itself
            self._control.send(_END)

    async def _doors(self, count: int, take_doors: TakeDoors) -> bytes:
        """Receive the doors; returns what was heard in their place."""
        await readable(self._control.fileno())
        data, descriptors, _, _ = socket.recv_fds(self._control, len(DOORS), count, socket.MSG_CMSG_CLOEXEC)
        doors = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if data == DOORS and len(doors) == count:
            take_doors(doors)
            return b""
        for door in doors:
            door.close()
        return data

    async def put_away(self) -> bool:
        """End whatever is left. True if the keeper itself did that and ended in order."""
        self._control.close()  # the keeper's sign to kill everything, if it has not ended by itself
        try:
            async with asyncio.timeout(PATIENCE):
                await self._exit()
        except TimeoutError:
            self._process.kill()
            await self._exit()
        self.last_words = self._listen()
        return self._process.returncode == 0

    async def _exit(self) -> None:
        """Wait without a thread: a pidfd is readable when its process has ended."""
        handle = os.pidfd_open(self._process.pid)
        try:
            await readable(handle)
            self._process.wait()
        finally:
            os.close(handle)

    def _listen(self) -> str:
        """The last line that the sandbox or the keeper printed about itself."""
        size = os.fstat(self._said).st_size
        text = os.pread(self._said, 4096, max(size - 4096, 0)).decode("utf-8", "replace").strip()
        os.close(self._said)
        return text.splitlines()[-1] if text else ""
