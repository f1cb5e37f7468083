"""Puts a commit into service: build beside the old one, smoke, intent, switch, soak, keep; or back again."""

from __future__ import annotations

import asyncio
import logging

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import BecketError
from becket.parts.services import supervise, words
from becket.parts.services.attendant import Attendant
from becket.parts.services.context import ServiceContext, service_log
from becket.parts.services.ports import (
    HealthLook,
    Incident,
    Release,
    ReleaseState,
    RequestEnding,
    RequestOutcome,
    RestartHistory,
    Service,
    ServiceObservation,
    ServiceOperation,
    ServiceRequest,
    ServiceState,
    Smoked,
)
from becket.parts.services.process import link_shared
from becket.parts.services.supervise import RestartAction

log = logging.getLogger("becket.services")

TRIES = 3
"""So often a request is begun anew after the watchdog itself ended in the middle."""
KEEP_OLD = 2
"""Releases before the current one whose folders stay, to go back to by hand."""

after_intent = CrashPoint("release.after_intent", "the old release still runs, the new one may start")
old_ended = CrashPoint("release.old_ended", "nothing serves the port")
soaking = CrashPoint("release.soaking", "the new release runs and is on record; nobody knows yet how it does")
after_keep = CrashPoint("release.after_keep", "the new release is kept; old folders are not removed yet")
after_failure = CrashPoint("release.after_failure", "the new release is marked, the old one not started again")


class Releaser(Attendant):
    """An attendant that can also release. Building never keeps it from looking after what runs."""

    def __init__(self, name: str, shop: ServiceContext) -> None:
        super().__init__(name, shop)
        self._prepared: dict[str, asyncio.Task[Release | RequestOutcome]] = {}

    async def close(self) -> None:
        for task in self._prepared.values():
            task.cancel()
        await asyncio.gather(*self._prepared.values(), return_exceptions=True)

    async def adopt(self) -> float:
        """A release that was cut off: one that lives soaks again, one that died in its soak has failed."""
        await super().adopt()
        if self.service.trial is None:
            return 0.0
        trial, old = self.shop.book.release(self.service.trial), self.current()
        lives = self.shop.host.alive(trial.marker, trial.process)
        old_lives = old is not None and self.shop.host.alive(old.marker, old.process)
        if lives and not old_lives:
            await self._soak(trial, supervise.adopted(RestartHistory(), self.shop.clock()))
        elif trial.state is ReleaseState.soaking:
            await self._back(trial, HealthLook(sight=ServiceObservation.gone, detail=words.DIED_UNSEEN))
        else:
            await self.shop.host.end(trial.marker, trial.process, self.shop.grace)
            self.change(trial, state=ReleaseState.failed, reason=words.CUT_OFF)
            self.save(trial=None)
        return 0.0

    async def answer(self, request: ServiceRequest) -> None:
        fresh = request.op is ServiceOperation.start and self.service.current is None
        if request.op in (ServiceOperation.release, ServiceOperation.build) or fresh:
            await self._go_on(request)
        else:
            await super().answer(request)

    async def _go_on(self, request: ServiceRequest) -> None:
        """Prepare in the background, one request at a time; when that is done, switch."""
        task = self._prepared.get(request.key)
        if task is None and self._prepared:
            return
        if task is None:
            task = asyncio.create_task(self._prepare(request), name=f"prepare {request.key}")
            self._prepared[request.key] = task
            task.add_done_callback(lambda _: self.ring())
        if not task.done():
            return
        del self._prepared[request.key]
        prepared = task.result()
        if isinstance(prepared, RequestOutcome):
            self.settle(request, prepared)
        elif request.op is ServiceOperation.build:
            self.settle(
                request, RequestOutcome(ending=RequestEnding.done, sha=prepared.sha, unproven=prepared.unproven)
            )
        else:
            await self._switch(request, prepared)

    # Beside the old one

    async def _prepare(self, request: ServiceRequest) -> Release | RequestOutcome:
        try:
            sha = request.sha or await self.shop.head()
            if known := await self._known(request, sha):
                return known
            if request.tries >= TRIES:
                return RequestOutcome(
                    ending=RequestEnding.failed, sha=sha, reason=words.CUT_OFF_AGAIN.format(tries=TRIES)
                )
            self.shop.book.put(request.model_copy(update={"tries": request.tries + 1}))
            return await self._build(await self.shop.new_release(request, sha))
        except (BecketError, OSError) as error:
            return RequestOutcome(ending=RequestEnding.failed, sha=request.sha, reason=str(error))

    async def _known(self, request: ServiceRequest, sha: str) -> RequestOutcome | None:
        """What is on record answers: the request was worked off, the commit failed before, or it is in service."""
        for release in self.shop.book.releases(self.name):
            if release.request == request.key and release.state in _ENDINGS:
                return RequestOutcome(ending=_ENDINGS[release.state], sha=sha, reason=release.reason)
            if release.sha == sha and release.never_auto and request.op is ServiceOperation.release:
                return RequestOutcome(
                    ending=RequestEnding.failed, sha=sha, reason=words.FAILED_BEFORE.format(why=release.reason)
                )
        current = self.current()
        if (stopped := self._stopped(request, sha)) or current is None or current.sha != sha:
            return stopped
        if request.op is ServiceOperation.build or await self._comes_up(current):
            ending = RequestEnding.kept if request.op is ServiceOperation.release else RequestEnding.done
            return RequestOutcome(ending=ending, sha=sha, reason=words.ALREADY)
        why = self.service.detail or self.service.state.value
        return RequestOutcome(ending=RequestEnding.failed, sha=sha, reason=words.NOT_HEALTHY.format(why=why))

    async def _comes_up(self, release: Release) -> bool:
        """It may have been adopted or restarted just now: it gets the time that a trial would have."""
        until = self.rules(release).latest(self.shop.clock())
        while not self.life.proven and self.shop.clock() < until:
            await asyncio.sleep(self.pace(release))
        return self.life.proven

    def _stopped(self, request: ServiceRequest, sha: str) -> RequestOutcome | None:
        """No loop starts what a person stopped."""
        if self.service.current is None or self.service.wanted or request.op is not ServiceOperation.release:
            return None
        return RequestOutcome(ending=RequestEnding.failed, sha=sha, reason=words.STOPPED.format(name=self.name))

    async def _build(self, release: Release) -> Release | RequestOutcome:
        self.shop.book.put(release)
        await self.shop.git.open_workspace(release.folder, release.sha)
        smokes, config = self.shop.smokes, release.config
        built = await smokes.build(config, release.tree, service_log(self.shop.state, self.name, "build"))
        if not built.ok:
            return self._refused(release, built)
        release = self.change(release, state=ReleaseState.built)
        smoked = await smokes.smoke(config, release.tree, service_log(self.shop.state, self.name, "smoke"))
        if not smoked.ok:
            return self._refused(release, smoked)
        return self.change(release, state=ReleaseState.smoked)

    def _refused(self, release: Release, why: Smoked) -> RequestOutcome:
        self.change(release, state=ReleaseState.failed, reason=why.reason)
        return RequestOutcome(ending=RequestEnding.failed, sha=release.sha, reason=why.reason)

    # The switch

    async def _switch(self, request: ServiceRequest, release: Release) -> None:
        if stopped := self._stopped(request, release.sha):  # while it was built
            self.settle(request, stopped)
            return
        old = self.current()
        try:
            link_shared(self.shop.state.root, release.tree, release.config.shared)
            self.shop.launch(release, release.config.start)
            trouble = self._strangers(release, old)
        except (BecketError, OSError) as error:
            trouble = str(error)
        if trouble:  # nothing was touched yet
            self.change(release, state=ReleaseState.failed, reason=trouble)
            self.settle(request, RequestOutcome(ending=RequestEnding.failed, sha=release.sha, reason=trouble))
            return
        release = self.change(release, state=ReleaseState.starting)
        self.save(
            trial=release.release_id, state=ServiceState.releasing, detail=f"{release.sha[:12]} is put into service"
        )
        after_intent()
        if old is not None:
            ended = await self.end(old)
            self.save(life=supervise.ended(self.life, self.shop.clock(), struck=False))
            if not ended:
                await self._back(
                    release, HealthLook(sight=ServiceObservation.unready, detail=words.OLD_DOES_NOT_END), blame=False
                )
                return
        old_ended()
        if blocked := await self.port_trouble(release):
            await self._back(release, HealthLook(sight=ServiceObservation.stranger, detail=blocked), blame=False)
            return
        await self._try(release)

    def _strangers(self, release: Release, old: Release | None) -> str:
        known = {release.marker, old.marker if old is not None else release.marker}
        foreign = [one for one in self.listeners(release) if one.marker not in known]
        if not foreign:
            return ""
        return words.HELD_BY_STRANGER.format(port=release.config.port, who=foreign[0], name=self.name)

    async def _try(self, release: Release) -> None:
        try:
            process = self.shop.host.start(self.shop.launch(release, release.config.start))
        except (BecketError, OSError) as error:
            await self._back(
                release, HealthLook(sight=ServiceObservation.gone, detail=words.CANNOT_START.format(why=error))
            )
            return
        release = self.change(release, state=ReleaseState.soaking, process=process)
        log.info("service %s: %s soaks as pid %d", self.name, release.sha[:12], process.pid)
        soaking()
        await self._soak(release, supervise.started(RestartHistory(), self.shop.clock(), self.rules(release)))

    async def _soak(self, release: Release, life: RestartHistory) -> None:
        life, do, look = await self.prove(release, life)
        if do is RestartAction.keep:
            await self._keep(release, life)
        else:
            await self._back(release, look)

    async def _keep(self, release: Release, life: RestartHistory) -> None:
        now = self.shop.clock()
        old = self.current()
        kept = release.model_copy(update={"state": ReleaseState.kept, "changed_at": now})
        gone = [old.model_copy(update={"state": ReleaseState.stopped, "changed_at": now})] if old is not None else []
        self.service = self.service.model_copy(
            update={"current": kept.release_id, "trial": None, "wanted": True, "life": life, "state": ServiceState.up,
                    "detail": "", "next_at": None, "changed_at": now}
        )  # fmt: skip
        reason = words.UNPROVEN.format(sha=kept.sha[:12]) if kept.unproven else ""
        outcome = RequestOutcome(ending=RequestEnding.kept, sha=kept.sha, unproven=kept.unproven, reason=reason)
        self._settle_of(kept, outcome, kept, *gone, self.service)
        self.well()
        after_keep()
        await self._remove_old()

    async def _back(self, release: Release, look: HealthLook, *, blame: bool = True) -> None:
        """Stop NEW, start OLD, verify OLD. `blame`: it failed itself, and no loop may release it again."""
        why = look.detail or look.sight.value
        if release.config.migrates and blame:
            self._hand_over(release, why)
            return
        await self.end(release)
        marked = {
            "state": ReleaseState.rolled_back,
            "never_auto": blame,
            "reason": why,
            "changed_at": self.shop.clock(),
        }
        self.service = self.service.model_copy(update={"trial": None, "life": RestartHistory()})
        self.shop.book.put(release.model_copy(update=marked), self.service)
        after_failure()
        await self._old_again(release, why)

    async def _old_again(self, release: Release, why: str) -> None:
        old, said = self.current(), {"name": self.name, "sha": release.sha[:12], "why": why}
        if old is None:
            self.save(state=ServiceState.down, detail=why, wanted=False)
            text = words.NO_OLD.format(**said)
            outcome = RequestOutcome(
                ending=RequestEnding.failed, sha=release.sha, reason=why, unproven=release.unproven
            )
        else:
            again = await self.start_and_prove(old)
            well = again.sight is ServiceObservation.healthy
            how = words.SERVES_AGAIN if well else words.ILL_AGAIN.format(why=again.detail)
            text = words.OLD_AGAIN.format(old=old.sha[:12], how=how, **said)
            outcome = RequestOutcome(
                ending=RequestEnding.rolled_back, sha=release.sha, reason=f"{why}; {old.sha[:12]} {how}"
            )
        self._settle_of(release, outcome, self._told(release, text))

    def _told(self, release: Release, text: str) -> Incident:
        log_file = str(self.shop.log(self.name))
        return self.incident(f"release:{release.sha}", text, sha=release.sha, log=log_file)

    def _hand_over(self, release: Release, why: str) -> None:
        """It may have changed the data: neither the old nor the new one is safe to run without a person."""
        left = {"state": ReleaseState.handed_over, "never_auto": True, "reason": why, "changed_at": self.shop.clock()}
        self.service = self.service.model_copy(
            update={"trial": None, "wanted": False, "state": ServiceState.down, "detail": why}
        )
        outcome = RequestOutcome(ending=RequestEnding.handed_over, sha=release.sha, reason=why)
        text = words.HANDED_OVER.format(name=self.name, sha=release.sha[:12], why=why)
        self._settle_of(release, outcome, release.model_copy(update=left), self.service, self._told(release, text))

    def _settle_of(self, release: Release, outcome: RequestOutcome, *also: Release | Service | Incident) -> None:
        request = self.shop.book.request(release.request)
        if request is None:
            self.shop.book.put(*also)
        else:
            self.settle(request, outcome, *also)

    async def _remove_old(self) -> None:
        """Folders of releases that nobody goes back to. A folder that is in use by any of the others stays."""
        releases = self.shop.book.releases(self.name)
        kept = [release for release in releases if release.state in KEPT_STATES][: 1 + KEEP_OLD]
        staying = {release.folder for release in releases if release in kept or release.state not in _OVER}
        for folder in {release.folder for release in releases[:50]} - staying:
            if folder.exists():
                await self.shop.git.close_workspace(folder)


KEPT_STATES = (ReleaseState.kept, ReleaseState.stopped)
_OVER = (ReleaseState.rolled_back, ReleaseState.stopped, ReleaseState.failed)
_ENDINGS = {ReleaseState.rolled_back: RequestEnding.rolled_back, ReleaseState.handed_over: RequestEnding.handed_over}
