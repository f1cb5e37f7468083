"""`becket demo`: a running service gets a real bug; the heal loop sees, repairs, proves and releases it."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from becket.cli import words
from becket.cli.paper import emit, say
from becket.cli.plain import short, took
from becket.cli.shape import AsJson, end
from becket.contract.errors import BecketError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from becket.app.compose import App
    from becket.app.state import State
    from becket.app.story import Story
    from becket.app.verify import Checked

SERVICE = "kettle"
PATIENCE = 120.0


def demo(
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Make the repository here and keep it.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the HTML report here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a bug in a running service be healed: no key, no network."""
    began = time.monotonic()
    with _folder(keep) as folder:
        shown = _Demo(folder, quiet=as_json)
        try:
            problem = shown.play(report or Path(tempfile.gettempdir()) / "becket-demo.html")
        finally:
            shown.close()
        if as_json:
            emit(shown.document(problem))
        else:
            if keep is not None:
                say(words.DEMO_KEPT.format(folder=folder, run_id=shown.run_id))
            told = words.DEMO_FAILED.format(why=problem) if problem else words.DEMO_END
            say()
            say(told.format(took=took(time.monotonic() - began)))
    end(int(bool(problem)))


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="becket-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Demo:
    """One showing: the repository, the daemon and the service are its own and end with it."""

    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self._folder = folder
        self._quiet = quiet
        self._state: State | None = None
        self.run_id = ""
        self._story: Story | None = None
        self._checks: tuple[Checked, ...] = ()
        self._report: Path | None = None

    def play(self, report: Path) -> str:
        """Everything the demo promises, one after another; returns what does not hold, or nothing."""
        from becket.app.compose import sandbox_here
        from becket.app.daemon import start_detached
        from becket.app.state import find_state
        from becket.cli.demo.scratch import commit_the_bug, head, log, make

        holds = sandbox_here()
        port = make(self._folder, holds.missing)
        self._state = find_state(self._folder)
        self._say(words.DEMO_REPO)
        held = [name for name in ("files", "processes", "network") if name not in holds.missing]
        self._say(words.DEMO_SANDBOX.format(kind=holds.kind.value, held=", ".join(held) or "nothing"))
        if holds.missing:
            self._say(words.DEMO_WITHOUT.format(missing=", ".join(holds.missing)))
        start_detached(self._state)
        sound = head(self._folder)
        asyncio.run(self._started())
        asyncio.run(self._ended(sound))
        if problem := self._serves(port, sound, 212.0):
            return f"the sound commit is not in service: {problem}"
        self._say(words.DEMO_SERVES.format(sha=short(sound), port=port))
        bad = commit_the_bug(self._folder)
        self._say(words.DEMO_BUG.format(sha=short(bad)))
        self._say()
        found = asyncio.run(self._ended(bad))
        asyncio.run(self._told(report))
        self._show()
        new = head(self._folder)
        if self._story is None or self._story.run.status.value != "completed":
            return f"the run is {found}"
        if new == bad:
            return "main did not move"
        if problem := self._serves(port, new, 212.0):
            return f"the repaired commit is not in service: {problem}"
        self._say(words.DEMO_MAIN.format(log="\n".join("  " + line for line in log(self._folder))))
        self._say(words.DEMO_HEALED.format(sha=short(new), port=port))
        self._say(words.DEMO_REPORT.format(path=report))
        return "" if all(item.ok for item in self._checks) else "the record does not hold"

    async def _started(self) -> None:
        """What was there before Becket is proven when somebody asks for it; everything after that by itself."""
        from becket.app.desk import Wish, start

        app = self._open()
        try:
            await start(app, Wish(loop_id="heal"))
        finally:
            await app.store.close()

    async def _ended(self, sha: str) -> str:
        """Wait until the daemon has seen this commit and is done with it."""
        from becket.cli.follow import viewing

        app = self._open()
        until = time.monotonic() + PATIENCE
        try:
            with viewing(self._quiet) as (view, _):
                while time.monotonic() < until:
                    story = await self._look(app, sha)
                    if story is not None:
                        view.tell(story)
                        if story.run.ended_at is not None:
                            self.run_id, self._story = story.run.run_id, story
                            return f"{story.run.status.value} ({story.run.reason})"
                    await asyncio.sleep(0.1)
        finally:
            await app.store.close()
        raise BecketError(f"nothing came of {sha[:12]} within {PATIENCE:g} s; see {self._folder} with --keep")

    @staticmethod
    async def _look(app: App, sha: str) -> Story | None:
        from becket.app.story import read_story
        from becket.contract.store import RunFilter

        for run in await app.store.list_runs(RunFilter(loop_id="heal", limit=20)):
            if run.subject.fields.get("sha") == sha:
                return await read_story(app, run.run_id)
        return None

    async def _told(self, place: Path) -> None:
        from becket.app.report.collect import read_report
        from becket.app.report.write import rendered
        from becket.app.verify import verify_run

        app = self._open()
        try:
            self._checks = await verify_run(app, self.run_id, rerun=False)
            report = await read_report(app, self.run_id)
            place.write_text(rendered(report)["html"], encoding="utf-8")
            self._report = place
        finally:
            await app.store.close()

    def _serves(self, port: int, sha: str, fahrenheit: float) -> str:
        """What the service itself says."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                said: dict[str, Any] = json.load(answer)
        except OSError as error:
            return str(error)
        if said["commit"] != sha:
            return f"it runs {said['commit'][:12]}"
        return "" if said["fahrenheit"] == fahrenheit else f"it says {said['fahrenheit']}"

    def _show(self) -> None:
        from becket.cli.follow import print_story
        from becket.cli.verify import print_checks

        if self._quiet or self._story is None:
            return
        say()
        print_story(self._story)
        say()
        self._say(words.DEMO_VERIFY)
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
        from becket.app.service_desk import order
        from becket.contract.service import Op

        assert self._state is not None
        order(self._state, SERVICE, Op.stop)

    def _say(self, text: str = "") -> None:
        if not self._quiet:
            say(text)

    def document(self, problem: str) -> dict[str, object]:
        story = self._story
        return {
            "ok": not problem,
            "problem": problem,
            "run": story.run.model_dump(mode="json") if story is not None else None,
            "report": str(self._report) if self._report is not None else None,
            "checks": [{"ok": item.ok, "what": item.what, "detail": item.detail} for item in self._checks],
        }
