"""A page that is open: its `main` again, whenever it has changed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from starlette.responses import Response, StreamingResponse
from starlette.routing import compile_path

from becket.app.parts import load
from becket.kernel.contract.errors import BecketError, NotFound
from becket.parts.front.asked import Asked
from becket.parts.front.render import Main
from becket.parts.front.routes import PAGES, Page, Route
from becket.parts.front.safety import Refused

ALIVE_EVERY = 15.0
RENDERED_FOR = 0.1
"""Seconds that a page is not rendered again for: a busy engine writes more often than anybody reads."""
SHARE = 4
"""A page that takes long to render is rendered that much less often."""
LONGEST = 4 * 3600.0
"""Then the browser comes again by itself, and is asked again who it is."""

_PATHS = [(compile_path(route.path)[0], route) for route in PAGES]


async def live(asked: Asked) -> Response:
    """`path` is the page that is open, with its query; `seen` is the digest of what it shows."""
    target = urlsplit(asked.query.get("path", ""))
    route, params = _route(target.path)
    if not asked.who.may(route.needs or "viewer"):
        raise NotFound("there is no such page")
    query = dict(parse_qsl(target.query[:2000], keep_blank_values=True))
    query.pop("said", None)
    seen = asked.headers.get("last-event-id") or asked.query.get("seen", "")
    page = replace(asked, path=target.path, params=params, query=query)
    return StreamingResponse(_events(page, route, seen), media_type="text/event-stream")


def _route(path: str) -> tuple[Route, dict[str, str]]:
    for pattern, route in _PATHS:
        if found := pattern.match(path):
            return route, found.groupdict()
    raise NotFound("there is no such page")


async def _events(asked: Asked, route: Route, seen: str) -> AsyncIterator[bytes]:
    front, ends = asked.front, time.monotonic() + LONGEST
    yield b"retry: 1000\n\n"
    async with front.feed.listening() as feed:
        version = await feed.look()
        while time.monotonic() < ends:
            main = await front.mains.get(asked, route)
            if isinstance(main, str):
                yield _event("trouble", "", {"why": main})
            elif main.digest != seen:
                seen = main.digest
                yield _event(
                    "main", seen, {"html": main.html.replace(front.mains.csrf, asked.who.csrf), "title": main.title}
                )
            now = await feed.after(version, ALIVE_EVERY)
            if now == version:
                yield b": alive\n\n"
            version = now


def _event(name: str, mark: str, data: dict[str, str]) -> bytes:
    return f"event: {name}\n{f'id: {mark}' if mark else ': none'}\ndata: {json.dumps(data)}\n\n".encode()


class Mains:
    """What open pages show, rendered once for all who see the same."""

    def __init__(self, csrf: str) -> None:
        self.csrf = csrf
        """Stands where each session's own belongs."""
        self._known: dict[tuple[object, ...], tuple[int, float, float, Main | str]] = {}
        self._busy: dict[tuple[object, ...], asyncio.Lock] = {}

    async def get(self, asked: Asked, route: Route) -> Main | str:
        """As it is now, or why it cannot be shown."""
        who = asked.who
        key = (asked.path, tuple(sorted(asked.query.items())), who.role, who.name, asked.lang)
        async with self._busy.setdefault(key, asyncio.Lock()):
            version, now = asked.front.feed.version, time.monotonic()
            known = self._known.get(key)
            if known is not None and known[0] == version:
                return known[3]
            if known is not None and (rest := known[1] + max(RENDERED_FOR, SHARE * known[2]) - now) > 0:
                await asyncio.sleep(rest)
                version, now = asked.front.feed.version, time.monotonic()
            made = await self._made(asked, route)
            ended = time.monotonic()
            self._known[key] = (version, ended, ended - now, made)
            self._forget(ended)
            return made

    async def _made(self, asked: Asked, route: Route) -> Main | str:
        shared = replace(asked, visitor=replace(asked.who, csrf=self.csrf))
        try:
            return asked.front.renderer.main(shared, cast("Page", await load(route.target)(shared)))
        except (BecketError, Refused) as error:
            return asked.app.redactor.text(str(error))

    def _forget(self, now: float) -> None:
        if len(self._known) > 500:
            self._known = {key: one for key, one in self._known.items() if one[1] > now - 60}
            self._busy = {key: lock for key, lock in self._busy.items() if key in self._known or lock.locked()}
