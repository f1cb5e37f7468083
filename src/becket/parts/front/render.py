"""Pages from templates. What stands in `main` is sent again when it changes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from becket.app.record.report import elements
from becket.app.record.report.plain import moment, spaced, took
from becket.kernel.contract.text import harmless
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Page
from becket.parts.front.words import LANGUAGES, speaker


@dataclass(frozen=True, slots=True)
class Main:
    """A page's `main`, without what is of one session."""

    html: str
    title: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.html.encode()).hexdigest()[:16]


class Renderer:
    """Everything that reaches a template is text: escaped, without control characters, without secrets."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._templates = Environment(
            loader=PackageLoader("becket.parts.front"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True, finalize=self._shown,
        )  # fmt: skip
        self._templates.filters |= FILTERS
        self._templates.globals |= {"pill": _pill, "LANGUAGES": LANGUAGES}

    def _shown(self, value: object) -> object:
        return value if isinstance(value, Markup) else self._redact(harmless(value)) if value is not None else ""

    async def whole(self, asked: Asked, page: Page) -> str:
        return self._template(page).render(self._context(asked, page))

    def main(self, asked: Asked, page: Page) -> Main:
        """What is inside of <main>, and nothing around it. A block by itself would not know what its file imports."""
        html = self._template(page).render(self._context(asked, page))
        return Main(_inside(html, "main"), unescape(_inside(html, "title")))

    def _template(self, page: Page) -> Template:
        return self._templates.get_template(page.template)

    def _context(self, asked: Asked, page: Page) -> dict[str, Any]:
        visitor = asked.visitor
        return {
            "visitor": visitor, "path": asked.path, "lang": asked.lang, "_": speaker(asked.lang),
            "csrf": visitor.csrf if visitor else "", "said": asked.query.get("said", "")[:300],
            "may": visitor.may if visitor else _may_not, **page.data,
        }  # fmt: skip


def _inside(html: str, tag: str) -> str:
    """Of the one element of this name: whatever is shown is escaped."""
    begin = html.index(">", html.index(f"<{tag}")) + 1
    return html[begin : html.rindex(f"</{tag}>")]


def _may_not(needs: str) -> bool:
    return False


def _pill(state: str, tone: str = "") -> Markup:
    shown = elements.brief(spaced(state))
    return Markup(f'<span class="pill {tone or elements.tone(state)}">{shown}</span>')  # noqa: S704  # escaped above


def _since(at: float | None) -> Markup:
    """A moment; the page counts on by itself."""
    if at is None:
        return Markup("")
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return Markup(f'<time datetime="{stamp}" data-since="{at:.0f}">{moment(at)}</time>')  # noqa: S704  # numbers


def _short(digest: object) -> str:
    return str(digest)[:12]


FILTERS: dict[str, Callable[..., object]] = {"since": _since, "took": took, "moment": moment, "short": _short}
