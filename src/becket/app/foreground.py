"""A run in the foreground of a terminal: shown until it ends, stopped by Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from typing import Any

from becket.app.compose import App
from becket.app.desk import cancel, change_handoff
from becket.app.driving import see_through
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.handoff import HandoffState

PATIENCE = 10.0
"""Seconds that a cancelled run has to end in good order. Its programs are gone long before."""


async def see_or_stop(app: App, caller: Caller, run_id: str, watching: Coroutine[Any, Any, None]) -> bool:
    """See the run through with somebody looking on; an interruption cancels it. True: that is how it ended."""
    looking = asyncio.create_task(watching)
    driving = asyncio.create_task(see_through(app, caller, (run_id,)))
    stopped = False
    try:
        with _told_to_stop():
            await asyncio.shield(driving)
    except asyncio.CancelledError:
        stopped = True
        if (task := asyncio.current_task()) is not None:
            task.uncancel()  # from here on the run is brought to its end; a second Ctrl-C ends that too
        await _stop(app, caller, run_id, driving)
    finally:
        for each in (looking, driving):
            each.cancel()
        await asyncio.gather(looking, driving, return_exceptions=True)
    return stopped


@contextlib.contextmanager
def _told_to_stop() -> Iterator[None]:
    """A closed terminal and a polite kill count as Ctrl-C, which asyncio itself turns into a cancellation."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    wanted = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for each in wanted:
        loop.add_signal_handler(each, task.cancel)
    try:
        yield
    finally:
        for each in wanted:
            loop.remove_signal_handler(each)


async def _stop(app: App, caller: Caller, run_id: str, driving: asyncio.Task[None]) -> None:
    with contextlib.suppress(UsageError):  # it ended by itself in this very moment
        await cancel(app, caller, run_id, "interrupted at the terminal")
    await asyncio.wait({driving}, timeout=PATIENCE)


async def shown(app: App, caller: Caller, run_id: str) -> None:
    """Whoever asked for the call has seen how it ended: nobody else has to take it up."""
    for handoff in await app.store.handoffs((HandoffState.open,), run_id):
        await change_handoff(app, caller, handoff.handoff_id, HandoffState.done, "shown to whoever asked for the call")
