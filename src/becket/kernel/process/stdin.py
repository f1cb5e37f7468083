"""The standard input of one child: a file with all of it, or a pipe that somebody goes on speaking into."""

from __future__ import annotations

import os

from becket.kernel.contract.process import ChildControl
from becket.kernel.contract.readiness import writable


def as_file(data: bytes) -> int:
    """A descriptor to read `data` from: never blocks the writer, unlike a pipe."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    file = os.memfd_create("becket-stdin")
    with open(file, "wb", closefd=False) as stream:
        stream.write(data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


class StdinWriter:
    """What is said to a child while it runs. A child that does not listen holds up nobody but its own speech."""

    def __init__(self, first: bytes, control: ChildControl) -> None:
        self._first = first
        self._control = control
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    async def deliver(self) -> None:
        """Say all of it, until the control's `close` or until the child listens no more."""
        try:
            await self._say(self._first)
            while (data := await self._control.spoken.get()) is not None:
                await self._say(data)
        except BrokenPipeError:
            pass
        self.close()

    def close(self) -> None:
        """The child reads the end of its input. May be called again."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1

    async def _say(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            await writable(self._writer)
            try:
                left = left[os.write(self._writer, left) :]
            except BlockingIOError:
                continue  # it took less than a whole page in the meantime
