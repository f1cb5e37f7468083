"""A page that is open: its `main` again, whenever it has changed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import cast
from urllib.parse import parse_qsl

from starlette.responses import Response, StreamingResponse
from starlette.routing import compile_path

from becket.app.parts import load
from becket.kernel.contract.errors import BecketError, NotFound
from becket.parts.front.asked import Asked
from becket.parts.front.routes import PAGES, Page, Route
from becket.parts.front.safety import Refused, check_text

ALIVE_EVERY = 15.0
RENDERED_FOR = 0.1
"""Seconds that a page is not rendered again for: a busy engine writes more often than anybody reads."""
SHARE = 4
"""A page that takes long to render is rendered that much less often."""
MOST_KEPT = 8_000_000
"""Bytes of pages that are kept for the next who looks."""
MOST_PAGES = 40
"""Of one login: nobody shall take the places of all others."""
LONGEST_PATH = 4_000
MOST_SHOWN = 500
LONGEST = 4 * 3600.0
"""Then the browser comes again by itself, and is asked again who it is."""

_PATHS = [(compile_path(route.path)[0], route) for route in PAGES]


async def live(asked: Asked) -> Response:
    """`path` is the page that is open, with its query; `seen` is the digest of what it shows."""
    if len(asked.query.get("path", "")) > LONGEST_PATH:
        raise NotFound("there is no such page")
    path, _, words = asked.query.get("path", "").partition("?")
    route, params = _route(path)
    if not asked.who.may(route.needs or "viewer"):
        raise NotFound("there is no such page")
    if asked.front.present.pages(asked.who) >= MOST_PAGES:
        raise Refused(429, f"{MOST_PAGES} pages of this login are open")
    query = dict(parse_qsl(words[:2000], keep_blank_values=True))
    check_text(path, *params.values(), *query.values())
    query.pop("said", None)
    seen = asked.headers.get("last-event-id") or asked.query.get("seen", "")
    page = replace(asked, path=path, params=params, query=query)
    return StreamingResponse(_events(page, route, seen), media_type="text/event-stream")


def _route(path: str) -> tuple[Route, dict[str, str]]:
    for pattern, route in _PATHS:
        if found := pattern.match(path):
            return route, found.groupdict()
    raise NotFound("there is no such page")


async def _events(asked: Asked, route: Route, seen: str) -> AsyncIterator[bytes]:
    front, ends = asked.front, time.monotonic() + LONGEST
    yield b"retry: 1000\n\n"
    with front.present.of(asked.who) as still:
        if front.present.pages(asked.who) > MOST_PAGES:  # they came at once
            return
        async with front.feed.listening() as feed:
            version = await feed.look()
            while time.monotonic() < ends and still():
                shown = await front.mains.get(asked, route)
                if not shown.digest or shown.digest != seen:
                    seen = shown.digest
                    yield shown.event.replace(front.mains.csrf.encode(), asked.who.csrf.encode())
                now = await feed.after(version, ALIVE_EVERY)
                if now == version:
                    yield b": alive\n\n"
                version = now


def _event(name: str, mark: str, data: dict[str, str]) -> bytes:
    return f"event: {name}\n{f'id: {mark}' if mark else ': none'}\ndata: {json.dumps(data)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A page as it was made, ready to be sent: `at` and for how long, of the journal's `version`."""

    version: int
    at: float
    took: float
    digest: str  # empty: it cannot be shown
    event: bytes


class Mains:
    """What open pages show, rendered once for all who see the same."""

    def __init__(self, csrf: str) -> None:
        self.csrf = csrf
        """Stands where each session's own belongs."""
        self._known: dict[tuple[object, ...], _Shown] = {}
        self._busy: dict[tuple[object, ...], asyncio.Lock] = {}

    async def get(self, asked: Asked, route: Route) -> _Shown:
        """As it is now, or why it cannot be shown."""
        who = asked.who
        key = (asked.path, tuple(sorted(asked.query.items())), who.role, who.name, asked.lang)
        wanted = asked.front.feed.version
        async with self._busy.setdefault(key, asyncio.Lock()):
            version, now = asked.front.feed.version, time.monotonic()
            known = self._known.get(key)
            # Made while this one waited its turn: else each of many would wait for one of their own.
            if known is not None and known.version >= wanted:
                return known
            if known is not None and (rest := known.at + max(RENDERED_FOR, SHARE * known.took) - now) > 0:
                await asyncio.sleep(rest)
                version, now = asked.front.feed.version, time.monotonic()
            digest, event = await self._made(asked, route)
            ended = time.monotonic()
            made = _Shown(version, ended, ended - now, digest, event)
            self._known.pop(key, None)  # the last to be made is the last to be forgotten
            if digest:
                self._known[key] = made
                self._forget()
            else:
                self._busy.pop(key, None)
            return made

    async def _made(self, asked: Asked, route: Route) -> tuple[str, bytes]:
        shared = replace(asked, visitor=replace(asked.who, csrf=self.csrf))
        try:
            main = asked.front.renderer.main(shared, cast("Page", await load(route.target)(shared)))
        except (BecketError, Refused) as error:
            return "", _event("trouble", "", {"why": asked.front.clean(str(error))})
        digest = main.digest
        return digest, _event("main", digest, {"html": main.html, "title": main.title})

    def _forget(self) -> None:
        kept = sum(len(one.event) for one in self._known.values())
        while self._known and (kept > MOST_KEPT or len(self._known) > MOST_SHOWN):
            kept -= len(self._known.pop(next(iter(self._known))).event)
        if len(self._busy) > 2 * len(self._known) + 100:
            self._busy = {key: lock for key, lock in self._busy.items() if key in self._known or lock.locked()}
