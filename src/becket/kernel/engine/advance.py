"""Moves one run as far as it goes: `advance(run, segment)` may be called late or twice, the claim decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial

from becket.kernel.contract.agent import Agents
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import (
    Fenced,
    GitFailed,
    InvalidDocument,
    NotFound,
    StoreDamaged,
    StoreUnavailable,
    WorkerDeclaredDead,
)
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import PROOF, WORK
from becket.kernel.contract.reasons import ALREADY_SO
from becket.kernel.contract.removal import removed
from becket.kernel.contract.run import ENDED, Move, Run, RunStatus
from becket.kernel.contract.store import Claim, End
from becket.kernel.engine.context import Runtime
from becket.kernel.engine.money import settle_left_open
from becket.kernel.engine.state import StateReader
from becket.kernel.engine.triggers import needless
from becket.kernel.engine.walk import Walk

log = logging.getLogger("becket.engine")

LONGEST_PAUSE = 5.0
"""Between two tries to write what a walk came to."""

_DONE = (RunStatus.completed, RunStatus.completed_dry_run)

rescued = CrashPoint("advance.rescued", "what an ended run left is saved if it is worth it; its folder is still there")


class Advanced(StrEnum):
    """What a call of advance came to."""

    moved = "moved"
    stale = "stale"  # another segment, another status, or not this run's turn
    fenced = "fenced"  # the claim was lost on the way


class Engine:
    """Moves runs. The store decides who may; this class only tries."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._walks: dict[str, Walk] = {}

    async def advance(self, run_id: str, segment: int) -> Advanced:
        """Claim the run and move it until it ends or waits.

        Raises CancelledError, WorkerDeclaredDead, and StoreUnavailable where the claim itself could not be made, or its
        answer was lost. Whatever it raises, the claim is no longer at work: its lease runs out, if nobody is faster.
        """
        claim = await self.runtime.store.claim(run_id, segment, self.runtime.worker, self.runtime.lease_ttl)
        if claim is None:
            return Advanced.stale
        try:
            await self._walk(claim)
        except Fenced:
            return Advanced.fenced
        except (asyncio.CancelledError, WorkerDeclaredDead):
            raise
        except StoreUnavailable:
            # The run is not to blame: whatever is in the journal stands, and the next claim goes on from there.
            await self._persist(partial(self.runtime.store.give_back, run_id, claim.run.epoch))
        except Exception as error:
            end = await self._failure(claim.run, error)
            await self._persist(partial(self.runtime.store.end, run_id, claim.run.epoch, end))
        await self.clear_folder(run_id)
        return Advanced.moved

    async def _walk(self, claim: Claim) -> None:
        if await self._settled_meanwhile(claim):
            return
        walk = self._walks[claim.run.run_id] = Walk(self.runtime, claim)
        try:
            await walk.to_the_end()
        finally:
            del self._walks[claim.run.run_id]

    async def _settled_meanwhile(self, claim: Claim) -> bool:
        """A run that waited for its turn ends without work, where others did meanwhile what it was started for."""
        store, run = self.runtime.store, claim.run
        begins = run.iteration == 1 and not claim.steps
        fact = await needless(store, self.runtime.loops.parse(claim.spec_text), run) if begins else ""
        if fact:
            detail = {"fact": fact, "by_run": await store.recorded_by(fact, run.subject.name) or ""}
            await store.end(run.run_id, run.epoch, End(move=Move.cancel, reason=ALREADY_SO, detail=detail))
        return bool(fact)

    def interrupt(self, run_id: str) -> None:
        """A person asked to cancel a run that is at work here."""
        if (walk := self._walks.get(run_id)) is not None:
            walk.interrupt()

    @property
    def at_work(self) -> dict[str, int]:
        """The runs that are being moved here and now, each with the epoch of its claim.

        A claim that is only being given back is not among them: should that never get through, its lease must run out.
        """
        return {run_id: walk.epoch for run_id, walk in self._walks.items()}

    async def _failure(self, run: Run, error: Exception) -> End:
        """The runtime itself failed."""
        reason = "invalid_spec" if isinstance(error, InvalidDocument) else "internal_error"
        said = self.runtime.redact(f"{type(error).__name__}: {error}")[:4000]
        look = StateReader(self.runtime.store, partial(self.runtime.port, Git), run.run_id)
        state = await look.of_run(self.runtime.loops, run)
        return End(move=Move.fail, reason=reason, detail={"error": said}, state=state)

    async def _persist(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write it as soon as the store lets us, unless the claim's lease runs out first."""
        delay = 0.2
        while True:
            try:
                await write()
                return
            except (Fenced, NotFound):
                return
            except StoreDamaged:
                raise
            except Exception as error:
                log.warning("%s; nothing is lost, trying again in %.1f s", error, delay)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_PAUSE)

    async def clear_folder(self, run_id: str) -> None:
        """An ended run needs its checkout, its scratch folder and its logs no more: what counts is in artifacts.

        What the checkout holds beyond its commit is saved first (L7), and what its agents used is settled (L23). A
        run that completed has its work where it belongs: what lies around is what its tests left.
        """
        folder = self.runtime.places.of_run(run_id)
        status = await self._status(run_id)
        if status not in (None, *ENDED):
            return
        await settle_left_open(self.runtime.store, partial(self.runtime.port, Agents), folder, run_id)
        if not folder.exists():
            return
        git = self.runtime.port(Git)
        try:
            work = [(each, f"{run_id}-{each.name}") for each in folder.glob(f"{WORK}/*")]
            for place, name in ((folder, run_id), *work):
                if (workspace := await git.find_workspace(place)) is not None:
                    if status not in _DONE:
                        await git.rescue(workspace, name, f"becket: what {name} left")
                    rescued()
                    await git.close_workspace(place)
        except GitFailed as error:
            log.warning("%s is kept: %s", folder, error)
            return
        await git.spare_workspace(folder / PROOF)
        await asyncio.to_thread(removed, folder)

    async def _status(self, run_id: str) -> RunStatus | None:
        """None for a run that the journal has forgotten."""
        try:
            return (await self.runtime.store.get_run(run_id)).status
        except NotFound:
            return None
