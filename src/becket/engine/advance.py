"""advance(run, segment): safe to call late, twice, or not at all until the next sweep."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from enum import StrEnum

from becket.contract.errors import Fenced, GitFailed, InvalidDocument, WorkerDeclaredDead
from becket.contract.git import Git
from becket.contract.run import ENDED, Move
from becket.contract.store import Claim, End
from becket.engine.context import Surroundings
from becket.engine.walk import Walk


class Advanced(StrEnum):
    """What a call of advance came to."""

    moved = "moved"
    stale = "stale"  # another segment, another status, or not this run's turn
    fenced = "fenced"  # the claim was lost on the way


class Engine:
    """Moves runs. The store decides who may; this class only tries."""

    def __init__(self, house: Surroundings) -> None:
        self.house = house
        self._walks: dict[str, Walk] = {}

    async def advance(self, run_id: str, segment: int) -> Advanced:
        """Claim the run and move it until it ends or waits. Raises only CancelledError and WorkerDeclaredDead."""
        claim = await self.house.store.claim(run_id, segment, self.house.worker, self.house.lease_ttl)
        if claim is None:
            return Advanced.stale
        try:
            walk = self._walks[run_id] = Walk(self.house, claim)
            await walk.to_the_end()
            await self._clear_folder(run_id)
        except Fenced:
            return Advanced.fenced
        except (asyncio.CancelledError, WorkerDeclaredDead):
            raise
        except Exception as error:
            await self._write_failed(claim, error)
        finally:
            self._walks.pop(run_id, None)
        return Advanced.moved

    def interrupt(self, run_id: str) -> None:
        """A person asked to cancel a run that is at work here."""
        if (walk := self._walks.get(run_id)) is not None:
            walk.interrupt()

    @property
    def at_work(self) -> frozenset[str]:
        return frozenset(self._walks)

    async def _write_failed(self, claim: Claim, error: Exception) -> None:
        """The runtime itself failed: say so in the journal, however long the store takes to come back."""
        reason = "invalid_spec" if isinstance(error, InvalidDocument) else "internal_error"
        said = self.house.redact(f"{type(error).__name__}: {error}")[:4000]
        delay = 0.2
        while True:
            try:
                await self.house.store.end(
                    claim.run.run_id, claim.run.epoch, End(move=Move.fail, reason=reason, detail={"error": said})
                )
                return
            except Fenced:
                return
            except Exception:
                await asyncio.sleep(delay)
                delay = min(delay * 2, 30.0)

    async def _clear_folder(self, run_id: str) -> None:
        """An ended run needs its checkout, its scratch folder and its logs no more: what counts is in artifacts."""
        run = await self.house.store.get_run(run_id)
        folder = self.house.places.of_run(run_id)
        if run.status in ENDED and folder.exists():
            with contextlib.suppress(OSError, GitFailed):
                await self.house.port(Git).close_workspace(folder)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
