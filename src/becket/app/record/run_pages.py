"""The list of runs in pages, however many there are: filtered, the newest first, and never looking through them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from becket.app.compose import App
from becket.app.record.overview import cared_for
from becket.app.record.state_word import StateWord, state_word
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter

PAGE = 50
CHUNK = 200
MOST_CHUNKS = 5
WITHIN = 10_000
"""Where something is looked for, one page looks through so many runs; then it says where to go on."""


@dataclass(frozen=True, slots=True)
class RunsAsked:
    loop_id: str | None = None
    word: StateWord | None = None
    text: str = ""
    since: float | None = None
    before: str | None = None  # the run after which the page before ended

    @property
    def filtered(self) -> bool:
        return bool(self.loop_id or self.word or self.text or self.since)

    @property
    def chunk(self) -> int:
        """A word is more than what the journal has, so some of what it gives is left out."""
        return CHUNK if self.word else PAGE + 1


@dataclass(frozen=True, slots=True)
class RunLine:
    run: Run
    word: StateWord
    settled: bool = False  # it was handed over, and nobody has to do anything about it any more


@dataclass(frozen=True, slots=True)
class RunPage:
    """`further`: the run after which the next page begins; empty at the end. `cut`: fewer were found than fit, and
    there are more to look through.
    """

    lines: tuple[RunLine, ...]
    further: str = ""
    cut: bool = False


async def run_page(app: App, asked: RunsAsked) -> RunPage:
    found: list[RunLine] = []
    before = asked.before
    for _ in range(MOST_CHUNKS):
        runs = await app.store.list_runs(_filter(asked, before))
        found += [line for line in await lines_of(app, runs) if asked.word in (None, line.word)]
        if len(found) > PAGE:
            return RunPage(tuple(found[:PAGE]), found[PAGE - 1].run.run_id)
        if len(runs) < asked.chunk:
            further = await _beyond(app, asked, before) if asked.filtered else ""
            return RunPage(tuple(found), further, bool(further))
        before = runs[-1].run_id
    return RunPage(tuple(found), before or "", cut=True)


def _filter(asked: RunsAsked, before: str | None) -> RunFilter:
    statuses = asked.word.statuses if asked.word else ()
    return RunFilter(
        loop_id=asked.loop_id, statuses=statuses, text=asked.text or None, since=asked.since, before=before,
        limit=asked.chunk, within=WITHIN if asked.filtered else None,
    )  # fmt: skip


async def _beyond(app: App, asked: RunsAsked, before: str | None) -> str:
    """The oldest of the runs that were looked through, if there are others before it that may be meant."""
    last = await app.store.list_runs(RunFilter(before=before, within=WITHIN, limit=1, oldest_first=True))
    if not last or (asked.since is not None and last[0].created_at < asked.since):
        return ""
    older = await app.store.list_runs(RunFilter(before=last[0].run_id, limit=1))
    return last[0].run_id if older else ""


async def lines_of(app: App, runs: Sequence[Run]) -> tuple[RunLine, ...]:
    """Each with its word, as it is now."""
    handed = [run.run_id for run in runs if run.status is RunStatus.ready_for_handoff]
    unsettled = await app.store.unsettled(handed)
    return tuple(_line(app, run, run.run_id in handed and run.run_id not in unsettled) for run in runs)


def _line(app: App, run: Run, settled: bool) -> RunLine:
    alone = run.status is RunStatus.running and not cared_for(app, run)
    return RunLine(run, state_word(run, alone=alone, settled=settled), settled)
