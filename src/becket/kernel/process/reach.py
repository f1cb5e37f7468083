"""The places a child may reach: `host:port`, read so strictly that no two spellings mean the same place."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec, Network
from becket.kernel.process import words

_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253
_MOST = 64


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host and a port. `host` is a name in lower case, or an address as `ipaddress` writes it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        return self.host == "localhost" or (self.is_address and ipaddress.ip_address(self.host).is_loopback)

    @property
    def is_address(self) -> bool:
        return ":" in self.host or _looks_numeric(self.host)

    @property
    def inside(self) -> tuple[str, int]:
        """Where a loopback place is found in a network of the child's own."""
        return ("127.0.0.1" if self.host == "localhost" else self.host), self.port

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where to dial without asking anybody; nothing for a name."""
        if self.host == "localhost":
            return ("127.0.0.1", self.port), ("::1", self.port)
        return ((self.host, self.port),) if self.is_address else ()


def read_place(text: str) -> HostPort | None:
    """The place that `text` names, or None for anything unusual: a dot at the end, other digits, odd addresses."""
    host, _, port = text.rpartition(":")
    if not _PORT.fullmatch(port) or int(port) > 65535:
        return None
    known = _read_v6(host[1:-1]) if host.startswith("[") and host.endswith("]") else _read_name_or_v4(host)
    return None if known is None else HostPort(known, int(port))


def places_of(spec: ChildSpec) -> tuple[HostPort, ...]:
    """What `spec.reach` allows, each place once. A UsageError for what it cannot mean."""
    if spec.network is not Network.none:
        raise UsageError(words.REACH_NEEDS_NONE.format(network=spec.network.value))
    if len(spec.reach) > _MOST:
        raise UsageError(words.REACH_TOO_MANY.format(most=_MOST))
    return tuple(dict.fromkeys(_allowed(entry) for entry in spec.reach))


def doors_of(places: Iterable[HostPort]) -> list[HostPort]:
    """The loopback places, one for each address inside."""
    return list({place.inside: place for place in places if place.loopback}.values())


def _allowed(entry: str) -> HostPort:
    place = read_place(entry)
    if place is None or place.host in ("0.0.0.0", "::"):  # noqa: S104 - refused, as it would mean any of our own
        raise UsageError(words.REACH_UNCLEAR.format(entry=entry))
    return place


def _read_v6(text: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return None if address.scope_id is not None or address.ipv4_mapped is not None else str(address)


def _read_name_or_v4(host: str) -> str | None:
    if not host.isascii():
        return None
    name = host.lower()
    if _looks_numeric(name):
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            return None
    return name if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) else None


def _looks_numeric(host: str) -> bool:
    """As resolvers see it: a name whose last label is a number is some old spelling of an address."""
    return bool(_NUMBER.fullmatch(host.rpartition(".")[2]))
