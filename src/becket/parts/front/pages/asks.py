"""What is asked of people: one question, and one thing that was handed over."""

from __future__ import annotations

from collections.abc import Iterator

from becket.app.record.patch import read_patch
from becket.app.record.questions import read_question
from becket.app.record.report.plain import because, pairs
from becket.app.record.takeover import take_over
from becket.kernel.contract.events import Event, EventKind
from becket.kernel.contract.handoff import UNSETTLED
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import Run
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page

LAST_EVENTS = 2_000
"""Of a long run only its last events are read."""
TOLD = frozenset({EventKind.approval_asked, EventKind.approval_decided, EventKind.approval_used,
                  EventKind.handoff_opened, EventKind.handoff_changed})  # fmt: skip


async def approval(asked: Asked) -> Page:
    app = asked.app
    item = await app.store.get_approval(asked.params["approval"])
    found = await read_question(app, item.approval_id)
    run = await app.store.get_run(item.run_id)
    data = {
        "item": item, "run": run, "candidate": found.candidate, "patch": read_patch(found.diff) if found.diff else None,
        "history": tuple(await _told(asked, run, item.approval_id)),
    }  # fmt: skip
    return Page("approval.html", data)


async def handoff(asked: Asked) -> Page:
    app = asked.app
    item = await app.store.get_handoff(asked.params["handoff"])
    run = await app.store.get_run(item.run_id)
    data = {
        "item": item, "run": run, "why": reason_words(item.reason), "because": because(item.evidence),
        "evidence": pairs(item.evidence), "commands": await take_over(app, item), "is_open": item.state in UNSETTLED,
        "is_repair": item.reason in REASONS, "history": tuple(await _told(asked, run, item.handoff_id)),
    }  # fmt: skip
    return Page("handoff.html", data)


async def _told(asked: Asked, run: Run, about: str) -> list[Event]:
    events = await asked.app.store.events(run.run_id, max(0, run.event_count - LAST_EVENTS), LAST_EVENTS)
    return list(_about(events, about))


def _about(events: tuple[Event, ...], about: str) -> Iterator[Event]:
    for event in events:
        if event.kind in TOLD and about in (event.data.get("approval_id"), event.data.get("handoff_id")):
            yield event
