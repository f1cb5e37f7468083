"""What every request must pass before anything is done with it, and what every answer carries."""

from __future__ import annotations

import contextlib
import hmac
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.requests import Request

from becket.app.compose import App
from becket.app.keyboard import at_keyboard
from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import (
    PageRole,
    Visitor,
    csrf_of,
    digest_of,
    find_key,
    find_user,
    sessions,
)
from becket.parts.front.kept import Address
from becket.parts.front.section import WebConfig

COOKIE = "becket-{port}"
"""Browsers keep cookies apart by host and not by port: another repository's page is at another port."""
OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Nobody else can make a page of theirs be called so."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Refused(Exception):
    """With the status of the answer, and what to do."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def check_host(request: Request, address: Address, config: WebConfig) -> None:
    """A page of somebody else's, whose name was made to point here, has another name than we are called by."""
    if request.headers.get("host", "").lower() not in names_of(address, config):
        raise Refused(421, "this name is not one of mine; see `web: {names: [...]}` in becket.yaml")


def names_of(address: Address, config: WebConfig) -> Collection[str]:
    own = (address.url.removeprefix("http://"), *(f"{name}:{address.port}" for name in OWN_NAMES))
    return {*_written(address, *own), *page_names(address, config)}


def page_names(address: Address, config: WebConfig) -> Collection[str]:
    """Under which sessions count."""
    return {*_written(address, address.page.removeprefix("http://")), *(name.lower() for name in config.names)}


def _written(address: Address, *names: str) -> Collection[str]:
    """Browsers leave port 80 out."""
    return {*names, *(name.removesuffix(":80") for name in names)} if address.port == 80 else names


def is_named(request: Request, address: Address, config: WebConfig) -> bool:
    return request.headers.get("host", "").lower() in page_names(address, config)


def address_of(request: Request, config: WebConfig) -> str:
    """Whose request it is: what a proxy says counts only where it is one of ours."""
    peer = request.client.host if request.client else ""
    if peer in config.proxies:
        told = ",".join(request.headers.getlist("x-forwarded-for"))  # some proxies add a line of their own
        return told.rpartition(",")[2].strip()[:60] or peer
    return peer


def is_https(request: Request, config: WebConfig) -> bool:
    peer = request.client.host if request.client else ""
    return peer in config.proxies and request.headers.get("x-forwarded-proto", "") == "https"


def cookie_name(address: Address) -> str:
    return COOKIE.format(port=address.port)


async def visitor_of(app: App, request: Request, cookie: str) -> Visitor | None:
    """By the session's cookie. Its role is what it is now, not what it was at the login."""
    secret = request.cookies.get(cookie, "")
    if not secret:
        return None
    digest = digest_of(secret)
    known = await app.port(TableStore).read(sessions, {digest})
    return _visitor(app, digest, known.get(digest), csrf_of(secret))


def _visitor(app: App, digest: str, session: tuple[str, PageRole | None] | None, csrf: str) -> Visitor | None:
    if session is None:
        return None
    user, role = session
    if not user:
        who = at_keyboard(app.config)
        return Visitor(who.name, who.role, "session", digest, csrf)
    return Visitor(user, role, "session", digest, csrf) if role else None


@dataclass
class Present:
    """Whose sessions have pages open. They are looked up again together, every few seconds: a session that was
    revoked, or whose user is gone or has another role, sees nothing more.
    """

    app: App
    _open: Counter[Visitor] = field(default_factory=Counter)
    _gone: set[Visitor] = field(default_factory=set)

    @contextlib.contextmanager
    def of(self, visitor: Visitor) -> Iterator[Callable[[], bool]]:
        """Whether they are still who they were."""
        self._open[visitor] += 1
        try:
            yield lambda: visitor not in self._gone
        finally:
            self._open[visitor] -= 1
            if not self._open[visitor]:
                del self._open[visitor]
                self._gone.discard(visitor)

    def pages(self, visitor: Visitor) -> int:
        return self._open[visitor]

    async def look(self) -> None:
        known = await self.app.port(TableStore).read(sessions, {one.digest for one in self._open})
        for one in self._open:
            if _visitor(self.app, one.digest, known.get(one.digest), one.csrf) != one:
                self._gone.add(one)


async def bearer_of(app: App, request: Request) -> Visitor | None:
    """By a token of the API. Of a user, it is worth no more than the user is now."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret:
        return None
    key = await app.port(TableStore).read(find_key, secret.strip(), "token")
    if key is None:
        return None
    role: PageRole = key.role  # type: ignore[assignment]  # as it was written
    visitor = Visitor(key.user or at_keyboard(app.config).name, role, "token", key.digest)
    if not key.user:
        return visitor
    found = await app.port(TableStore).read(find_user, key.user)
    if found is None:
        return None
    return visitor if found[0].role == role or Visitor("", found[0].role, "token", "").may(role) else None


def check_site(headers: Mapping[str, str]) -> None:
    """Browsers tell where a request began."""
    if not is_own(headers):
        raise Refused(403, "this was sent by another site")


def is_own(headers: Mapping[str, str]) -> bool:
    """To a plain-HTTP name they tell only the origin; what tells neither is no browser."""
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    told = headers.get("origin") or headers.get("referer") or ""
    return not told or urlsplit(told).netloc.lower() == headers.get("host", "").lower()


def check_form(visitor: Visitor, headers: Mapping[str, str], form: Mapping[str, str]) -> None:
    """A change comes from a page of ours: the cookie alone proves nothing."""
    shown = form.get("csrf") or headers.get("x-csrf", "")
    if not hmac.compare_digest(shown.encode(), visitor.csrf.encode()):
        raise Refused(403, "this form is of another login; load the page again")


def check_text(*texts: object) -> None:
    """A database stores no NUL, and nobody types one."""
    if any("\0" in str(text) for text in texts):
        raise Refused(422, "this has a character that no text has")


@dataclass
class Tries:
    """How often somebody may try, by what they are known by. Forgotten after a while."""

    most: int
    per: float
    known: dict[str, list[float]] = field(default_factory=dict)

    def check(self, *names: str) -> None:
        """Raises Refused where there were too many."""
        now = time.monotonic()
        if len(self.known) > 10_000:
            self.known = {name: at for name, at in self.known.items() if at[-1] > now - self.per}
        for name in names:
            recent = [at for at in self.known.get(name, []) if at > now - self.per]
            if len(recent) >= self.most:
                raise Refused(429, f"too many tries; wait {self.per:.0f} s")
            self.known[name] = [*recent, now]

    def forgive(self, *names: str) -> None:
        for name in names:
            self.known.pop(name, None)


HEARD_PER_MINUTE = 120
REFUSALS_NOTED = 20
"""In an hour: whoever knocks without end does not fill the audit."""


@dataclass
class Ingress:
    """How often each hook is heard, and how often a refusal is kept."""

    heard: Tries = field(default_factory=lambda: Tries(HEARD_PER_MINUTE, 60.0))
    noted: Tries = field(default_factory=lambda: Tries(REFUSALS_NOTED, 3600.0))
