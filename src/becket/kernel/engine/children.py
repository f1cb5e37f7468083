"""Tells the journal about the processes of a run, so that a crash of ours leaves no unknown one behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.run import Run
from becket.kernel.contract.store import Store


@dataclass(frozen=True, slots=True)
class Children:
    """Implements ChildWatcher for one claim on one run."""

    store: Store
    run: Run
    redact: Callable[[str], str]

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        shown = [self.redact(word) for word in argv]
        await self.store.child_started(self.run.run_id, self.run.epoch, child, shown)

    async def ended(self, child: ChildRef) -> None:
        await self.store.child_ended(child)
