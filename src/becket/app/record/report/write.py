"""Reports as files, for every ended run that judged a commit: written when it ends, made anew at any time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from becket.app.compose import App
from becket.app.state import StateFolder

if TYPE_CHECKING:
    from becket.app.record.report.model import Report

log = logging.getLogger("becket.report")

LATEST = "latest"
ENDINGS = ("html", "md", "json")
MOST_KEPT = 200
"""Runs whose reports are kept as files; `becket runs report` makes any other one again."""


def folder_of(state: StateFolder) -> Path:
    return state.folder / "reports"


def rendered(report: Report) -> dict[str, str]:
    """The three forms by the ending of their file."""
    from becket.app.record.report.html import html_of
    from becket.app.record.report.markdown import markdown_of

    return {"html": html_of(report), "md": markdown_of(report), "json": report.model_dump_json(indent=2) + "\n"}


def written(state: StateFolder, run_id: str) -> tuple[Path, ...]:
    """The files that are there for this run."""
    places = (folder_of(state) / f"{run_id}.{ending}" for ending in ENDINGS)
    return tuple(path for path in places if path.is_file())


class Reports:
    """A chore that is done right before what follows an ended run: after a crash it sees the same runs again."""

    def __init__(self, app: App, concerns: Callable[[str], bool] = lambda _: True) -> None:
        self._app = app
        self._concerns = concerns
        self._seen: frozenset[str] = frozenset()

    async def look(self) -> None:
        ended = await self._ended()
        while fresh := ended - self._seen:
            for run_id in sorted(fresh):
                await self._report(run_id)
            self._seen |= fresh
            ended = await self._ended()  # more may have ended meanwhile
        self._seen &= ended

    async def _ended(self) -> frozenset[str]:
        return frozenset(run.run_id for run in await self._app.store.unfollowed() if self._concerns(run.run_id))

    async def _report(self, run_id: str) -> None:
        try:
            if any(item.receipt.kind == "verdict" for item in await self._app.store.receipts(run_id)):
                from becket.app.record.report.collect import read_report

                report = await read_report(self._app, run_id)
                await asyncio.to_thread(write, folder_of(self._app.state), report)
        except Exception as error:  # a report that cannot be written must not keep the loops that follow waiting
            log.error("the report of %s: %s; `becket runs report %s` tries again", run_id, error, run_id)


def write(folder: Path, report: Report) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for ending, text in rendered(report).items():
        for name in (report.run.run_id, LATEST):
            replace(folder / f"{name}.{ending}", text)
    _forget_old(folder)


def replace(path: Path, text: str) -> None:
    """Whoever reads it meanwhile sees the old file or the new one, never half of it."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def _forget_old(folder: Path) -> None:
    """By name: the ids of runs sort by time."""
    runs = sorted({path.stem for path in folder.glob("run_*")}, reverse=True)
    for run_id in runs[MOST_KEPT:]:
        for ending in ENDINGS:
            with contextlib.suppress(FileNotFoundError):
                (folder / f"{run_id}.{ending}").unlink()
