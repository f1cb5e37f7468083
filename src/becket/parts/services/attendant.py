"""One service and the task that looks after it: its own timer, its own requests, nobody else's pace (L32, L33)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress

from becket.kernel.contract.base import Json
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import BecketError
from becket.parts.services import supervise, words
from becket.parts.services.context import ServiceContext
from becket.parts.services.ports import (
    HealthLook,
    Incident,
    PortListener,
    Release,
    RequestEnding,
    RequestOutcome,
    RestartHistory,
    Service,
    ServiceObservation,
    ServiceOperation,
    ServiceRequest,
    ServiceState,
)
from becket.parts.services.supervise import RestartAction, Rules

log = logging.getLogger("becket.services")

IDLE = 60.0
AFTER_A_FAULT = 5.0
_QUICK = 0.05

before_start = CrashPoint("service.before_start", "the start is on record, and no process exists")
after_start = CrashPoint("service.after_start", "the process runs; only its marker tells whose it is")


class Attendant:
    """Keeps the kept release of one service running. Only this object writes the service's row."""

    def __init__(self, name: str, shop: ServiceContext) -> None:
        self.name = name
        self.shop = shop
        self.service: Service = shop.book.service(name)
        self._bell = asyncio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def serve(self) -> None:
        """Until cancelled."""
        await self._guarded(self.adopt())
        while True:
            self._bell.clear()
            pause = await self._guarded(self.turn())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), pause)

    async def _guarded(self, work: Awaitable[float]) -> float:
        """A fault of ours in one service is logged and tried again; it is no reason to leave it, or the others."""
        try:
            return await work
        except Exception:
            log.exception("service %s", self.name)
            return AFTER_A_FAULT

    async def turn(self) -> float:
        """Answer what was asked, look once; returns the seconds until the next look."""
        for request in self.shop.book.open_requests():
            if request.service == self.name:
                await self.answer(request)
        return await self.attend()

    async def adopt(self) -> float:
        """After a start of ours: what carries the marker goes on, what is gone was struck."""
        release = self.current()
        if release is None or not self.service.wanted:
            return 0.0
        now = self.shop.clock()
        if self.shop.host.alive(release.marker, release.process):
            log.info("service %s: release %s is adopted", self.name, release.release_id)
            self.save(life=supervise.adopted(self.life, now), state=ServiceState.starting)
        elif self.life.started_at is not None:
            self.save(life=supervise.ended(self.life, now, struck=True))
        return 0.0

    # Requests

    async def answer(self, request: ServiceRequest) -> None:
        """A person's start forgives what was; a stop is final."""
        if request.op is ServiceOperation.stop:
            gone = await self.end_everything()
            ending = RequestEnding.done if gone else RequestEnding.failed
            self.settle(request, RequestOutcome(ending=ending, reason="" if gone else words.DOES_NOT_END))
            return
        release = self.current()
        if release is None:
            self.settle(request, RequestOutcome(ending=RequestEnding.failed, reason=words.NO_RELEASE))
            return
        if request.op is ServiceOperation.restart:
            await self.end(release)
        self.save(wanted=True)
        look = await self.start_and_prove(release)
        good = look.sight is ServiceObservation.healthy
        self.settle(
            request,
            RequestOutcome(
                ending=RequestEnding.done if good else RequestEnding.failed, sha=release.sha, reason=look.detail
            ),
        )

    def settle(self, request: ServiceRequest, outcome: RequestOutcome, *also: Release | Service | Incident) -> None:
        """The outcome and what it is about become true in one transaction."""
        self.shop.book.put(request.model_copy(update={"outcome": outcome}), *also)

    # The kept release

    @property
    def life(self) -> RestartHistory:
        return self.service.life

    def current(self) -> Release | None:
        return self.shop.book.release(self.service.current) if self.service.current else None

    def rules(self, release: Release) -> Rules:
        return self.shop.rules.of(release.config.health)

    async def attend(self) -> float:
        release = self.current()
        if release is None or not self.service.wanted:
            return IDLE
        if self.life.started_at is None:
            return await self._start_when_due(release)
        look = await self.look(release)
        life, do = supervise.seen(self.life, look.sight, self.shop.clock(), self.rules(release), trial=False)
        self.service = self.service.model_copy(update={"life": life})
        if do is RestartAction.restart:
            log.warning("service %s: %s", self.name, look.detail)
            await self.end(release)
            self.save(
                life=supervise.ended(life, self.shop.clock(), struck=True), state=ServiceState.pausing,
                detail=look.detail,
            )  # fmt: skip
            return 0.0
        if do is RestartAction.keep:
            self.save(state=ServiceState.up, detail="", next_at=None)
            self.well()
        elif look.sight is ServiceObservation.stranger and self.service.state is not ServiceState.blocked:
            self.save(state=ServiceState.blocked, detail=look.detail)
            self.tell("blocked", words.SHARED, why=look.detail)
        self.shop.host.trim(self.shop.log(self.name))
        return self.shop.look_every if life.proven else self.pace(release)

    async def _start_when_due(self, release: Release) -> float:
        now = self.shop.clock()
        due = supervise.due(self.life, now, self.rules(release))
        if due.storm and not self.life.stormed:
            self.save(life=supervise.stormed(self.life))
            window, starts = self.rules(release).window, len(self.life.starts)
            self.tell("storm", words.STORM, why=self.service.detail, starts=starts, window=window)
        if now < due.at:
            state = ServiceState.given_up if due.storm else ServiceState.pausing
            if (self.service.state, self.service.next_at) != (state, due.at):
                self.save(state=state, next_at=due.at)
            return min(due.at - now, IDLE)
        if blocked := await self.port_trouble(release):
            if self.service.state is not ServiceState.blocked:
                self.save(state=ServiceState.blocked, detail=blocked)
                self.tell("blocked", words.BLOCKED, why=blocked)
            return self.shop.look_every
        self.start(release)
        return _QUICK

    def start(self, release: Release) -> bool:
        """Count the start before it happens: the limit holds over a crash of ours."""
        life = supervise.started(self.life, self.shop.clock(), self.rules(release))
        self.save(life=life, state=ServiceState.starting, next_at=None)
        before_start()
        try:
            process = self.shop.host.start(self.shop.launch(release, release.config.start))
        except (OSError, BecketError) as error:
            self.save(
                life=supervise.ended(life, self.shop.clock(), struck=True), detail=words.CANNOT_START.format(why=error)
            )
            return False
        after_start()
        self.change(release, process=process)
        log.info("service %s: %s starts as pid %d", self.name, release.sha[:12], process.pid)
        return True

    async def start_and_prove(self, release: Release) -> HealthLook:
        """Start it unless it runs, and look until it is proven healthy or has failed. Wipes the slate."""
        if not self.shop.host.alive(release.marker, release.process):
            self.save(life=RestartHistory())
            if blocked := await self.port_trouble(release):
                self.save(state=ServiceState.blocked, detail=blocked)
                return HealthLook(sight=ServiceObservation.stranger, detail=blocked)
            if not self.start(self.shop.book.release(release.release_id)):
                return HealthLook(sight=ServiceObservation.gone, detail=self.service.detail)
        else:
            self.save(life=supervise.adopted(RestartHistory(), self.shop.clock()), state=ServiceState.starting)
        release = self.shop.book.release(release.release_id)
        life, do, look = await self.prove(release, self.life)
        if do is RestartAction.keep:
            self.save(life=life, state=ServiceState.up, detail="", next_at=None)
            self.well()
            return look
        await self.end(release)
        ended = supervise.ended(life, self.shop.clock(), struck=True)
        self.save(life=ended, state=ServiceState.pausing, detail=look.detail)
        return (
            look
            if look.sight is not ServiceObservation.healthy
            else look.model_copy(update={"sight": ServiceObservation.unready})
        )

    async def prove(self, release: Release, life: RestartHistory) -> tuple[RestartHistory, RestartAction, HealthLook]:
        rules = self.rules(release)
        while True:
            look = await self.look(release)
            life, do = supervise.seen(life, look.sight, self.shop.clock(), rules, trial=True)
            if do is not RestartAction.wait:
                return life, do, look
            await asyncio.sleep(self.pace(release))

    def pace(self, release: Release) -> float:
        """Several looks per sample: a death between two of them is seen before the soak is over."""
        health = release.config.health
        return min(max(health.soak / (2 * health.samples), 0.02), self.shop.look_every)

    async def look(self, release: Release) -> HealthLook:
        config = release.config
        return await self.shop.host.look(release.marker, release.process, config.port, config.health.url)

    async def end(self, release: Release) -> bool:
        """Ended, and its port free of it (L34)."""
        stop = self.shop.stop_launch(release)
        gone = await self.shop.host.end(release.marker, release.process, self.shop.grace, stop)
        return gone and await self._port_left(release)

    async def _port_left(self, release: Release) -> bool:
        until = self.shop.clock() + self.shop.free_within
        while any(one.marker == release.marker for one in self.listeners(release)):
            if self.shop.clock() > until:
                return False
            await asyncio.sleep(_QUICK)
        return True

    async def end_everything(self) -> bool:
        """Every release of the service that still has a process, not only the one we believe in."""
        self.save(wanted=False)
        gone = [
            await self.end(release)
            for release in self.shop.book.releases(self.name)[:20]
            if self.shop.host.alive(release.marker, release.process)
        ]
        life = supervise.ended(self.life, self.shop.clock(), struck=False)
        self.save(life=life, state=ServiceState.down, detail="", next_at=None)
        return all(gone)

    async def port_trouble(self, release: Release) -> str:
        """Who stands in the way of a start. Leftovers of the release itself are ended first."""
        if release.config.port is None:
            return ""
        if any(one.marker == release.marker for one in self.listeners(release)):
            await self.end(release)
        until = self.shop.clock() + min(self.shop.free_within, 1.0)
        while found := self.listeners(release):
            if self.shop.clock() > until:
                return words.HELD_BY.format(port=release.config.port, who=found[0])
            await asyncio.sleep(_QUICK)
        return ""

    def listeners(self, release: Release) -> tuple[PortListener, ...]:
        return self.shop.host.listeners(release.config.port) if release.config.port is not None else ()

    # Records

    def save(self, **changes: object) -> None:
        self.service = self.service.model_copy(update={**changes, "changed_at": self.shop.clock()})
        self.shop.book.put(self.service)

    def change(self, release: Release, **changes: object) -> Release:
        changed = release.model_copy(update={**changes, "changed_at": self.shop.clock()})
        self.shop.book.put(changed)
        return changed

    def tell(self, what: str, text: str, **said: object) -> None:
        """An alarm that lasts until the service is proven healthy."""
        incident = self.incident(what, text.format(name=self.name, **said))
        self.service = self.service.model_copy(update={"alarms": (*self.service.alarms, incident.key)})
        self.shop.book.put(self.service, incident)

    def incident(self, what: str, text: str, **data: Json) -> Incident:
        log.warning("service %s: %s", self.name, text)
        key = f"service:{self.name}:{what}"
        return Incident(key=key, service=self.name, text=text, data=data, at=self.shop.clock())

    def well(self) -> None:
        """Proven healthy: what was told about it dying or being shut out is over."""
        text, now = words.WELL.format(name=self.name), self.shop.clock()
        over = [Incident(key=key, service=self.name, text=text, over=True, at=now) for key in set(self.service.alarms)]
        if over:
            self.service = self.service.model_copy(update={"alarms": ()})
            self.shop.book.put(self.service, *over)
