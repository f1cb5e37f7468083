"""Who listens on a port, as /proc tells it: the sockets, and every process that holds one of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from becket.kernel.process.identity import environment
from becket.parts.services.ports import MARKER, PortListener

_LISTEN = "0A"
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def sockets(port: int) -> frozenset[str]:
    """The inodes of the listening sockets on this port, at whatever address."""
    found = set()
    for table in _TABLES:
        with suppress(FileNotFoundError):  # a kernel without IPv6
            found |= set(_listening(Path(table).read_text().splitlines()[1:], port))
    return frozenset(found)


def _listening(rows: list[str], port: int) -> Iterator[str]:
    for row in rows:
        fields = row.split()
        if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
            yield fields[9]


def holders(inodes: Collection[str]) -> tuple[PortListener, ...]:
    """The processes that hold these sockets; one without a pid for each socket that nobody visible holds."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    unseen, found = set(wanted), []
    for name in os.listdir("/proc") if wanted else ():  # noqa: PTH208  # a Path per process is the cost of this loop
        if name.isdigit() and (held := wanted & _descriptors(name)):
            unseen -= held
            found.append(PortListener(pid=int(name), command=command(int(name)), marker=marker(int(name))))
    return (*found, *(PortListener(pid=0, command="", marker=None) for _ in unseen))


def _descriptors(pid: str) -> set[str]:
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  # the same
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))  # noqa: PTH115  # the same
    except OSError:  # gone, or another user's
        return set()
    return found


def marker(pid: int) -> str | None:
    """The release that a process belongs to, by the environment it was started with."""
    prefix = f"{MARKER}=".encode()
    for entry in environment(pid):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode("utf-8", "replace")
    return None


def command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace")[:200]
