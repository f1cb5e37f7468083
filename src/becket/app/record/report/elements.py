"""The elements of a report's page. What they take is escaped here, except where a name says that it is HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from becket.app.record.report.plain import spaced
from becket.kernel.contract.text import harmless

GOOD = frozenset(
    {
        "green",
        "completed",
        "completed_dry_run",
        "done",
        "proven",
        "crossed",
        "approved",
        "used",
        "changed",
        "holdout_passed",
    }
)
BAD = frozenset(
    {"red", "failed", "refused", "not_proven", "not_crossed", "denied", "crashed", "model_error", "holdout_failed"}
)
UNSURE = frozenset(
    {
        "undecided",
        "unknown",
        "cross_undecided",
        "ready_for_handoff",
        "waiting",
        "open",
        "taken",
        "accepted",
        "changing",
        "asked",
        "retrying",
        "powerful",
        "holdout_nothing",
    }
)

LONGEST = 500


def tone(state: str) -> str:
    return "good" if state in GOOD else "bad" if state in BAD else "unsure" if state in UNSURE else "plain"


def text(said: object) -> str:
    return html.escape(harmless(said))


def brief(said: object) -> str:
    """For what stands within a line; whoever asks a person something is shown in full."""
    shown = harmless(said)
    return html.escape(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…")


def code(said: object) -> str:
    return f"<code>{brief(said)}</code>" if str(said) else ""


def soft(inner_html: str) -> str:
    return f'<span class="soft">{inner_html}</span>' if inner_html else ""


def below(said: str) -> str:
    """Lesser words on a line of their own."""
    return f"<br>{soft(brief(said))}" if said else ""


def pill(state: str) -> str:
    return f'<span class="pill {tone(state)}">{brief(spaced(state))}</span>'


def counts(added: int, removed: int) -> str:
    return f'<span class="plus">+{added}</span> <span class="minus">−{removed}</span>'


def note(inner_html: str, *, urgent: bool = True) -> str:
    return f'<p class="note">{inner_html}</p>' if urgent else f"<p>{inner_html}</p>"


def pre(said: str, name: str) -> str:
    """It scrolls by itself, so the keyboard must reach it, and it has a name there."""
    return f'<pre tabindex="0" role="region" aria-label="{brief(name)}">{text(said.rstrip())}</pre>'


def commands(*lines: str) -> str:
    """Wrapped: one sees all of what one is about to copy."""
    return f'<pre class="commands">{text(chr(10).join(lines))}</pre>'


def fold(summary_html: str, inner_html: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{summary_html}</summary>{inner_html}</details>"


def listed(items_html: Iterable[str]) -> str:
    lines = "".join(f"<li>{item}</li>" for item in items_html)
    return f"<ul>{lines}</ul>" if lines else ""


def fact_list(rows_html: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<dt>{text(name)}</dt><dd>{value}</dd>" for name, value in rows_html)
    return f'<dl class="facts">{lines}</dl>' if lines else ""


def bar(part: float, whole: float) -> str:
    """A share as a length. The words beside it say the same, so nobody needs to see it."""
    share = min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0
    return f'<svg class="bar" aria-hidden="true"><rect width="{100 * share:.1f}%" height="100%"></rect></svg>'


def table(head: Sequence[str], rows_html: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """On a phone every row is a card: the roles keep it a table there, and each cell has its column's name."""
    kinds = [' class="number"' if index in numbers else "" for index in range(len(head))]
    titles = "".join(
        f'<th role="columnheader" scope="col"{kind}>{text(name)}</th>' for name, kind in zip(head, kinds, strict=True)
    )
    opening = [f'<td role="cell" data-name="{text(name)}"{kind}>' for name, kind in zip(head, kinds, strict=True)]
    lines = [
        '<tr role="row">' + "".join(f"{begin}{cell}</td>" for begin, cell in zip(opening, row, strict=True)) + "</tr>"
        for row in rows_html
    ]
    return (
        f'<table role="table"><thead role="rowgroup"><tr role="row">{titles}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(lines)}</tbody></table>'
    )
