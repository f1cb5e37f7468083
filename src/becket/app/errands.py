"""What parts do in the daemon: chores and residents, each told by its part's name. None holds up the engine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from becket.app.parts import installed, wait_for
from becket.kernel.contract.errors import BecketError, StoreDamaged, WorkerDeclaredDead
from becket.kernel.contract.part import Chore, Part, Target

if TYPE_CHECKING:
    from becket.app.compose import App

log = logging.getLogger("becket.parts")

LONG = 600.0
"""A chore that takes longer is told in the daemon's log."""
DRIVER_PATIENCE = 60.0
"""So long a command waits for a chore once its own runs are over."""


def chores() -> Iterator[tuple[Part, Chore]]:
    return ((part, chore) for part in installed() for chore in part.chores)


@dataclass(frozen=True, slots=True)
class PartResident:
    """Runs as long as the daemon does."""

    app: App
    part: Part
    target: Target

    async def __call__(self) -> None:
        await wait_for(self.part, self.target, self.app)

    def __str__(self) -> str:
        return f"the resident {self.target} of the part {self.part.name}"


class PartChore:
    """In a task of its own, and never twice at once: one that hangs holds up neither runs nor triggers."""

    def __init__(self, app: App, part: Part, target: Target) -> None:
        self._app, self._part, self._target = app, part, target
        self._task: asyncio.Task[None] | None = None
        self._begun = 0.0
        self._told = False
        self.fail: Callable[[BecketError], None] = lambda _: None

    async def __call__(self) -> None:
        if self._task is None or self._task.done():
            self._begun, self._told = time.monotonic(), False
            self._task = asyncio.create_task(self._once(), name=str(self))
        elif not self._told and time.monotonic() - self._begun > LONG:
            self._told = True
            log.warning("%s has been at it for %.0f s and is not begun again meanwhile", self, LONG)

    def __str__(self) -> str:
        return f"the chore {self._target} of the part {self._part.name}"

    async def _once(self) -> None:
        try:
            await wait_for(self._part, self._target, self._app)
        except (WorkerDeclaredDead, StoreDamaged) as error:
            self.fail(error)
        except BecketError as error:
            log.error("%s: %s", self, error)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def do_once(app: App) -> None:
    """Every chore, at the end of a command: there may never be a daemon. What fails costs its runs nothing."""
    for part, chore in chores():
        try:
            async with asyncio.timeout(DRIVER_PATIENCE):
                await wait_for(part, chore.target, app)
        except (WorkerDeclaredDead, StoreDamaged):
            raise
        except TimeoutError:
            log.error("the chore %s of the part %s did not end within %g s", chore.target, part.name, DRIVER_PATIENCE)
        except BecketError as error:
            log.error("%s", error)
