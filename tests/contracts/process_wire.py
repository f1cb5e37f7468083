"""Decoys on the loopback for the escapes through the network, and another child's proxy beside them."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import process_probes

from becket.kernel.process.egress import Egress
from becket.kernel.process.reach import HostPort
from becket.kernel.process.resolve import Address, PublicOnly

DENIED = ("unlisted.test:443", "listed.test:444", "rebound.test:443")
_BEHIND = {
    ("listed.test", 443): "listed_name",
    ("listed.test", 444): "unlisted_port",
    ("unlisted.test", 443): "unlisted_host",
    ("rebound.test", 443): "rebound_name",
    ("another.test", 443): "proxy_of_another",
}


class Wire:
    """One listener for each attempt: whoever arrives there has escaped, or was meant to."""

    def __init__(self) -> None:
        tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
        self._at = {
            "connect_tcp": _listen(tcp, "127.0.0.1"),
            "tcp_other_address": _listen(tcp, "127.0.0.2"),
            "connect_mptcp": _listen(tcp, "127.0.0.1"),
            "fast_open": _listen(tcp, "127.0.0.1"),
            "send_udp": _listen(udp, "127.0.0.1"),
            "udp_other_address": _listen(udp, "127.0.0.2"),
            "listed_address": _listen(tcp, "127.0.0.1"),
            **{name: _listen(tcp, "127.0.0.1") for name in _BEHIND.values()},
        }
        self._at["listed_port_elsewhere"] = _listen(tcp, "127.0.0.2", self._port("listed_address"))
        self._at["listed_port_udp"] = _listen(udp, "127.0.0.1", self._port("listed_address"))
        self._abstract = f"becket-decoy-{os.urandom(8).hex()}"
        self._at["abstract_socket"] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._at["abstract_socket"].bind("\0" + self._abstract)

    @property
    def reach(self) -> tuple[str, ...]:
        return f"127.0.0.1:{self._port('listed_address')}", "listed.test:443", "rebound.test:443"

    def targets(self) -> dict[str, object]:
        return {
            "tcp": self._port("connect_tcp"),
            "tcp_2": self._port("tcp_other_address"),
            "mptcp": self._port("connect_mptcp"),
            "fast": self._port("fast_open"),
            "udp": self._port("send_udp"),
            "udp_2": self._port("udp_other_address"),
            "listed": self._port("listed_address"),
            "abstract": self._abstract,
        }

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Names lead to their decoys; only `rebound.test` is looked up as in real life, and found to be private."""
        if host == "rebound.test":
            return await PublicOnly(self._decoy)(host, port)
        return await self._decoy(host, port)

    async def _decoy(self, host: str, port: int) -> Sequence[Address]:
        return [("127.0.0.1", self._port(_BEHIND[host, port]))]

    @asynccontextmanager
    async def proxy_of_another(self) -> AsyncIterator[str]:
        """The address of a proxy that serves another child, without its token."""
        ways = Egress([HostPort("another.test", 443)], self.resolve, own_network=False)
        try:
            yield f"http://127.0.0.1:{ways.ports[0]}"
        finally:
            await ways.close()

    def impossible(self) -> list[str]:
        """The attempts that this very machine does not know, sandbox or not: its kernel may lack them."""
        unknown = []
        for name in ("connect_mptcp", "fast_open"):
            with suppress(OSError):  # a fast-open send may be under way still
                process_probes.ATTEMPTS[name][1](self.targets())
            if not _arrived(self._at[name]):
                unknown.append(name)
        return unknown

    def arrived(self) -> dict[str, bool]:
        return {name: _arrived(listener) for name, listener in self._at.items()}

    def close(self) -> None:
        for listener in self._at.values():
            listener.close()

    def _port(self, name: str) -> int:
        port: int = self._at[name].getsockname()[1]
        return port


def _listen(kind: socket.SocketKind, host: str, port: int = 0) -> socket.socket:
    listener = socket.socket(socket.AF_INET, kind)
    listener.bind((host, port))
    if kind is socket.SOCK_STREAM:
        listener.listen()
    return listener


def _arrived(listener: socket.socket) -> bool:
    listener.settimeout(0.02)
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(16)
    except TimeoutError:
        return False
    return True
