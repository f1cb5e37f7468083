"""Ports for servers that a test starts later."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

_FIRST, _LAST = 10_000, 60_000
_GIVEN_BY_THE_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def unused_port() -> int:
    """A port of the loopback that nobody has, outside those that the kernel gives to whoever asks for any."""
    given = int(_GIVEN_BY_THE_KERNEL.read_text().split()[0]) if _GIVEN_BY_THE_KERNEL.exists() else _LAST
    while True:
        port = secrets.choice(range(_FIRST, given if given > 2 * _FIRST else _LAST))
        try:
            with socket.socket() as line:
                line.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
