"""The doorbell: one byte on a unix datagram socket says "look at the tables". A lost ring costs a second, no more."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

MAX_PATH = 107
"""Longer socket paths do not fit the kernel's address structure."""


class Bell:
    """The listening side; held by the engine of a state folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.stat().st_mode):
                path.unlink()  # left by an engine that is gone: we hold the engine lock
        with short_address(path) as address:
            self._socket.bind(address)

    def fileno(self) -> int:
        return self._socket.fileno()

    def drain(self) -> None:
        """Forget every ring so far; called before looking, so that a later ring is not lost."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._socket.recv(16)

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(OSError):  # it is gone, or the next engine removes it
            self._path.unlink()


def ring(path: Path) -> bool:
    """Ring; False if nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as caller:
        try:
            with short_address(path) as address:
                caller.sendto(b"!", address)
        except BlockingIOError:
            return True  # the queue is full of rings: it will look
        except OSError:
            return False
    return True


@contextlib.contextmanager
def short_address(path: Path) -> Iterator[str]:
    """An address for the socket that fits, however deep the repository lies."""
    if len(os.fsencode(path)) <= MAX_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
