"""The supervisor of services, as it lives in the watchdog: its own thread, its own store, its own socket.

A thread, because the rest of the watchdog reads the journal, and nothing that waits for the engine may keep a service
down (L33).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable

from pydantic import ValidationError

from becket.app.state import StateFolder
from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import BecketError, StoreDamaged
from becket.kernel.contract.store import Alert, AlertState, Store
from becket.parts.services import words
from becket.parts.services.book import SqliteServiceStore
from becket.parts.services.context import ServiceContext
from becket.parts.services.line import LONGEST, listening_socket
from becket.parts.services.ports import Incident, ServiceRequest
from becket.parts.services.rebuilt_book import SERVICES, open_book
from becket.parts.services.releasing import Releaser

log = logging.getLogger("becket.services")

LINGER = 15.0
"""A watchdog that was started for services waits so long for the first request."""
JOIN_WITHIN = 15.0
HANGS_AFTER = 120.0
"""Its book waits for others for up to ten seconds at a time."""


class Supervisor:
    """Every service with its attendant, and the line on which requests come in."""

    def __init__(self, shop: ServiceContext) -> None:
        self._shop = shop
        self._attendants: dict[str, tuple[Releaser, asyncio.Task[None]]] = {}

    async def serve(self, stop: asyncio.Event) -> None:
        """Look after everything on record until told to stop. The services themselves go on."""
        path = self._shop.state.watchdog_socket
        server = await asyncio.start_unix_server(self._talk, sock=listening_socket(path), limit=LONGEST)
        try:
            names = [service.name for service in self._shop.book.services()]
            for name in dict.fromkeys([*names, *(one.service for one in self._shop.book.open_requests())]):
                self._attendant(name)
            while not stop.is_set():
                self._want()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 2.0)
        finally:
            server.close()
            path.unlink(missing_ok=True)
            await self._close()

    async def _close(self) -> None:
        for _, task in self._attendants.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in self._attendants.values()), return_exceptions=True)
        for attendant, _ in self._attendants.values():
            await attendant.close()

    def _attendant(self, name: str) -> Releaser:
        if name not in self._attendants:
            attendant = Releaser(name, self._shop)
            self._attendants[name] = attendant, asyncio.create_task(attendant.serve(), name=f"service {name}")
        return self._attendants[name][0]

    def _want(self) -> None:
        """Say on disk whether the watchdog is still needed for services."""
        flag, book = self._shop.state.services_wanted, self._shop.book
        if book.open_requests() or any(service.wanted for service in book.services()):
            flag.touch()
        elif flag.exists() and time.time() - flag.stat().st_mtime > LINGER:
            flag.unlink(missing_ok=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = self._answer(await reader.readline())
        except (BecketError, ValidationError, ValueError) as error:
            answer = {"error": str(error)}
        with contextlib.suppress(ConnectionError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
            writer.close()

    def _answer(self, line: bytes) -> dict[str, Json]:
        message = json.loads(line)
        book = self._shop.book
        if "request" in message:
            asked = ServiceRequest.model_validate(message["request"])
            request = book.accept(asked.model_copy(update={"at": self._shop.clock(), "outcome": None, "tries": 0}))
            self._want()
            self._attendant(request.service).ring()
        elif "outcome" in message:
            found = book.request(str(message["outcome"]))
            return {"request": found.model_dump(mode="json") if found else None}
        else:
            raise ValueError("neither a request nor a question about one")
        return {"request": request.model_dump(mode="json")}


class ServiceThread:
    """Runs a supervisor beside the watchdog's own loop."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._thread = threading.Thread(target=self._run, name="services", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._beat_at = time.monotonic()

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(JOIN_WITHIN)

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(JOIN_WITHIN)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def ended(self) -> bool:
        """By a fault of ours: it was not told to."""
        return not self.alive and (self._stop is None or not self._stop.is_set())

    def silent_for(self) -> float:
        """Since its loop last went round."""
        return time.monotonic() - self._beat_at

    async def _beat(self) -> None:
        while True:
            self._beat_at = time.monotonic()
            await asyncio.sleep(1.0)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception:
            log.exception("the supervisor of services ended")
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        beat = asyncio.create_task(self._beat())
        self._ready.set()
        while not self._stop.is_set():
            try:
                with contextlib.closing(open_book(self._state)) as book:
                    await Supervisor(ServiceContext(self._state, book)).serve(self._stop)
            except Exception:
                log.exception("services; tried again in %g s", 5.0)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), 5.0)
        beat.cancel()


class Services:
    """The thread as the watchdog sees it. One that died is begun anew; one that hangs can only be told of."""

    def __init__(
        self,
        state: StateFolder,
        hangs_after: float = HANGS_AFTER,
        make: Callable[[StateFolder], ServiceThread] = ServiceThread,
    ) -> None:
        self._state = state
        self._hangs_after = hangs_after
        self._make = make
        self._thread: ServiceThread | None = None

    def start(self) -> None:
        self._thread = self._make(self._state)
        self._thread.start()

    def look(self) -> None:
        """Called at every tick."""
        if self._thread is not None and self._thread.ended:
            log.error("the supervisor of services died; it begins anew and adopts what runs")
            self.start()

    def wanted(self) -> bool:
        return self._state.services_wanted.exists()

    def hangs(self) -> tuple[str, str] | None:
        if self._thread is None or not self._thread.alive or self._thread.silent_for() < self._hangs_after:
            return None
        return words.HANGS, words.GOES_ON

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()

    async def report(self, own: Store) -> None:
        await raise_incidents(self._state, own)

    def tells(self, alert: Alert) -> bool:
        return alert.key.startswith(("service:", SERVICES))


async def raise_incidents(state: StateFolder, own: Store) -> None:
    """Make alerts of what the supervisor wrote down. Called at every tick of the watchdog."""
    if not state.services_database.exists():
        return
    try:
        book = SqliteServiceStore(state.services_database)
    except StoreDamaged:
        return  # the supervisor sees to it
    try:
        for number, incident in book.untold():
            await _raise(own, incident)
            book.told(number)
    finally:
        book.close()


async def _raise(own: Store, incident: Incident) -> None:
    if not incident.over:
        await own.raise_alert(incident.key, incident.text, {**incident.data, "service": incident.service})
    elif any(alert.key == incident.key for alert in await own.alerts((AlertState.open, AlertState.told))):
        await own.close_alert(incident.key)
