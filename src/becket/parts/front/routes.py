"""Everything that can be asked of the front, in one table: tests are made from it, so that nothing can be forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from becket.kernel.contract.part import Target
from becket.parts.front.accounts import PageRole
from becket.parts.front.api.operations import BELOW, OPERATIONS

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


PAGES = (
    Route("GET", "/", "page", "becket.parts.front.pages.home:home"),
    Route("GET", "/runs/{run}", "page", "becket.parts.front.pages.run:run"),
    Route("GET", "/runs/{run}/log", "page", "becket.parts.front.pages.log:log"),
    Route("GET", "/runs/{run}/receipts/{digest}", "page", "becket.parts.front.pages.verification:receipt"),
)
PEOPLE = (
    Route("GET", "/login", "public", "becket.parts.front.login:ask", None),
    Route("POST", "/login", "public", "becket.parts.front.login:log_in", None, 4_000),
    Route("GET", "/enter/{link}", "public", "becket.parts.front.login:enter_by_link", None),
    Route("POST", "/logout", "form", "becket.parts.front.login:log_out"),
    Route("GET", "/live", "stream", "becket.parts.front.live:live"),
)

DECISIONS: tuple[Route, ...] = (
    Route("POST", "/runs/{run}/verify", "form", "becket.parts.front.pages.verification:verify"),
)
FRAGMENTS: tuple[Route, ...] = (
    Route("GET", "/runs/{run}/artifacts/{digest}", "raw", "becket.parts.front.pages.files:artifact"),
    Route("GET", "/runs/{run}/report", "raw", "becket.parts.front.pages.files:report"),
)
API: tuple[Route, ...] = (
    Route("GET", f"{BELOW}/openapi.json", "api", "becket.parts.front.api.describe:openapi"),
    *(
        Route(one.method, f"{BELOW}{one.path}", "api", f"becket.parts.front.api.serve:{one.name}", one.needs, one.body)
        for one in OPERATIONS
    ),
)
HOOKS: tuple[Route, ...] = (Route("POST", "/hooks/{hook}", "hook", "becket.parts.front.hooks:receive", None, 262_144),)

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
