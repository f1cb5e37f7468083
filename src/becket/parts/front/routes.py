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


PAGES = (
    Route("GET", "/", "page", "becket.parts.front.pages.home:home"),
    Route("GET", "/asks/approvals/{approval}", "page", "becket.parts.front.pages.asks:approval"),
    Route("GET", "/asks/handoffs/{handoff}", "page", "becket.parts.front.pages.asks:handoff"),
    Route("GET", "/proposals", "page", "becket.parts.front.pages.proposals:proposals"),
    Route("GET", "/proposals/{run}", "page", "becket.parts.front.pages.proposals:proposal"),
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
    Route("POST", "/pause", "form", "becket.parts.front.decisions:pause", "member"),
    Route("POST", "/resume", "form", "becket.parts.front.decisions:resume", "member"),
)
"""Who may what beyond that, the desk says."""
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
