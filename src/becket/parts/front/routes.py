"""Everything that can be asked of the front, in one table: tests are made from it, so that nothing can be forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from becket.kernel.contract.part import Target
from becket.parts.front.accounts import PageRole

Kind = Literal["page", "form", "raw", "stream", "public", "api", "hook"]
"""page: HTML, live. form: a change, asked with the page's token. raw: a file or a fragment. stream: what changes.
public: asks for no login. api: with a token. hook: signed.
"""


class Route(NamedTuple):
    method: Literal["GET", "POST", "DELETE"]
    path: str
    kind: Kind
    target: Target
    needs: PageRole | None = "viewer"
    """None: anybody, or whoever signs."""
    body: int = 64_000
    """Bytes of a body, at most."""


PAGES: tuple[Route, ...] = (
    Route("GET", "/", "page", "becket.parts.front.pages.home:home"),
    Route("GET", "/runs", "page", "becket.parts.front.pages.runs:runs"),
    Route("GET", "/loops", "page", "becket.parts.front.pages.loops:loops"),
    Route("GET", "/loops/{loop}", "page", "becket.parts.front.pages.loops:loop"),
    Route("GET", "/services", "page", "becket.parts.front.pages.services:services"),
    Route("GET", "/services/{service}", "page", "becket.parts.front.pages.services:service"),
    Route("GET", "/spend", "page", "becket.parts.front.pages.spend:spend"),
    Route("GET", "/trends", "page", "becket.parts.front.pages.spend:trends"),
)
PEOPLE = (
    Route("GET", "/login", "public", "becket.parts.front.login:ask", None),
    Route("POST", "/login", "public", "becket.parts.front.login:log_in", None, 4_000),
    Route("GET", "/enter/{link}", "public", "becket.parts.front.login:enter_by_link", None),
    Route("POST", "/logout", "form", "becket.parts.front.login:log_out"),
    Route("GET", "/live", "stream", "becket.parts.front.live:live"),
)

DECISIONS: tuple[Route, ...] = (
    Route("POST", "/services/{service}/{what}", "form", "becket.parts.front.pages.services:ask", "approver"),
)
FRAGMENTS: tuple[Route, ...] = ()
API: tuple[Route, ...] = ()
HOOKS: tuple[Route, ...] = ()

ROUTES: tuple[Route, ...] = (*PAGES, *PEOPLE, *DECISIONS, *FRAGMENTS, *API, *HOOKS)


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows: a template, and the read models that it is over."""

    template: str
    data: dict[str, object]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Go:
    """After a change: where to go on, and what to say there."""

    path: str
    said: str = ""


Endpoint = Callable[..., Awaitable[object]]
