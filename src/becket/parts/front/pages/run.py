"""A run's page: what happened, why it may be believed, what is asked of me; then how it went."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from markupsafe import Markup

from becket.app.record.conversation import Conversation, kept_conversations, open_conversations
from becket.app.record.output_now import PrintedLine, last_output
from becket.app.record.report.collect import report_from
from becket.app.record.report.html import ReportSection, head_of, sections_of, tone_of
from becket.app.record.report.model import Report
from becket.app.record.report.plain import is_proven
from becket.app.record.run_timeline import Timeline, timeline_of
from becket.app.record.state_word import StateWord, word_of
from becket.app.record.story import Story, read_outline
from becket.app.state import holder
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.handoff import UNSETTLED, Approval, Handoff
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.parts.front.asked import Asked
from becket.parts.front.diff_view import change_html
from becket.parts.front.pages.verification import verdict_of
from becket.parts.front.render import pill
from becket.parts.front.routes import Page
from becket.parts.front.server import Front

MOST_KEPT = 24
MOST_RECEIPTS = 200
LONGEST_SECTION = 300_000
"""Characters; who wants to read more loads the report."""
OWN = ("story", "change", "receipts")
TITLES = {"story": "Timeline", "change": "Change", "receipts": "Receipts"}
ORDER = ("people", "proof", "check", "story", "culprit", "change", "gates", "guard", "calls", "claims", "effects",
         "parts", "run", "conditions", "receipts")  # fmt: skip
_DIGEST = re.compile(r"<code>([0-9a-f]{12})</code>")


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as its journal had it at one moment: made once for all who look."""

    word: str
    tone: str
    head: Markup
    sections: tuple[ReportSection, ...]
    timeline: Timeline
    conversations: tuple[Conversation, ...]
    calls: tuple[AgentCall, ...]
    receipts: tuple[StoredReceipt, ...]
    more_receipts: int
    approvals: tuple[Approval, ...]
    handoffs: tuple[Handoff, ...]


_SEEN: WeakKeyDictionary[Front, OrderedDict[tuple[object, ...], RunView]] = WeakKeyDictionary()


async def run(asked: Asked) -> Page:
    found = await asked.app.store.get_run(await asked.run_id())
    seen = await _seen(asked, found)
    printed, talking = await asyncio.to_thread(_now, asked, found, seen)
    data = {
        "run": found, "seen": seen, "printed": printed, "conversations": (*seen.conversations, *talking),
        "approvals": seen.approvals, "handoffs": seen.handoffs, "verdict": verdict_of(asked, found),
        "is_open": found.status not in ENDED, "waits": sorted(found.waits_since.items()),
    }  # fmt: skip
    return Page("run.html", data)


async def _seen(asked: Asked, run: Run) -> RunView:
    """What is immutable as long as nothing is written to the run's chain."""
    known = _SEEN.setdefault(asked.front, OrderedDict())
    watched = holder(asked.app.state.daemon_lock) is not None  # what is next depends on it
    key = (run.run_id, run.head, run.status, run.held, run.cancel_asked, watched)
    if key not in known:
        story = await read_outline(asked.app, run.run_id)
        report = await report_from(asked.app, story)
        talks = await kept_conversations(asked.app, run.run_id, asked.app.redactor.text)
        known[key] = await asyncio.to_thread(_made, story, report, talks)
    known.move_to_end(key)
    while len(known) > MOST_KEPT:
        known.popitem(last=False)
    return known[key]


def _made(story: Story, report: Report, talks: tuple[Conversation, ...]) -> RunView:
    word = _word(story, report)
    stands = pill(word.value, word.tone)
    return RunView(
        word=word.value, tone=tone_of(report), head=Markup("".join(head_of(report, stands))),  # noqa: S704  # escaped there
        sections=tuple(_sections(story, report)), timeline=timeline_of(story), conversations=talks,
        calls=tuple(call for call in story.calls if call.end is None), receipts=story.receipts[-MOST_RECEIPTS:],
        more_receipts=max(len(story.receipts) - MOST_RECEIPTS, 0), approvals=story.approvals, handoffs=story.handoffs,
    )  # fmt: skip


def _word(story: Story, report: Report) -> StateWord:
    run = story.run
    settled = bool(story.handoffs) and all(one.state not in UNSETTLED for one in story.handoffs)
    return word_of(run.status, run.waiting_on, held=run.held, proven=is_proven(report), settled=settled)


def _sections(story: Story, report: Report) -> Iterator[ReportSection]:
    found = {one.name: one for one in sections_of(report, OWN)}
    if changed := "\n".join(part for one in report.changes for part in change_html(one, report.guards)):
        found["change"] = ReportSection("change", TITLES["change"], changed)
    if story.receipts:
        found["receipts"] = ReportSection("receipts", TITLES["receipts"], "")
    found["story"] = ReportSection("story", TITLES["story"], "")
    links = dict(_links(story))
    order = ("people", "story", *ORDER) if story.run.status not in ENDED else ORDER
    for name in dict.fromkeys(order):
        if (one := found.get(name)) is not None:
            yield ReportSection(name, one.title, _bounded(story.run, _linked(one.body, links)))


def _links(story: Story) -> Iterator[tuple[str, str]]:
    """Where the digests that are shown lead to, by their beginning."""
    for ref in story.artifacts:
        yield ref.digest[:12], f"/runs/{story.run.run_id}/artifacts/{ref.digest}"
    for item in story.receipts:
        yield item.digest[:12], f"/runs/{story.run.run_id}/receipts/{item.digest}"


def _linked(body: str, links: dict[str, str]) -> str:
    """Only elements of ours look like this: what others wrote is escaped."""

    def link(found: re.Match[str]) -> str:
        href = links.get(found[1])
        return f'<a href="{href}">{found[0]}</a>' if href else found[0]

    return _DIGEST.sub(link, body)


def _bounded(run: Run, body: str) -> Markup:
    if len(body) > LONGEST_SECTION:
        report = f'<a href="/runs/{run.run_id}/report">the report</a>'
        body = f'<p class="note">This is too long to be shown here: {report} has it.</p>'
    return Markup(body)  # noqa: S704  # made of the elements of reports, which escape


def _now(asked: Asked, run: Run, seen: RunView) -> tuple[PrintedLine | None, tuple[Conversation, ...]]:
    """What no journal tells: the last line that was printed, and what agents are saying."""
    if run.status is not RunStatus.running:
        return None, ()
    folder, redact = asked.app.places.of_run(run.run_id), asked.app.redactor.text
    talking = open_conversations(folder, seen.calls, redact)
    printed, now = last_output(folder, asked.app.state.folder / "setups"), seen.timeline.now
    if printed is None or (now is not None and printed.at < (now.since or 0.0) - 1):
        return None, talking
    return printed, talking
