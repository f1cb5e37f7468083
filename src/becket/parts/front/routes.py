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


PAGES: tuple[Route, ...] = (
    Route("GET", "/", "page", "becket.parts.front.pages.home:home"),
    Route("GET", "/runs", "page", "becket.parts.front.pages.runs:runs"),
    Route("GET", "/runs/{run}", "page", "becket.parts.front.pages.run:run"),
    Route("GET", "/runs/{run}/log", "page", "becket.parts.front.pages.log:log"),
    Route("GET", "/runs/{run}/receipts/{digest}", "page", "becket.parts.front.pages.verification:receipt"),
    Route("GET", "/asks/approvals/{approval}", "page", "becket.parts.front.pages.asks:approval"),
    Route("GET", "/asks/handoffs/{handoff}", "page", "becket.parts.front.pages.asks:handoff"),
    Route("GET", "/proposals", "page", "becket.parts.front.pages.proposals:proposals"),
    Route("GET", "/proposals/{run}", "page", "becket.parts.front.pages.proposals:proposal"),
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
    Route("POST", "/asks/approvals/{approval}/approve", "form", "becket.parts.front.decisions:approve", "member"),
    Route("POST", "/asks/approvals/{approval}/deny", "form", "becket.parts.front.decisions:deny", "member"),
    Route("POST", "/asks/approvals/{approval}/revoke", "form", "becket.parts.front.decisions:revoke", "member"),
    Route("POST", "/asks/handoffs/{handoff}/take", "form", "becket.parts.front.decisions:take", "member"),
    Route("POST", "/asks/handoffs/{handoff}/settle", "form", "becket.parts.front.decisions:settle", "member"),
    Route("POST", "/proposals/{run}/accept", "form", "becket.parts.front.decisions:accept", "member"),
    Route("POST", "/proposals/{run}/decline", "form", "becket.parts.front.decisions:decline", "member"),
    Route("POST", "/proposals/{run}/comment", "form", "becket.parts.front.decisions:comment", "member"),
    Route("POST", "/proposals/{run}/uncomment", "form", "becket.parts.front.decisions:uncomment", "member"),
    Route("POST", "/proposals/{run}/changes", "form", "becket.parts.front.decisions:changes", "member"),
    Route("POST", "/runs/{run}/cancel", "form", "becket.parts.front.decisions:cancel", "member"),
    Route("POST", "/runs/{run}/retry", "form", "becket.parts.front.decisions:retry", "member"),
    Route("POST", "/runs/{run}/hold", "form", "becket.parts.front.decisions:hold", "member"),
    Route("POST", "/runs/{run}/release", "form", "becket.parts.front.decisions:release", "member"),
    Route("POST", "/loops/{loop}/start", "form", "becket.parts.front.decisions:start", "member"),
    Route("POST", "/loops/{loop}/pause", "form", "becket.parts.front.decisions:pause", "member"),
    Route("POST", "/loops/{loop}/resume", "form", "becket.parts.front.decisions:resume", "member"),
    Route("POST", "/services/{service}/{what}", "form", "becket.parts.front.pages.services:ask", "approver"),
    Route("POST", "/runs/{run}/verify", "form", "becket.parts.front.pages.verification:verify"),
    Route("POST", "/pause", "form", "becket.parts.front.decisions:pause", "member"),
    Route("POST", "/resume", "form", "becket.parts.front.decisions:resume", "member"),
)
"""Who may what beyond that, the desk says."""
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
