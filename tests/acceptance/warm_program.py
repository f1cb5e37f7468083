"""The `becket` program without the second that its start takes: each call is a fork of a process that imported all.

A fork has its own folder, environment, standard streams and end, as a program that is spawned. What the start itself
does is left to those that are spawned: in the background (`Stage.start`), and with variables that are read only then.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

HEAVY = (
    "alembic.autogenerate", "alembic.command", "alembic.ddl.sqlite", "alembic.runtime.migration", "alembic.script",
    "httpx", "rich.console", "sqlalchemy.dialects.sqlite.pysqlite", "sqlalchemy.orm", "typer.main", "watchfiles",
)  # fmt: skip
"""What the verbs import inside of functions."""
AT_THE_START = ("BECKET_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
"""Variables that the interpreter, its libraries or Becket's modules read once."""
LONGEST = 300


class Warm:
    """One call at a time. It ends, and with it the call under way, when this process does."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._free = threading.Lock()
        self._begin()
        atexit.register(self._end)

    def _begin(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], env=self._environment, pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def _end(self) -> str:
        """What it had to say for itself: nothing, unless it failed."""
        self._channel.close()
        return self._process.communicate(timeout=10)[0].decode()

    def fits(self, environment: dict[str, str]) -> bool:
        return _significant(environment) == _significant(self._environment)

    def call(self, arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> tuple[int, bytes, bytes]:
        """The exit code and what it said, as `subprocess.run` gives them."""
        with self._free:
            try:
                return self._call({"arguments": arguments, "folder": str(folder), "environment": environment})
            except BaseException as error:  # also a test's time limit: what comes of this call is nobody's answer
                error.add_note(f"the warm program was ended: {self._end()}")
                self._begin()
                raise

    def _call(self, wish: dict[str, object]) -> tuple[int, bytes, bytes]:
        with contextlib.ExitStack() as files:
            pipes = [os.pipe(), os.pipe()]
            out, err = (files.enter_context(os.fdopen(read, "rb")) for read, _ in pipes)
            with contextlib.ExitStack() as ends:
                for _, end in pipes:
                    ends.callback(os.close, end)
                text = json.dumps(wish).encode()
                socket.send_fds(self._channel, [len(text).to_bytes(8, "big")], [0, *(end for _, end in pipes)])
                self._channel.sendall(text)
            heard: list[bytes] = []
            other = threading.Thread(target=lambda: heard.append(err.read()), daemon=True)
            other.start()
            said = out.read()
            other.join()
            code = self._channel.recv(4)
            assert code, "no exit code came"
            return int.from_bytes(code, "big", signed=True), said, heard[0]


def _significant(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(AT_THE_START)}


def _serve(channel: socket.socket) -> None:
    """Never a thread, never an event loop: the forks would inherit them half alive."""
    _import_all()
    gc.freeze()
    while True:
        size, fds, _, _ = socket.recv_fds(channel, 8, 3)
        if not size:
            return
        wish = json.loads(_whole(channel, int.from_bytes(size, "big")))
        assert threading.active_count() == 1, "a module started a thread when it was imported"
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(wish, fds)
        for fd in fds:
            os.close(fd)
        code = _ended(pid, channel)
        try:
            channel.sendall(code.to_bytes(4, "big", signed=True))
        except BrokenPipeError:  # whoever asked has gone
            return


def _whole(channel: socket.socket, size: int) -> bytes:
    text = b""
    while len(text) < size:
        text += channel.recv(size - len(text))
    return text


def _ended(pid: int, channel: socket.socket) -> int:
    """Its exit code. Whoever asked has gone, or it takes too long: it is killed."""
    handle = os.pidfd_open(pid)
    ready, _, _ = select.select([handle, channel], [], [], LONGEST)
    os.close(handle)
    if handle not in ready:
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _become(wish: dict[str, object], fds: Sequence[int]) -> None:
    """In the fork, which ends with it: the world is as `python -m becket.cli` finds it."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(str(wish["folder"]))
    os.environ.clear()
    os.environ.update(wish["environment"])  # type: ignore[call-overload]
    sys.path[0] = str(Path.cwd())
    sys.argv[1:] = wish["arguments"]  # type: ignore[call-overload]
    importlib.import_module("becket.cli").main()


def _import_all() -> None:
    import becket

    for name in HEAVY:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(becket.__path__, "becket."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name and ".kettle" not in module.name:
            importlib.import_module(module.name)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        _serve(ours)
