"""The gates tried once, for a person who looks on: the run, how it goes, and what to change where a step is red."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from becket.app.compose import App
from becket.app.desk import RunRequest, start
from becket.app.foreground import see_or_stop, shown
from becket.kernel.contract.base import Record
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import ActionFailed, NotFound, UsageError
from becket.kernel.contract.gate import TriedStep
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import ENDED, Run
from becket.kernel.spec.document import read
from becket.parts.gates.actions.trial import PROGRESS, SETUP, wanted
from becket.parts.gates.likely_key import likely
from becket.parts.gates.section import SET_UP

TRIAL = "trial"
LOOK_EVERY = 0.1
TAIL = 4_000
OWN_FILES = ("becket.yaml", ".becket")
KEPT = "trial"


class TrialObserver(Protocol):
    """Told while the steps run. `ended` comes once for each; `at_work` often, with the last line it printed."""

    def ended(self, step: TriedStep) -> None: ...

    def at_work(self, name: str, seconds: float, said: str) -> None: ...


class StepTried(Record):
    """A step with what its log says of the failure, and where in becket.yaml to begin."""

    step: TriedStep
    said: str = ""
    key: str = ""
    line: int | None = None
    advice: str = ""


class Tried(Record):
    """`trouble` says why there is no answer at all."""

    run_id: str
    sha: str
    steps: tuple[StepTried, ...] = ()
    trouble: str = ""

    @property
    def red(self) -> tuple[StepTried, ...]:
        return tuple(one for one in self.steps if not one.step.green)

    @property
    def green(self) -> bool:
        return bool(self.steps) and not self.red and not self.trouble


async def commit_of(app: App, at: str | None) -> str:
    """The commit a person means; HEAD without a word. Raises UsageError where there is none."""
    found = await app.git.resolve(at or "HEAD")
    if found is None and at is None:
        raise UsageError("there is no commit yet, and a step runs on a commit; commit something, then try again")
    if found is None:
        raise UsageError(f"there is no commit {at!r} here; give a hash or a name that `git rev-parse` knows")
    return found


@asynccontextmanager
async def as_it_stands(app: App, sha: str, *, wanted: bool) -> AsyncIterator[str]:
    """The commit as it will be once Becket's own files are committed: a linter of the project may judge those too."""
    candidates = app.git.candidates()
    made = await candidates.with_work(sha, OWN_FILES, "Becket's files as they stand", KEPT) if wanted else None
    try:
        yield made.sha if made is not None else sha
    finally:
        await candidates.forget(KEPT)


async def begin(app: App, caller: Caller, sha: str, steps: Iterable[str]) -> Run:
    names = list(steps)
    try:
        list(wanted(app.config, names))
    except ActionFailed as error:
        raise UsageError(str(error)) from None
    started = await start(app, caller, RunRequest(loop_id=TRIAL, inputs={"at": sha, "steps": " ".join(names)}))
    if started.run is None:
        raise UsageError(f"nothing was started: {started.dropped}")
    return started.run


async def see(app: App, caller: Caller, run_id: str, onlooker: TrialObserver) -> bool:
    """True: whoever looked on interrupted it, and it was cancelled."""
    stopped = await see_or_stop(app, caller, run_id, _Watch(app, run_id, onlooker).watch())
    await shown(app, caller, run_id)
    return stopped


async def result(app: App, run_id: str, sha: str) -> Tried:
    run = await app.store.get_run(run_id)
    done = await app.store.steps(run_id)
    steps = [step for step in done if step.outputs.get("steps")]
    if not steps:
        failed = next((step.error for step in done if step.error), "")
        why = str(run.detail.get("error") or failed or reason_words(run.reason) or run.status.value)
        rest = "" if run.status in ENDED else f"; it is {run.status.value}: `becket runs show {run_id}`"
        return Tried(run_id=run_id, sha=sha, trouble=why + rest)
    tried = [TriedStep.model_validate(one) for one in steps[-1].outputs["steps"]]
    absent = await _untracked_keys(app)
    return Tried(run_id=run_id, sha=sha, steps=tuple(_explained(app, step, absent) for step in tried))


async def _untracked_keys(app: App) -> tuple[str, ...]:
    """Key files that lie in the folder and that no checkout has."""
    setup = app.config.section(SET_UP)
    lying = [name for name in setup.key if (app.state.root / name).is_file()] if setup is not None else []
    tracked = await app.git.tracked() if lying else frozenset()
    return tuple(name for name in lying if name.removeprefix("./") not in tracked)


def _explained(app: App, step: TriedStep, absent: tuple[str, ...]) -> StepTried:
    if step.green:
        return StepTried(step=step)
    said = ""
    with suppress(NotFound):
        said = app.artifacts.read(step.summary, None).decode(errors="replace") if step.summary else ""
    found = likely(step, app.config, said, absent)
    return StepTried(step=step, said=said, key=found.key, line=_line(app.state.config, found.path), advice=found.say)


def _line(config: Path, path: tuple[str | int, ...]) -> int | None:
    """Where the key stands, or the nearest thing above it that is written."""
    try:
        document = read(config.read_bytes(), str(config))
    except (OSError, UsageError):
        return None
    while path and not document.has(path):
        path = path[:-1]
    return document.place(path).key[0] if path else None


class _Watch:
    def __init__(self, app: App, run_id: str, onlooker: TrialObserver) -> None:
        self._onlooker = onlooker
        self._folder = app.places.of_run(run_id)
        self._setups = app.state.folder / "setups"
        self._read = 0
        self._name, self._since = "", time.monotonic()

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            self._look()
            await asyncio.sleep(LOOK_EVERY)

    def _look(self) -> None:
        for told in self._new():
            if "begins" in told:
                self._name, self._since = str(told["begins"]), time.monotonic()
            else:
                self._name = ""
                self._onlooker.ended(TriedStep.model_validate(told["ended"]))
        if self._name:
            self._onlooker.at_work(self._name, time.monotonic() - self._since, self._last_line())

    def _new(self) -> list[dict[str, object]]:
        with suppress(OSError):
            *lines, _ = (self._folder / PROGRESS).read_text("utf-8").split("\n")
            new, self._read = lines[self._read :], len(lines)
            return [json.loads(line) for line in new]
        return []

    def _last_line(self) -> str:
        logs = self._setups.glob("*/setup.log") if self._name == SETUP else (self._folder / "logs").glob("*.log")
        with suppress(OSError, ValueError):
            newest = max(logs, key=lambda path: path.stat().st_mtime_ns)
            with newest.open("rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - TAIL, 0))
                lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
            return lines[-1] if lines else ""
        return ""
