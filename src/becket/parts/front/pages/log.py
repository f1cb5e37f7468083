"""A step's log: its end while it grows, any part of it later, and the lines that hold a word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from markupsafe import Markup

from becket.app.record.log_part import LogPart, Search, read_part, search
from becket.app.record.step_logs import StepLog, StepPlace, logs_of
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.run import ENDED
from becket.parts.front.ansi import html_lines
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page

GROWING = 48 * 1024
"""Bytes of the end of one that grows: they are sent again and again."""
LARGEST = 10**12
LONGEST_FIND = 100


async def log(asked: Asked) -> Page:
    run = await asked.app.store.get_run(await asked.run_id())
    place = StepPlace.read(asked.query.get("step", ""))
    logs = await logs_of(asked.app, run, place)
    if not logs and run.status in ENDED:
        raise NotFound("this step kept no log")
    chosen = _chosen(logs, asked.query.get("name", ""))
    find, at = asked.query.get("find", "").strip()[:LONGEST_FIND], _offset(asked.query.get("at", ""))
    part, found, gone = await asyncio.to_thread(_read, chosen, at, find, asked)
    shown = Markup(numbered(part)) if part is not None else ""  # noqa: S704  # escaped line by line
    data = {
        "run": run, "place": place, "logs": logs, "chosen": chosen, "part": part, "lines": shown, "find": find,
        "found": found, "gone": gone, "base": f"/runs/{run.run_id}/log", "link": _linker(run.run_id, place, chosen),
        "grows": chosen is not None and not chosen.digest, "window": GROWING * 4,
    }  # fmt: skip
    return Page("log.html", data)


def _chosen(logs: Sequence[StepLog], name: str) -> StepLog | None:
    """By its name among those that there are; if none is named, the one that grows, or the first."""
    if name:
        found = next((one for one in logs if one.name == name), None)
        if found is None:
            raise NotFound("this step has no such log")
        return found
    growing = [one for one in logs if not one.digest]
    return growing[-1] if growing else logs[0] if logs else None


def _offset(text: str) -> int | None:
    return min(int(text), LARGEST) if text.isascii() and text.isdigit() and len(text) < 14 else None


def _read(
    chosen: StepLog | None, at: int | None, find: str, asked: Asked
) -> tuple[LogPart | None, Search | None, bool]:
    if chosen is None:
        return None, None, False
    if chosen.path is None:
        return None, None, True
    redact = asked.app.redactor.text
    try:
        if find:
            return None, search(chosen.path, find, redact), False
        if at is None and not chosen.digest:
            return read_part(chosen.path, None, redact, GROWING), None, False
        return read_part(chosen.path, at, redact), None, False
    except OSError:  # the run ended meanwhile; what was kept is found at the next look
        return None, None, False


def numbered(part: LogPart) -> str:
    rows = (
        f'<span id="L{number}" data-n="{number}">{line or " "}</span>'
        for number, line in enumerate(html_lines(part.text), part.first)
    )
    return "".join(rows)


def _linker(run_id: str, place: StepPlace, chosen: StepLog | None) -> Callable[..., str]:
    """Makes the address of another part of this log."""
    same = {"step": str(place), **({"name": chosen.name} if chosen is not None else {})}

    def link(**more: object) -> str:
        return f"/runs/{run_id}/log?{urlencode({**same, **more})}"

    return link
