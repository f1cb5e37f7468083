"""Runs, the newest first, in pages."""

from __future__ import annotations

import base64
import binascii
import re
import time
from urllib.parse import urlencode

from becket.app.record.run_pages import RunsAsked, run_page
from becket.app.record.state_word import StateWord
from becket.kernel.contract.store import RunFilter
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page
from becket.parts.front.safety import Refused

LONGEST_TEXT = 200
_RUN = re.compile(r"[0-9A-Za-z_-]{1,80}")
BROKEN = "this place in the list cannot be read; begin at the top, at /runs"
GONE = "the runs of this place in the list are not kept any more; begin at the top, at /runs"


async def runs(asked: Asked) -> Page:
    query = asked.query
    before = await _before(asked, query.get("after", ""))
    wanted = RunsAsked(
        loop_id=query.get("loop") or None, word=_word(query.get("state", "")),
        text=query.get("text", "")[:LONGEST_TEXT], since=_day(query.get("since", "")), before=before,
    )  # fmt: skip
    found = await run_page(asked.app, wanted)
    kept = {name: query[name] for name in ("loop", "state", "text", "since") if query.get(name)}
    return Page(
        "runs.html",
        {
            "page": found, "wanted": wanted, "kept": kept, "words": tuple(StateWord), "begun": before is not None,
            "top": f"/runs?{urlencode(kept)}" if kept else "/runs",
            "loops": sorted({loop.spec.loop_id for loop in asked.app.loops.all()} | {query.get("loop", "")} - {""}),
            "further": f"/runs?{urlencode({**kept, 'after': cursor_of(found.further)})}" if found.further else "",
        },
    )  # fmt: skip


def cursor_of(run_id: str) -> str:
    return base64.urlsafe_b64encode(f"after {run_id}".encode()).decode().rstrip("=")


async def _before(asked: Asked, cursor: str) -> str | None:
    """The run that a cursor names. Raises Refused."""
    if not cursor:
        return None
    try:
        said = base64.urlsafe_b64decode(f"{cursor[:200]}{'=' * (-len(cursor[:200]) % 4)}".encode()).decode()
    except (binascii.Error, ValueError):
        raise Refused(422, BROKEN) from None
    word, _, run_id = said.partition(" ")
    if word != "after" or not _RUN.fullmatch(run_id) or cursor_of(run_id) != cursor:
        raise Refused(422, BROKEN)
    if not await asked.app.store.list_runs(RunFilter(before=run_id, limit=1)):
        raise Refused(422, GONE)
    return run_id


def _word(text: str) -> StateWord | None:
    if not text:
        return None
    found = next((word for word in StateWord if word == text), None)
    if found is None:
        raise Refused(422, f"{text[:40]!r} is no state; there are {', '.join(StateWord)}")
    return found


def _day(text: str) -> float | None:
    """The beginning of a day here."""
    if not text:
        return None
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d"))
    except (ValueError, OverflowError):
        raise Refused(422, f"{text[:40]!r} is no day; write it like 2026-11-19") from None
