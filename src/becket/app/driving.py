"""A command without a daemon moves its own run and that run's children, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence

from becket.app.compose import App
from becket.app.liveness import command_of, deaf_driver, engine_trouble, held, in_hand
from becket.app.neighbours import OwnRuns
from becket.app.serve import serve_own
from becket.app.state import holder
from becket.kernel.contract.base import new_id
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.spec import Signal
from becket.kernel.contract.store import Control, RunFilter
from becket.kernel.dispatch.bell import ring

ALL = "all"
LOOK_AGAIN = 2.0
GIVEN_UP = 5.0
"""An older run of the group that nobody takes up for so long, and no engine is there, is left to a person."""


async def see_through(app: App, caller: Caller, run_ids: Sequence[str]) -> None:
    """Come back when each run has ended, waits for somebody, or is kept from moving. Where there is an engine it moves
    them; else this process does.
    """
    own = OwnRuns(app.store, [(await app.store.get_run(run_id)).run_id for run_id in run_ids])
    turn = DriverTurn(app, own)
    await app.store.wake_due(among=await own.ids())  # what slept past its time, because nobody was there to wake it
    for run_id in own.asked:
        await _look_at_once(app, caller, run_id)
    while not await turn.at_rest():
        if not await serve_own(app, own, turn.at_rest, turn.tell):
            ring(app.state.bell)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(_poll(turn), LOOK_AGAIN)
            await turn.tell()


async def _look_at_once(app: App, caller: Caller, run_id: str) -> None:
    """Whoever asks is not kept waiting for the next look. Where somebody told when it is worth one, that time holds."""
    run = await app.store.get_run(run_id)
    if run.status is not RunStatus.waiting or run.held:
        return
    waits = app.loops.parse(await app.store.spec_text(run.spec_digest)).wait_conditions
    polled = [waits[name].wake for name in run.waiting_on if name in waits and waits[name].poll]
    for wake in {Signal.clock, Signal.worktree_changed}.intersection(polled):
        await app.store.signal(run_id, wake, caller.told(), new_id("look"))


async def _poll(turn: DriverTurn) -> None:
    while not await turn.at_rest():
        await asyncio.sleep(0.05)  # the other end is another process


class DriverTurn:
    """Whether there is anything left to do for a command's own runs, and for whom they wait."""

    def __init__(self, app: App, own: OwnRuns) -> None:
        self._app, self._own = app, own
        self._told: set[str] = set()
        self._idle: tuple[tuple[str, int], float] | None = None  # the run and segment that nobody takes up, since when

    async def at_rest(self) -> bool:
        """Children are asked first: one that ends meanwhile has woken its parent."""
        for run_id in reversed(await self._own.ids()):
            if not await at_rest(self._app, run_id) and not await self._left_behind(run_id):
                return False
        return True

    async def _left_behind(self, run_id: str) -> bool:
        first = await first_of_group(self._app, await self._app.store.get_run(run_id))
        if first is None or first.status is not RunStatus.queued or self._engine() or self._taken(first):
            self._idle = None
            return False
        seen = (first.run_id, first.segment)
        if self._idle is None or self._idle[0] != seen:
            self._idle = (seen, time.monotonic())
        return time.monotonic() - self._idle[1] >= GIVEN_UP

    def _taken(self, run: Run) -> bool:
        return self._own.has(run.run_id) or run.run_id in in_hand(self._app.state)

    def _engine(self) -> bool:
        return holder(self._app.state.engine_lock) is not None

    async def tell(self) -> None:
        """A chore: whoever waits is told, once, for whom, and of a process that does not hear."""
        self._say(engine_trouble(self._app.state) if self._engine() else "")
        for run_id in await self._own.ids():
            run = await self._app.store.get_run(run_id)
            first = await first_of_group(self._app, run)
            if first is not None and first.status is RunStatus.running:
                self._say(f"{run_id} waits for {first.run_id} ({first.subject.name}), which {await self._who(first)}.")
            self._say(await self._deaf(run if first is None else first))

    async def _who(self, run: Run) -> str:
        pid = next((one.pid for one in await self._app.store.workers() if one.worker_id == run.worker), None)
        return "is at work" if pid is None else f"pid {pid} (`{command_of(pid)}`) is at work on"

    async def _deaf(self, run: Run) -> str:
        driver = None if run.worker is None else held(self._app.state.drivers / run.worker)
        return deaf_driver(driver) if driver is not None and driver.deaf else ""

    def _say(self, text: str) -> None:
        about = text.partition(" has given no sign")[0]  # for how long is no news
        if text and about not in self._told:
            self._told.add(about)
            print(text, file=sys.stderr, flush=True)


async def at_rest(app: App, run_id: str) -> bool:
    """Nothing will happen to the run until somebody does something."""
    run = await app.store.get_run(run_id)
    if run.status in ENDED or run.status is RunStatus.waiting or run.held:
        return True
    return run.status is RunStatus.queued and await paused_by(app, run.loop_id) is not None


async def paused_by(app: App, loop_id: str) -> Control | None:
    """The brake that keeps this loop from starting."""
    return next((item for item in await app.store.controls() if item.scope in (ALL, f"loop:{loop_id}")), None)


async def first_of_group(app: App, run: Run) -> Run | None:
    """The run that a queued one waits for: of its group the one at work, or an older one that may start."""
    if run.status is not RunStatus.queued or run.group is None:
        return None
    statuses = (RunStatus.running, RunStatus.queued)
    others = await app.store.list_runs(RunFilter(group=run.group, statuses=statuses, limit=None, oldest_first=True))
    for other in sorted(others, key=lambda one: one.status is not RunStatus.running):
        if other.run_id == run.run_id:
            return None
        if other.status is RunStatus.running or not (other.held or await paused_by(app, other.loop_id)):
            return other
    return None


async def others_queued(app: App, run_ids: Sequence[str]) -> int:
    """Runs that could start, and that nobody is there for."""
    if holder(app.state.engine_lock) is not None:
        return 0
    taken = {*run_ids, *in_hand(app.state)}
    return sum(run_id not in taken for run_id, _ in await app.store.startable(1000))
