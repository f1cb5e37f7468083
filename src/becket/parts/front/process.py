"""The process that serves the page. A fault or a flood here harms neither engine nor services."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import socket
from collections.abc import Iterator
from dataclasses import replace

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from becket.app.compose import App
from becket.app.heartbeat import LockHeartbeat
from becket.app.launch import log_to
from becket.app.liveness import LOOK_EVERY
from becket.app.locks import start_is_over, started_by_becket
from becket.app.state import Lock, StateFolder
from becket.kernel.contract.errors import BecketError, UsageError
from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import users
from becket.parts.front.kept import LOOPBACK, Address, front_of, read_address, write_address
from becket.parts.front.section import WebConfig
from becket.parts.front.server import Front

log = logging.getLogger("becket.front")

FIRST_PORT, PORTS = 8437, 60
NICE = 5
"""The engine comes first."""
LONGEST_KEPT_ALIVE = 15
MOST_CONNECTIONS = 1000
END_WITHIN = 3
REQUEST_WITHIN = 10.0


def run_front(state: StateFolder) -> int:
    """Serve until SIGTERM, or until nobody wants it any more."""
    with Lock(front_of(state.make()).lock) as lock:
        if not lock.acquire():
            raise UsageError("the page is served already; see `becket open`")
        kept = started_by_becket()
        start_is_over()
        log_to(state, "front")
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # a line for each request that is none fills a disk
        with contextlib.suppress(OSError):
            os.nice(NICE)
        try:
            asyncio.run(_serve(state, lock, kept))
        except BecketError as error:
            log.error("%s", error)
            raise
        except Exception:
            log.exception("the front ends")
            raise
    return 0


async def _serve(state: StateFolder, lock: Lock, kept: bool) -> None:
    app = App.open(state, tolerant=True)
    config = app.config.section(WebConfig)
    _allow_connections()
    if not config.is_local and not await app.port(TableStore).read(users):
        raise UsageError(
            f"web.host is {config.host}, which others reach, and nobody has an account: `becket user add NAME` first"
        )
    listening = _listen(state, config)
    host, port = listening[0].getsockname()[:2]
    last = read_address(state)
    known = last if last and last.port == port else Address(host, port)  # who has the old port learns the old name
    front = Front(app, replace(known, host=host, pid=os.getpid()))
    server = uvicorn.Server(
        uvicorn.Config(
            front.asgi, log_config=None, access_log=False, server_header=False, date_header=False, proxy_headers=False,
            lifespan="off", ws="none", http=PatientHttp, loop="asyncio", timeout_keep_alive=LONGEST_KEPT_ALIVE,
            timeout_graceful_shutdown=END_WITHIN, limit_concurrency=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=32_768,
        )
    )  # fmt: skip
    pulse = LockHeartbeat(lock)
    beside = [asyncio.create_task(front.feed.keep()), asyncio.create_task(_while_wanted(state, app, kept, server))]
    write_address(state, front.address)
    log.info("front %d listens at %s", os.getpid(), front.address.url)
    pulse.begin()
    try:
        await server.serve(sockets=listening)
    finally:
        for task in beside:
            task.cancel()
        pulse.end()
        await app.store.close()
        log.info("front %d ends", os.getpid())


async def _while_wanted(state: StateFolder, app: App, kept: bool, server: uvicorn.Server) -> None:
    """Its keeper may have been killed: then it ends by itself. One that a person started stays."""
    first = app.config.section(WebConfig)
    while not kept or (state.wanted.exists() and _same_place(first, app.config.section(WebConfig))):
        await asyncio.sleep(LOOK_EVERY)
    server.should_exit = True


def _same_place(first: WebConfig, now: WebConfig) -> bool:
    """Another address is served by the next process."""
    return now.enabled and (now.host, now.port) == (first.host, first.port)


def _allow_connections() -> None:
    """A file each; the journal needs some besides."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + 500
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, most)), most))


class PatientHttp(H11Protocol):
    """Ends a connection on which no whole request comes, or nobody reads: uvicorn waits for both for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        super().connection_made(transport)
        self._look = self.loop.call_later(REQUEST_WITHIN, self._look_again, None)
        self._unread = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def _look_again(self, last: object) -> None:
        unread, self._unread = self._unread, self.transport.get_write_buffer_size()
        if unread and unread == self._unread:  # somebody who does not read what they asked for
            self.transport.abort()
            return
        waits = self.cycle is None or self.cycle.response_complete
        if waits and last is (self.cycle or self):
            self.transport.close()
        else:
            seen = (self.cycle or self) if waits else None
            self._look = self.loop.call_later(REQUEST_WITHIN, self._look_again, seen)


def _listen(state: StateFolder, config: WebConfig) -> list[socket.socket]:
    """At the port of the last time where it is free, so that addresses that people kept stay good.

    At both loopback addresses: browsers try both for a name, and nobody else shall answer to it at this port.
    """
    hosts = sorted(LOOPBACK, key=lambda host: host != config.host) if config.host in LOOPBACK else [config.host]
    for port in _ports(state, config):
        listening: list[socket.socket] = []
        try:
            for host in hosts:
                listening.append(_bound(host, listening[0].getsockname()[1] if listening else port))
        except OSError as error:
            if listening and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                return listening
            for one in listening:
                one.close()
            said = f"{host}:{port}: {error.strerror}"
            continue
        return listening
    raise UsageError(f"nothing can be served at {said}; set another `web.port` or `web.host` in becket.yaml")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol said, asyncio lets small answers leave at once: 40 ms of each page were waited for nothing.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(256)
    except OSError:
        listening.close()
        raise
    return listening


def _ports(state: StateFolder, config: WebConfig) -> Iterator[int]:
    if config.port is not None:
        yield config.port
        return
    last = read_address(state)
    if last is not None:
        yield last.port
    yield from range(FIRST_PORT, FIRST_PORT + PORTS)
    yield 0
