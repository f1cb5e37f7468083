"""Ports for servers that a test starts later."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

_FIRST, _LAST, _HIGHEST = 10_000, 60_000, 65_535
_ENOUGH = 1_000
_GIVEN_BY_THE_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def unused_port() -> int:
    """A port of the loopback that nobody has, outside those that the kernel gives to whoever asks for any.

    Where it gives nearly all of them, one of those: then somebody may get it first.
    """
    given = _GIVEN_BY_THE_KERNEL.read_text() if _GIVEN_BY_THE_KERNEL.exists() else f"{_LAST} {_LAST}"
    low, high = (int(number) for number in given.split())
    ports = _outside(low, high)
    while True:
        port = secrets.choice(ports)
        try:
            with socket.socket() as line:
                line.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port


def _outside(low: int, high: int) -> range:
    """The larger part of what lies below and above the range, if it is large enough for many tests at once."""
    below, above = range(_FIRST, min(low, _LAST)), range(max(high + 1, _FIRST), _HIGHEST + 1)
    best = max(below, above, key=len)
    return best if len(best) >= _ENOUGH else range(_FIRST, _LAST)
