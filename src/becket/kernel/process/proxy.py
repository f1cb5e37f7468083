"""The HTTP proxy of one child: CONNECT and plain `http://` requests to listed places, 403 for every other."""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import Collection
from dataclasses import dataclass

from becket.kernel.process import words
from becket.kernel.process.reach import HostPort, read_place
from becket.kernel.process.relay import parting, relay
from becket.kernel.process.resolve import AllowedConnector, NotPublic, Streams

_LINE = re.compile(r"([A-Z]{1,32}) (\S+) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_URL = re.compile(r"http://([^/?#@\\]+)([/?][^#]*)?", re.IGNORECASE)
_NOT_PASSED = frozenset({"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection"})
_HEAD_PATIENCE = 30.0
_LINGER, _LINGER_BYTES = 1.0, 1_000_000
_MOST_DENIED, _LONGEST_DENIED = 50, 260
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
USER = "becket"


class ProxyRefusal(Exception):
    """An answer of the proxy itself."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """The head of one request: `wanted` as it was written, `passed` what goes on to an http server, if any."""

    wanted: str
    proof: str
    passed: bytes


class DeniedConnections:
    """What was asked for in vain, each place once. Written by the child, so cut and made printable."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def note(self, wanted: str) -> None:
        if len(self._seen) < _MOST_DENIED:
            shown = (char if "!" <= char <= "~" else "?" for char in wanted[:_LONGEST_DENIED].lower())
            self._seen["".join(shown)] = None

    def listed(self) -> tuple[str, ...]:
        return tuple(self._seen)


class Proxy:
    """Answers one connection at a time, any number side by side. With a `token`, only to those who know it."""

    def __init__(
        self, allowed: Collection[HostPort], dialler: AllowedConnector, denials: DeniedConnections, token: str | None
    ) -> None:
        self._allowed = frozenset(allowed)
        self._dialler = dialler
        self._denials = denials
        secret = base64.b64encode(f"{USER}:{token}".encode()).decode()
        self._proof = None if token is None else f"basic {secret}"

    async def serve(self, client: Streams) -> None:
        reader, writer = client
        try:
            request = await _read(reader)
            if request is None:
                return
            server = await self._dial(request)
        except ProxyRefusal as refusal:
            await _answer(reader, writer, refusal)
            return
        async with parting(server[1]):
            (server[1] if request.passed else writer).write(request.passed or _ESTABLISHED)
            await relay(client, server)

    async def _dial(self, request: ProxyRequest) -> Streams:
        if not self._knows(request.proof):
            raise ProxyRefusal("407 Proxy Authentication Required", words.PROXY_OF_ANOTHER)
        place = read_place(request.wanted)
        if place is None or place not in self._allowed:
            self._denials.note(request.wanted)
            raise ProxyRefusal("403 Forbidden", words.PROXY_DENIED.format(wanted=request.wanted))
        try:
            return await self._dialler.dial(place)
        except NotPublic:
            self._denials.note(request.wanted)
            raise ProxyRefusal("403 Forbidden", words.PROXY_NOT_PUBLIC.format(wanted=request.wanted)) from None
        except OSError as error:
            reason = error.strerror or str(error) or "no answer in time"
            text = words.PROXY_NO_ANSWER.format(wanted=request.wanted, reason=reason)
            raise ProxyRefusal("502 Bad Gateway", text) from None

    def _knows(self, proof: str) -> bool:
        if self._proof is None:
            return True
        scheme, _, secret = proof.partition(" ")
        return hmac.compare_digest(f"{scheme.lower()} {secret.strip()}".encode(), self._proof.encode())


async def _read(reader: StreamReader) -> ProxyRequest | None:
    """The head of the request; None if the connection ends before it. A Refusal for what is no proper request."""
    try:
        async with asyncio.timeout(_HEAD_PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, OSError):
        return None
    except asyncio.LimitOverrunError:
        raise ProxyRefusal("431 Request Header Fields Too Large", words.PROXY_UNCLEAR) from None
    first, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    line = _LINE.fullmatch(first)
    headers = [_HEADER.fullmatch(text) for text in rest]
    if line is None:
        raise ProxyRefusal("400 Bad Request", words.PROXY_UNCLEAR)
    pairs = [(header[1], header[2]) for header in headers if header is not None]
    if len(pairs) < len(rest):
        raise ProxyRefusal("400 Bad Request", words.PROXY_UNCLEAR)
    proof = next((value for name, value in pairs if name.lower() == "proxy-authorization"), "")
    if line[1] == "CONNECT":
        return ProxyRequest(line[2], proof, b"")
    return _plain(line[1], line[2], pairs, proof)


def _plain(method: str, target: str, headers: list[tuple[str, str]], proof: str) -> ProxyRequest:
    """A plain request, as it goes on: one for each connection, and the host named by its target alone."""
    url = _URL.fullmatch(target)
    if url is None:
        raise ProxyRefusal("400 Bad Request", words.PROXY_UNCLEAR)
    authority, path = url[1], url[2] or "/"
    path = path if path.startswith("/") else f"/{path}"
    wanted = authority if authority.rpartition(":")[2].isdecimal() else f"{authority}:80"
    kept = [f"{name}: {value}" for name, value in headers if name.lower() not in _NOT_PASSED]
    lines = [f"{method} {path} HTTP/1.1", f"Host: {authority}", *kept, "Connection: close"]
    return ProxyRequest(wanted, proof, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


async def _answer(reader: StreamReader, writer: StreamWriter, refusal: ProxyRefusal) -> None:
    """Say no, and read on for a moment: a close with unread bytes would take the answer from the client."""
    body = f"{refusal}\n".encode("utf-8", "replace")
    asked = 'Proxy-Authenticate: Basic realm="becket"\r\n' if refusal.status.startswith("407") else ""
    head = (
        f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain; charset=utf-8\r\n{asked}"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    try:
        async with asyncio.timeout(_LINGER):
            writer.write(head.encode() + body)
            await writer.drain()
            writer.write_eof()
            left = _LINGER_BYTES
            while left > 0 and (data := await reader.read(65_536)):
                left -= len(data)
    except OSError:
        pass  # the client is gone, or never ends: it had its answer
