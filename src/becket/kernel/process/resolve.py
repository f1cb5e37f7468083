"""Where a name that a child may reach is dialled: asked once, checked, and dialled at the very address checked."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from becket.kernel.process.reach import HostPort

Address = tuple[str, int]
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""From a listed name and port to where they are dialled. Whatever it returns is dialled; `NotPublic` refuses."""

_FRESH = 10.0
_PATIENCE = 20.0
_TRANSLATED = IPv6Network("64:ff9b::/96")
LIMIT = 65_536
"""Bytes that a connection may hold back in either direction, about."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NotPublic(Exception):
    """The name is listed, but leads into this machine or its own network."""


async def ask_system(host: str, port: int) -> list[Address]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(str(address[0]), int(address[1])) for *_, address in found]


class PublicOnly:
    """Answers with public addresses alone: whoever rules a listed name cannot point it into this network.

    Except to the addresses that are `listed` themselves, for a gateway of one's own: they are open anyway.
    """

    def __init__(self, ask: Resolve = ask_system, listed: Collection[Address] = ()) -> None:
        self._ask = ask
        self._listed = frozenset(listed)

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        found = await self._ask(host, port)
        public = [address for address in found if is_public(address[0]) or address in self._listed]
        if found and not public:
            raise NotPublic
        return public


def is_public(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if isinstance(address, IPv6Address):
        return _is_public_v6(address)
    return address.is_global and not address.is_multicast


def _is_public_v6(address: IPv6Address) -> bool:
    within = address.ipv4_mapped or address.sixtofour
    if address in _TRANSLATED:
        within = IPv4Address(int(address) & 0xFFFF_FFFF)
    if within is not None:
        return is_public(str(within))
    return address.is_global and not address.is_multicast


class AllowedConnector:
    """Connects to listed places, for one child: each name is asked for by one connection at a time."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._asking: dict[HostPort, asyncio.Lock] = {}
        self._known: dict[HostPort, tuple[float, Sequence[Address]]] = {}

    async def dial(self, place: HostPort) -> Streams:
        """An OSError if nobody answers there in time, `NotPublic` if the name must not be followed."""
        async with asyncio.timeout(_PATIENCE):
            problem: OSError = OSError(f"{place.host} has no address")
            for host, port in place.addresses or await self._addresses(place):
                try:
                    return await asyncio.open_connection(host, port, limit=LIMIT)
                except OSError as error:
                    problem = error
            raise problem

    async def _addresses(self, place: HostPort) -> Sequence[Address]:
        async with self._asking.setdefault(place, asyncio.Lock()):
            asked, addresses = self._known.get(place, (0.0, ()))
            now = asyncio.get_running_loop().time()
            if not addresses or now - asked > _FRESH:
                addresses = await self._resolve(place.host, place.port)
                self._known[place] = now, addresses
            return addresses
