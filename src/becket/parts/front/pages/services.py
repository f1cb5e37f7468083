"""Services: what is in service, what was, and how they fared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from becket.app.record.services_now import read_history
from becket.kernel.contract.errors import NotFound
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Go, Page
from becket.parts.services.desk import find, log_end, order, roll_back
from becket.parts.services.desk import services as known
from becket.parts.services.ports import RequestOutcome, ServiceOperation

LINES = 200
WAITS = 4.0
"""Seconds that a form waits for an outcome; the page shows what comes later."""
DONE = {"start": "{name} is up.", "stop": "{name} is stopped.", "restart": "{name} is up again.",
        "back": "{name} is back at {sha}."}  # fmt: skip
OPERATIONS = {"start": ServiceOperation.start, "stop": ServiceOperation.stop, "restart": ServiceOperation.restart}


class _StillAtWork(Exception):
    pass


async def services(asked: Asked) -> Page:
    return Page("services.html", {"services": await asyncio.to_thread(known, asked.app.state)})


async def service(asked: Asked) -> Page:
    state, name = asked.app.state, asked.params["service"]
    one = await asyncio.to_thread(find, state, name)
    releases, incidents = await asyncio.to_thread(read_history, state, one.name)
    lines = await asyncio.to_thread(log_end, state, one.name, LINES)
    return Page("service.html", {"one": one, "releases": releases, "incidents": incidents, "lines": lines})


async def ask(asked: Asked) -> Go:
    """Start, stop, restart or roll back. What takes longer goes on by itself: it is on record."""
    what, name = asked.params["what"], asked.params["service"]
    if what not in DONE:
        raise NotFound(f"a service is told to {', '.join(DONE)}")
    state, caller, waiting = asked.app.state, asked.caller(), _patience()
    sha = asked.form.get("sha", "")[:64]

    def carry() -> RequestOutcome | None:
        try:
            if what == "back":
                return roll_back(state, caller, name, sha, waiting)
            return order(state, caller, name, OPERATIONS[what], waiting)
        except _StillAtWork:
            return None

    outcome = await asyncio.to_thread(carry)
    await asked.front.feed.ring()
    return Go(f"/services/{find(state, name).name}", _said(what, name, sha, outcome))


def _said(what: str, name: str, sha: str, outcome: RequestOutcome | None) -> str:
    if outcome is None:
        return f"It was asked for; {name} is at it."
    return DONE[what].format(name=name, sha=sha[:12]) if outcome.good else f"It failed: {outcome.reason}"


def _patience() -> Callable[[], None]:
    until = time.monotonic() + WAITS

    def waiting() -> None:
        if time.monotonic() > until:
            raise _StillAtWork

    return waiting
