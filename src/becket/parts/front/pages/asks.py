"""What is asked of people: one question, and one thing that was handed over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
WORDS = {EventKind.approval_asked: "asked", EventKind.approval_used: "used", EventKind.handoff_opened: "handed over"}
STATES = (EventKind.approval_decided, EventKind.handoff_changed)


@dataclass(frozen=True, slots=True)
class ToldLine:
    """One line of what happened: by whom, with which role, by which way in."""

    seq: int
    at: float
    what: str
    by: str
    role: str
    via: str
    note: str


async def approval(asked: Asked) -> Page:
    app = asked.app
    item = await app.store.get_approval(asked.params["approval"])
    found = await read_question(app, item.approval_id)
    run = await app.store.get_run(item.run_id)
    data = {
        "item": item, "run": run, "candidate": found.candidate, "patch": read_patch(found.diff) if found.diff else None,
        "text": found.text if found.text.strip() not in item.question else "",
        "history": tuple(await _told(asked, run, item.approval_id)),
        "shown_apart": not found.candidate and not found.text,
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


async def _told(asked: Asked, run: Run, about: str) -> Iterator[ToldLine]:
    events = await asked.app.store.events(run.run_id, max(0, run.event_count - LAST_EVENTS), LAST_EVENTS)
    mine = [one for one in events if about in (one.data.get("approval_id"), one.data.get("handoff_id"))]
    return (_line(one) for one in mine if one.kind in WORDS or one.kind in STATES)


def _line(event: Event) -> ToldLine:
    said = {name: str(event.data.get(name) or "") for name in ("state", "by", "role", "via", "note")}
    return ToldLine(
        event.seq, event.at, WORDS.get(event.kind) or said["state"], said["by"], said["role"],
        said["via"].replace("_", " "), said["note"],
    )  # fmt: skip
