"""The ways out of one child's network: its proxy, and plain pipes to the listed places of this machine's loopback."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from becket.kernel.process.proxy import USER, DeniedConnections, Proxy
from becket.kernel.process.reach import HostPort, doors_of
from becket.kernel.process.relay import parting, relay
from becket.kernel.process.resolve import LIMIT, AllowedConnector, Resolve, Streams

_LOCALHOST = "127.0.0.1"
_PROXY_PORT = 3128
_MOST_CONNECTIONS = 100
_PAUSE = 0.05
_DIRECT = (_LOCALHOST, "localhost", "::1")
_Serve = Callable[[Streams], Awaitable[None]]


class Egress:
    """Made before a child, closed after it. No connection and no descriptor outlives `close`.

    In a network of its own the child finds the listed loopback places at `doors`, where Becket answers, and needs no
    token. Elsewhere it finds them where they are, and the proxy at a port that anybody on the machine can reach.
    """

    def __init__(self, places: Sequence[HostPort], resolve: Resolve, *, own_network: bool) -> None:
        self._loopback = doors_of(places)
        self._dialler = AllowedConnector(resolve)
        self._denials = DeniedConnections()
        self._listener = None if own_network else socket.create_server((_LOCALHOST, 0))
        self._token = None if own_network else secrets.token_urlsafe(24)
        self._port = self._listener.getsockname()[1] if self._listener else self._free_port()
        self._proxy = Proxy(places, self._dialler, self._denials, self._token)
        self._slots = asyncio.Semaphore(_MOST_CONNECTIONS + 1 + len(self._loopback))  # a door that waits has one
        self._tasks: set[asyncio.Task[None]] = set()
        if self._listener is not None:
            self._open(self._listener, self._proxy.serve)

    def _free_port(self) -> int:
        taken = {place.port for place in self._loopback}
        return next(port for port in range(_PROXY_PORT, 65_536) if port not in taken)

    @property
    def doors(self) -> list[tuple[str, int]]:
        """Where somebody has to listen in the child's own network, for `answer_at`; the proxy's place first."""
        if self._listener is not None:
            return []
        return [(_LOCALHOST, self._port), *(place.inside for place in self._loopback)]

    @property
    def ports(self) -> tuple[int, ...]:
        """What a child without a network of its own connects to."""
        return tuple(dict.fromkeys((self._port, *(place.port for place in self._loopback))))

    @property
    def env(self) -> dict[str, str]:
        """How the child's programs find the proxy."""
        login = "" if self._token is None else f"{USER}:{self._token}@"
        url = f"http://{login}{_LOCALHOST}:{self._port}"
        direct = ",".join(dict.fromkeys((*_DIRECT, *(place.host for place in self._loopback))))
        found = {"HTTPS_PROXY": url, "HTTP_PROXY": url, "NO_PROXY": direct}
        return found | {name.lower(): value for name, value in found.items()}

    @property
    def denied(self) -> tuple[str, ...]:
        return self._denials.listed()

    def answer_at(self, listeners: Sequence[socket.socket]) -> None:
        """Take over the sockets that listen at `doors`, in that order."""
        proxy, *loopback = listeners
        self._open(proxy, self._proxy.serve)
        for listener, place in zip(loopback, self._loopback, strict=True):
            self._open(listener, partial(self._pipe, place))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _open(self, listener: socket.socket, serve: _Serve) -> None:
        listener.setblocking(False)
        self._keep(self._accept(listener, serve), listener.close)

    def _keep(self, work: Coroutine[Any, Any, None], let_go: Callable[[], None]) -> None:
        """Do `work` beside the child. `let_go` is called at its end, also if it is cancelled before it began."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: let_go())

    async def _accept(self, listener: socket.socket, serve: _Serve) -> None:
        """Take connections while there is a slot for one; the others wait in the kernel."""
        loop = asyncio.get_running_loop()
        while True:
            await self._slots.acquire()
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:
                self._slots.release()
                await asyncio.sleep(_PAUSE)  # no descriptor is free just now, or the client was too quick
            else:
                self._keep(self._attend(connection, serve), partial(self._let_go, connection))

    def _let_go(self, connection: socket.socket) -> None:
        connection.close()
        self._slots.release()

    async def _attend(self, connection: socket.socket, serve: _Serve) -> None:
        client = await asyncio.open_connection(sock=connection, limit=LIMIT)
        with contextlib.suppress(OSError):  # a side that is lost ends the other, and concerns nobody else
            async with parting(client[1]):
                await serve(client)

    async def _pipe(self, place: HostPort, client: Streams) -> None:
        server = await self._dialler.dial(place)
        async with parting(server[1]):
            await relay(client, server)
