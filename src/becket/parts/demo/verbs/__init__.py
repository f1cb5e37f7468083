"""`becket demo`: a running service gets a real bug; the heal loop sees, repairs, proves and releases it."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from becket.cli import words
from becket.cli.output import emit
from becket.cli.plain import Paint, clock, short
from becket.cli.shape import AsJson, end, me
from becket.kernel.contract.errors import BecketError, UsageError
from becket.kernel.contract.reasons import reason_words
from becket.parts.demo.verbs.telling import believable, happened, paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from becket.app.compose import App
    from becket.app.record.report.model import Report
    from becket.app.record.verify import Checked
    from becket.app.state import StateFolder
    from becket.kernel.contract.run import Run

SERVICE, BOILING = "kettle", 212.0
PATIENCE = 120.0


def demo(
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Make the repository here and keep it.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the HTML report here.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also show every step, receipt and check.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch a bug in a running service be healed: no key, no network."""
    if report is not None and not report.absolute().parent.is_dir():
        raise UsageError(f"{report.absolute().parent} is not a folder; give a file in one that exists with --report")
    with _folder(keep) as folder:
        shown = _Demo(folder, quiet=as_json)
        try:
            problem = shown.play((report or _place(folder, keep)).absolute())
        finally:
            shown.close()
        if as_json:
            emit(shown.document(problem))
        else:
            shown.end(problem, everything, kept=keep is not None)
    end(int(bool(problem)))


def _place(folder: Path, keep: Path | None) -> Path:
    """Of the report: in the demo's own folder, which stays with nothing else in it unless it is kept."""
    return (folder if keep is not None else folder.parent) / "report.html"


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep.absolute()
        return
    own = Path(tempfile.mkdtemp(prefix="becket-demo-"))
    try:
        yield own / SERVICE
    finally:
        shutil.rmtree(own / SERVICE, ignore_errors=True)
        with suppress(OSError):  # the report is in it
            own.rmdir()


class _Demo:
    """One showing: the repository, the daemon and the service are its own and end with it."""

    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self._folder = folder
        self._quiet = quiet
        self._state: StateFolder | None = None
        self._report: Report | None = None
        self._page: Path | None = None
        self._checks: tuple[Checked, ...] = ()

    def play(self, page: Path) -> str:
        """Everything the demo promises, one after another; returns what does not hold, or nothing."""
        from becket.app.compose import sandbox_here
        from becket.app.daemon import start_detached
        from becket.app.state import find_state
        from becket.parts.demo.scratch import BUG_MESSAGE, commit_the_bug, head, make

        holds = sandbox_here()
        port = make(self._folder, holds.missing)
        self._state = find_state(self._folder)
        self._say(words.DEMO_REPO)
        self._heading(words.DEMO_HAPPENED)
        start_detached(self._state)
        sound = head(self._folder)
        asyncio.run(self._started())
        asyncio.run(self._ended(sound, tell=False))
        if problem := _answer(port, sound).problem:
            return f"the sound commit is not in service: {problem}"
        self._tell(words.DEMO_SERVES.format(sha=short(sound)))
        bad = commit_the_bug(self._folder)
        self._tell(words.DEMO_BUG.format(sha=short(bad), subject=BUG_MESSAGE))
        report = self._report = asyncio.run(self._ended(bad, tell=True))
        asyncio.run(self._kept(page))
        if report.run.status != "completed":
            return f"the run is {report.run.status} ({reason_words(report.run.reason)})"
        new = head(self._folder)
        if new == bad or not report.proofs or report.proofs[-1].candidate != new:
            return "main did not move to a proven commit"
        if problem := (answer := _answer(port, new)).problem:
            return f"the repaired commit is not in service: {problem}"
        self._tell(words.DEMO_HEALED.format(sha=short(new)))
        self._explain(believable(report, holds, answer.told, self._checks))
        return "" if all(item.ok for item in self._checks) else "the record does not hold"

    def end(self, problem: str, everything: bool, kept: bool) -> None:
        """The details if they are wanted or needed; then where to look, and what to do now."""
        if (everything or problem) and self._report is not None:
            self._say()
            asyncio.run(self._show(self._report.run.run_id))
        self._say()
        if self._report is not None and kept:
            self._say(words.DEMO_KEPT.format(folder=self._folder, run_id=self._report.run.run_id))
        if self._page is not None:
            self._say(words.DEMO_REPORT.format(path=self._page))
        self._say(words.DEMO_FAILED.format(why=problem) if problem else words.DEMO_END)

    async def _started(self) -> None:
        """What was there before Becket is proven when somebody asks for it; everything after that by itself."""
        from becket.app.desk import RunRequest, start

        app = self._open()
        try:
            await start(app, me(app), RunRequest(loop_id="heal"))
        finally:
            await app.store.close()

    async def _ended(self, sha: str, *, tell: bool) -> Report:
        """Wait until the daemon has seen this commit and is done with it, telling what is new."""
        from becket.app.record.report.collect import read_report

        app = self._open()
        seen, told, until = 0, 0, time.monotonic() + PATIENCE
        try:
            while time.monotonic() < until:
                run = await self._look(app, sha)
                if run is not None and run.event_count != seen:
                    seen, report = run.event_count, await read_report(app, run.run_id)
                    for said in happened(report)[told:] if tell else ():
                        self._tell(said)
                        told += 1
                    if report.run.ended_at is not None:
                        return report
                await asyncio.sleep(0.1)
        finally:
            await app.store.close()
        raise BecketError(f"nothing came of {sha[:12]} within {PATIENCE:g} s; look at it with `becket demo --keep DIR`")

    @staticmethod
    async def _look(app: App, sha: str) -> Run | None:
        from becket.kernel.contract.store import RunFilter

        runs = await app.store.list_runs(RunFilter(loop_id="heal", limit=20))
        return next((run for run in runs if run.subject.fields.get("sha") == sha), None)

    async def _kept(self, page: Path) -> None:
        """The record is checked again, and the report is on the disk."""
        from becket.app.record.report.write import rendered
        from becket.app.record.verify import verify_run

        assert self._report is not None
        app = self._open()
        try:
            self._checks = await verify_run(app, self._report.run.run_id, rerun=False)
            page.write_text(rendered(self._report)["html"], encoding="utf-8")
            self._page = page
        finally:
            await app.store.close()

    async def _show(self, run_id: str) -> None:
        from becket.app.record.story import read_story
        from becket.cli.follow import print_story
        from becket.cli.verify import print_checks

        app = self._open()
        try:
            print_story(await read_story(app, run_id))
        finally:
            await app.store.close()
        self._say()
        print_checks(self._checks)

    def _open(self) -> App:
        from becket.app.compose import App

        assert self._state is not None
        return App.open(self._state)

    def close(self) -> None:
        """The service, the daemon and the watchdog are gone when this returns."""
        if self._state is None:
            return
        from becket.app.daemon import stop

        self._stop_service()
        stop(self._state)

    def _stop_service(self) -> None:
        from becket.app.keyboard import at_keyboard
        from becket.app.settings import read_config
        from becket.parts.services.desk import order
        from becket.parts.services.ports import ServiceOperation

        assert self._state is not None
        order(self._state, at_keyboard(read_config(self._state)), SERVICE, ServiceOperation.stop)

    def _say(self, text: str = "") -> None:
        if not self._quiet:
            print(text, flush=True)

    def _heading(self, text: str) -> None:
        self._say()
        self._say(Paint().bold(text))

    def _tell(self, text: str) -> None:
        at = clock(time.time())
        self._say(paragraph(text, f"  {at}  ").replace(at, Paint().dim(at), 1))

    def _explain(self, reasons: Iterable[str]) -> None:
        self._heading(words.DEMO_BELIEVED)
        for reason in reasons:
            self._say(paragraph(reason, "  - "))

    def document(self, problem: str) -> dict[str, object]:
        report = self._report
        return {
            "ok": not problem,
            "problem": problem,
            "run": report.run.model_dump(mode="json") if report is not None else None,
            "report": str(self._page) if self._page is not None else None,
            "checks": [{"ok": item.ok, "what": item.what, "detail": item.detail} for item in self._checks],
        }


class _Answer(NamedTuple):
    problem: str
    told: str = ""


def _answer(port: int, sha: str) -> _Answer:
    """What the service itself says."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            said: dict[str, Any] = json.load(answer)
    except OSError as error:
        return _Answer(str(error))
    if said["commit"] != sha:
        return _Answer(f"it runs {said['commit'][:12]}")
    if said["fahrenheit"] != BOILING:
        return _Answer(f"it says {said['fahrenheit']}")
    return _Answer("", words.DEMO_ANSWER.format(port=port, sha=short(sha), fahrenheit=said["fahrenheit"]))
