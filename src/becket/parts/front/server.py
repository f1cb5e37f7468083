"""The server: every request passes the same checks, in the same order, whatever it asks for."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from becket.app.compose import App
from becket.app.parts import load
from becket.kernel.contract.errors import BecketError, NotFound, StoreUnavailable, UsageError
from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import KEY, Visitor, note
from becket.parts.front.asked import Asked
from becket.parts.front.feed import Feed
from becket.parts.front.kept import Address
from becket.parts.front.live import Mains
from becket.parts.front.render import Renderer
from becket.parts.front.routes import ROUTES, Go, Page, Route
from becket.parts.front.safety import (
    HEADERS,
    Ingress,
    Present,
    Refused,
    Tries,
    address_of,
    bearer_of,
    check_form,
    check_host,
    check_site,
    check_text,
    cookie_name,
    is_https,
    is_named,
    is_own,
    visitor_of,
)
from becket.parts.front.section import WebConfig
from becket.parts.front.words import language

log = logging.getLogger("becket.front")
T = TypeVar("T")

STATIC = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "notify.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
LONGEST_SAID = 300
BODY_WITHIN = 15.0
Served = Callable[[Request], Awaitable[Response]]


class Front:
    """What all requests share."""

    def __init__(self, app: App, address: Address) -> None:
        self.app = app
        self.address = address
        self.present = Present(app)
        self.feed = Feed(app.store, self.present.look, app.port(TableStore) if app.config.database else None)
        self.renderer = Renderer(self.clean)
        self.mains = Mains(secrets.token_hex(16))
        self.checks = asyncio.Semaphore(1)
        """A check of a password takes memory and a core, on purpose; a flood of them takes no more."""
        self.tries = Tries(most=10, per=300.0)
        self.ingress = Ingress()
        self._kept: dict[type, object] = {}
        static = [StarletteRoute(f"/static/{name}", _static(name), methods=["GET"]) for name in STATIC]
        by_path: dict[str, dict[str, Served]] = {}
        for one in ROUTES:
            by_path.setdefault(one.path, {})[one.method] = self._endpoint(one)
        routes = [StarletteRoute(path, _by_method(ways), methods=list(ways)) for path, ways in by_path.items()]
        for served in (*static, *routes):  # a HEAD would spend a link, and hold a stream open
            (served.methods or set()).discard("HEAD")
        inner = Starlette(routes=[*static, *routes], exception_handlers={HTTPException: _no_route, Exception: _fault})
        inner.router.redirect_slashes = False
        self.asgi: ASGIApp = _Guarded(inner, self)

    def kept(self, kind: type[T], make: Callable[[], T]) -> T:
        """Made once, for as long as the process lives."""
        found = self._kept.get(kind) or self._kept.setdefault(kind, make())
        return cast("T", found)

    @property
    def config(self) -> WebConfig:
        return self.app.config.section(WebConfig)

    def clean(self, text: str) -> str:
        """Without secrets, of which our own keys are known by their look."""
        return KEY.sub("bkt_***", self.app.redactor.text(text))

    def _endpoint(self, route: Route) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            asked = Asked(
                self, None, path=request.scope["path"], params=request.path_params, query=_query(request),
                headers=request.headers, address=address_of(request, self.config), lang=language(request),
                https=is_https(request, self.config), named=is_named(request, self.address, self.config),
            )  # fmt: skip
            try:
                check_text(*asked.params.values(), *asked.query.values())
                asked = replace(asked, visitor=await self._known(route, request, asked.named))
                asked = await self._let_in(route, request, asked)
                answer = await load(route.target)(asked)
                if route.kind == "form":
                    await self._noted(route, asked, "done")
                return await self.answer(route, asked, answer)
            except (Refused, BecketError) as error:
                if route.kind == "form" and asked.visitor is not None:
                    await self._noted(route, asked, str(error))
                return await self._said(route, asked, error)
            finally:
                if request.method != "GET":  # the journal tells only of what others wrote
                    await self.feed.ring()

        return endpoint

    async def _known(self, route: Route, request: Request, named: bool) -> Visitor | None:
        """Who it is. A session sent to a number may be one that another server there was handed."""
        visitor = await bearer_of(self.app, request) if route.kind == "api" else None
        if visitor is None and named and route.kind != "hook":  # the page's own scripts ask the API by the session
            visitor = await visitor_of(self.app, request, cookie_name(self.address))
        return visitor

    async def _let_in(self, route: Route, request: Request, asked: Asked) -> Asked:
        """Whether they may, and what they sent. Raises Refused."""
        visitor = asked.visitor
        if route.needs is not None:
            if visitor is None:
                raise Refused(401, "log in first: `becket open` on the machine, or your name and password")
            if not visitor.may(route.needs):
                raise Refused(403, f"{visitor.name} is {visitor.role}; this needs {route.needs}")
        if request.method in ("GET", "HEAD"):
            return asked
        if route.kind not in ("api", "hook"):
            check_site(request.headers)
        body = await _body(request, route.body)
        form = _form(request, body) if route.kind in ("form", "public") else {}
        if visitor is not None and visitor.kind == "session" and route.needs is not None:
            check_form(visitor, request.headers, form)
        return replace(asked, body=body, form=form)

    async def answer(self, route: Route, asked: Asked, answer: object) -> Response:
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, Go):
            said = f"{'&' if '?' in answer.path else '?'}said={quote(answer.said)}" if answer.said else ""
            return RedirectResponse(own_path(answer.path) + said, 303)
        if isinstance(answer, Page):
            html = await self.renderer.whole(asked, answer)
            return Response(html, answer.status, media_type="text/html; charset=utf-8")
        return JSONResponse(json.loads(answer) if isinstance(answer, str) else answer)

    async def _said(self, route: Route, asked: Asked, error: Refused | BecketError) -> Response:
        """An error as the one who asked can read it."""
        status, why = status_of(error), self.clean(str(error))
        if status == 401 and route.kind == "page":
            return RedirectResponse(f"/login?next={quote(asked.path)}", 303)
        if route.kind in ("api", "hook", "stream", "raw"):
            return problem(status, why)
        if route.kind == "form" and 400 <= status < 500 and status not in (401, 403) and asked.form.get("back"):
            return await self.answer(route, asked, Go(own_path(asked.form["back"]), why[:LONGEST_SAID]))
        title, seen = TITLES.get(status, "Something went wrong"), asked.form.get("seen", "")
        page = Page("error.html", {"title": title, "why": why, "seen": own_path(seen) if seen else ""}, status)
        return await self.answer(route, asked, page)

    async def _noted(self, route: Route, asked: Asked, outcome: str) -> None:
        who = asked.who
        about = " ".join(asked.params.values())
        told = self.clean(outcome)
        await asked.tables.write(note, who.name, who.role, who.kind, asked.address, route.path, about, told)

    def cookie(self, response: Response, secret: str, request_is_https: bool) -> Response:
        """The session's. No script sees it, and no other site's form brings it along."""
        lasts = int(self.config.session)
        response.set_cookie(
            cookie_name(self.address), secret, max_age=lasts, httponly=True, samesite="lax", secure=request_is_https
        )
        return response


def own_path(text: str) -> str:
    """A path of ours to go on at: never somebody else's address."""
    return text if text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() else "/"


TITLES = {
    401: "Log in", 403: "You may not do this", 404: "There is nothing here", 405: "Not in this way",
    408: "Too slow", 409: "This cannot be done now", 413: "Too large", 415: "Of another kind", 421: "Another name",
    422: "This cannot be read", 429: "Too often", 503: "Not now",
}  # fmt: skip


def status_of(error: Refused | BecketError) -> int:
    if isinstance(error, Refused):
        return error.status
    kinds: tuple[tuple[type[BecketError], int], ...] = ((NotFound, 404), (UsageError, 409), (StoreUnavailable, 503))
    return next((status for kind, status in kinds if isinstance(error, kind)), 409)


def problem(status: int, why: str, **more: Any) -> Response:
    """RFC 9457."""
    body = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status, "detail": why, **more}
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def _query(request: Request) -> dict[str, str]:
    """What was said after a change is shown to whoever made it, and not because another site's link says so."""
    query = dict(request.query_params)
    if not is_own(request.headers):
        query.pop("said", None)
    return query


async def _body(request: Request, most: int) -> bytes:
    """All of it. Raises Refused as soon as it is more than may come, and where it does not come."""
    try:
        async with asyncio.timeout(BODY_WITHIN):
            return await _whole_body(request, most)
    except (TimeoutError, ClientDisconnect):
        raise Refused(408, "what was to be sent did not come in time") from None


async def _whole_body(request: Request, most: int) -> bytes:
    told = request.headers.get("content-length", "0")
    found = bytearray()
    if told.isdigit() and int(told) > most:
        raise Refused(413, f"this may have {most:,} bytes")
    async for part in request.stream():
        found += part
        if len(found) > most:
            raise Refused(413, f"this may have {most:,} bytes")
    return bytes(found)


def _form(request: Request, body: bytes) -> Mapping[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Refused(415, "a form is sent as application/x-www-form-urlencoded")
    try:
        form = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=200, errors="strict"))
    except ValueError:
        raise Refused(422, "the form cannot be read") from None
    check_text(*form, *form.values())
    return form


class _Guarded:
    """Before and after everything: the name by which we are asked, and the headers of the answer."""

    def __init__(self, inner: ASGIApp, front: Front) -> None:
        self._inner = inner
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known),
                ]
            await send(message)

        try:
            check_host(request, self._front.address, self._front.config)
        except Refused as error:
            await problem(error.status, error.why)(scope, receive, sent)
            return
        await self._inner(scope, receive, sent)


async def _no_route(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    said = problem(status, "there is nothing here; go to /" if status == 404 else "this cannot be asked so")
    said.headers.update(getattr(error, "headers", None) or {})
    return said


async def _fault(request: Request, error: Exception) -> Response:
    log.error("%s %s", request.method, KEY.sub("bkt_***", request.scope["path"]), exc_info=error)
    return problem(500, "a fault in Becket; `front.log` in its state folder has more")


def _by_method(ways: Mapping[str, Served]) -> Served:
    async def endpoint(request: Request) -> Response:
        return await ways[request.method](request)

    return endpoint


def _static(name: str) -> Callable[[Request], Awaitable[Response]]:
    made: list[bytes] = []

    async def static(request: Request) -> Response:
        if not made:
            made.append(_content(name))
        return Response(made[0], media_type=STATIC[name], headers={"cache-control": "max-age=300"})

    return static


def _content(name: str) -> bytes:
    """The page's style stands on the reports': they show the same things."""
    folder = files(__package__) / "static"
    if name != "style.css":
        return (folder / name).read_bytes()
    own = sorted(one.name for one in folder.iterdir() if one.name.endswith(".css"))
    parts = [files("becket.app.record.report") / "page.css", *(folder / one for one in own)]
    return b"\n".join(part.read_bytes() for part in parts)
