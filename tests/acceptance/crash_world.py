"""What happens in the crash matrix, as it runs in a process that is killed and in the one that comes after it.

Every story is driven from its beginning in each life: a person or an outside that heard nothing asks again, with the
same words. So everything a driver does here must be harmless to repeat, and nothing else is remembered.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from crash_loops import BY_NAME, CONFIG
from crash_shop import ACTIONS

from becket.app.compose import App
from becket.app.serve import serve
from becket.app.state import StateFolder
from becket.kernel.contract.agent import AgentReport, Agents, AgentsByName, CallContext, CallFiles, Limits, Usage
from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine import commands
from becket.kernel.engine.door import Door, Patience
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store import open_sqlite
from becket.testing.people import person
from becket.testing.receiver import Answer
from becket.testing.world import commit_all, make_repository, run_git

PATIENCE = Patience(grace=0.3, delays=(0.1, 0.1, 0.1), jitter=0.0, deferred_first=0.2, deferred_growth=1.0)
ADAPTER_TIMEOUT = 1.0
KILL_ROOM = 0.4
UNDER_WAY = (EffectState.intended, EffectState.retrying)


class Clock:
    """The store's time: it runs like the wall's, begins right after a full minute, and can be set forward for good."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock.json"
        self._state = json.loads(self._file.read_text())

    @staticmethod
    def begin(folder: Path) -> None:
        now = time.time()
        (folder / "clock.json").write_text(json.dumps({"offset": now // 60 * 60 + 5 - now, "ahead": 0.0}))

    def __call__(self) -> float:
        return time.time() + float(self._state["offset"]) + float(self._state["ahead"])

    def ahead(self, seconds: float) -> None:
        """At least so far ahead of the wall's time from now on."""
        if self._state["ahead"] < seconds:
            self._state["ahead"] = seconds
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(self._state))
            new.replace(self._file)


class Fixer:
    """An agent whose second call mends the file, whose calls can be repeated, and leave word of what they used."""

    usage = Usage(seconds=1.0, turns=1, output_tokens=10, usd=0.01)

    def used(self, files: CallFiles) -> Usage | None:
        return self.usage if files.log.exists() else Usage()

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        call_context: CallContext | None = None,
    ) -> AgentReport:
        if call_context is not None and call_context.files is not None:
            call_context.files.log.write_text("at work\n")
        (workspace / "it.txt").write_text("good\n" if brief == "try 2" else f"bad {brief}\n")
        return AgentReport(ended=True, said="done", usage=self.usage)


@dataclass(frozen=True, slots=True)
class Stage:
    """One life's view of a case."""

    folder: Path
    app: App
    clock: Clock

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    async def start(self, loop_id: str, n: str) -> str:
        ask = StartRequest(loop_id=loop_id, inputs={"n": n}, origin_key=f"case:{loop_id}:{n}", by=person("owner"))
        run = (await self.app.intake.start(ask)).run
        assert run is not None
        return run.run_id

    async def runs(self, *statuses: RunStatus) -> tuple[Run, ...]:
        return await self.app.store.list_runs(RunFilter(statuses=statuses, limit=100, oldest_first=True))

    async def rest(self, role: str = "run", until: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Be the engine until nothing is left to do for it, and whatever else is asked for has come true."""

        async def done() -> bool:
            quiet = not await self.runs(RunStatus.queued, RunStatus.running)
            return quiet and not await self.app.store.effects(states=UNDER_WAY) and (until is None or await until())

        while not await serve(self.app, role, done):
            await asyncio.sleep(0.01)  # the life before this one is being buried


def prepare(folder: Path, loops: tuple[str, ...], url: str) -> None:
    """A fresh case. Called once, outside the lives."""
    for name in ("outside", "tmp"):
        (folder / name).mkdir()
    root = folder / "repo"
    make_repository(root)
    (root / "it.txt").write_text("bad\n")
    commit_all(root, "a thing to mend")
    (root / "becket.yaml").write_text(CONFIG)
    for name in loops:
        write_loop(folder, name, url)
    StateFolder(root, root / ".git").make()
    Clock.begin(folder)


def write_loop(folder: Path, name: str, url: str, **changes: str) -> None:
    text = BY_NAME[name].replace("OUTSIDE", str(folder / "outside")).replace("URL", url)
    for old, new in changes.items():
        text = text.replace(old, new)
    target = folder / "repo" / ".becket" / "loops" / f"{name}.yaml"
    target.parent.mkdir(parents=True, exist_ok=True)
    new_file = target.with_suffix(".new")
    new_file.write_text(text)
    new_file.replace(target)


def open_app(folder: Path, timeout: float = ADAPTER_TIMEOUT) -> tuple[App, Clock]:
    """The parts anew, as a new process makes them; only patience and time limits are shorter than in earnest."""
    root = folder / "repo"
    state, clock = StateFolder(root, root / ".git"), Clock(folder)
    console = (folder / "console.log").open("a", buffering=1)
    app = App(state, open_sqlite(state.database, clock), console, {Agents: AgentsByName({"fixer": Fixer()})})
    bought = {one.name: one for one in ACTIONS}
    signals = (*app.registry.signals, "bell", "late")
    app.registry = replace(app.registry, actions={**app.registry.actions, **bought}, signals=signals)
    for adapter in app.effects.values():
        adapter.timeout = timeout
    commands.KILL_ROOM = KILL_ROOM
    app.door = Door(app.store, app.effects, app.redactor, app.config.effect_caps, patience=PATIENCE)
    return app, clock


async def sending(stage: Stage) -> None:
    for n in ("1", "2"):
        await stage.start("send", n)
    await stage.rest()


async def shipping(stage: Stage) -> None:
    for n in ("1", "2"):
        await stage.start("ship", n)
    await stage.rest()


async def doubting(stage: Stage) -> None:
    await stage.start("stubborn", "1")
    await stage.rest()


async def asking(stage: Stage) -> None:
    for n in ("1", "2"):
        await stage.start("ask", n)
    await stage.rest()
    for approval in await stage.app.store.approvals(open_only=True):
        await stage.app.store.decide_approval(approval.approval_id, True, person("owner"), approval.bound_to, "yes")
    await stage.rest()


async def ringing(stage: Stage) -> None:
    runs = {n: await stage.start("bell", n) for n in ("1", "2", "3")}
    late = await stage.start("late", "1")
    await stage.rest()
    for n in ("1", "2"):
        (stage.outside / f"rung-{n}").touch()
        await stage.app.store.signal(runs[n], "bell", {"n": n}, f"bell:{n}")
    await stage.rest()
    stage.clock.ahead(301)
    await stage.rest(until=partial(_ended, stage, late))
    stage.clock.ahead(601)
    await stage.rest(until=partial(_ended, stage, runs["3"]))


async def mending(stage: Stage) -> None:
    await stage.start("mend", "1")
    await stage.start("poor", "1")
    await stage.rest()


async def paying(stage: Stage) -> None:
    for n in ("1", "2"):
        await stage.start("shop", n)
    await stage.rest()
    assert all(call.end is not None for call in await stage.app.store.calls())


async def fanning(stage: Stage) -> None:
    await stage.start("fan", "1")
    await stage.rest()


async def keeping_house(stage: Stage) -> None:
    """As the daemon: clocks, commits and events start runs, and notices are delivered late."""
    app = stage.app
    await stage.start("notice", "1")
    await stage.rest("daemon", until=partial(_has_cursors, stage, "commit:seen:main", "schedule:tick"))
    for number in (1, 2):
        stage.clock.ahead(60.0 * number)
        await stage.rest("daemon", until=partial(_has_runs, stage, "tick", number))
        if f"number {number}" not in run_git(app.state.root, ["log", "--format=%s"]):
            commit_all(app.state.root, f"number {number}")
        await stage.rest("daemon", until=partial(_has_runs, stage, "seen", number))


async def holding_back(stage: Stage) -> None:
    """Events for a loop that cannot start yet are kept until it can."""
    if not (stage.outside / "mended").exists():
        write_loop(stage.folder, "held", "", **{"uses: notify.file": "uses: notify.nowhere"})
        for n in ("1", "2"):
            await stage.app.triggers.post("held.back", {"n": n}, f"event:{n}")
        (stage.outside / "mended").touch()
    write_loop(stage.folder, "held", "")
    stage.clock.ahead(20)
    await stage.rest("daemon", until=partial(_has_runs, stage, "held", 2))


async def cancelling(stage: Stage) -> None:
    """Two runs are cancelled while their commands are at work, a third one while it waits."""
    waiting = await stage.start("bell", "1")
    at_work = [await stage.start("slow", n) for n in ("1", "2")]
    serving = asyncio.create_task(stage.rest())
    while not serving.done():
        for run_id in at_work:
            if await _is_at_work(stage, run_id):
                await stage.app.store.ask_cancel(run_id, person("owner"), "enough")
                stage.app.kick()
        await asyncio.sleep(0.005)  # the commands are other processes
    await serving
    await stage.app.store.ask_cancel(waiting, person("owner"), "enough")
    await stage.rest()


async def _is_at_work(stage: Stage, run_id: str) -> bool:
    """In this life: what a dead one had at work is cancelled without being heard again."""
    here = {one.run_id for one in await stage.app.store.at_work(stage.app.worker_id)}
    if run_id not in here:
        return False
    return any(event.kind is EventKind.child_started for event in await stage.app.store.events(run_id))


async def _ended(stage: Stage, run_id: str) -> bool:
    return (await stage.app.store.get_run(run_id)).status in ENDED


async def _has_runs(stage: Stage, loop_id: str, count: int) -> bool:
    return len(await stage.app.store.list_runs(RunFilter(loop_id=loop_id, limit=10))) >= count


async def _has_cursors(stage: Stage, *names: str) -> bool:
    there = [cursor.name for cursor in await stage.app.store.cursors()]
    return all(any(cursor.startswith(name) for cursor in there) for name in names)


@dataclass(frozen=True, slots=True)
class Story:
    """One story of the matrix: the loops it needs and what is done with them."""

    loops: tuple[str, ...]
    drive: Callable[[Stage], Awaitable[None]]
    trouble: tuple[Answer, ...] = ()  # what the receiver answers first


STORIES = {
    "sending": Story(("send",), sending),
    "shipping": Story(("ship",), shipping),
    "doubting": Story(("stubborn",), doubting, trouble=(Answer(status=429), Answer(cut="after"))),
    "asking": Story(("ask",), asking),
    "ringing": Story(("bell", "late"), ringing),
    "mending": Story(("mend", "poor"), mending),
    "paying": Story(("shop",), paying),
    "fanning": Story(("fan", "leaf", "echo", "heard"), fanning),
    "keeping_house": Story(("notice", "tick", "seen"), keeping_house, trouble=(Answer(status=429), Answer(status=429))),
    "holding_back": Story(("held",), holding_back),
    "cancelling": Story(("slow", "bell"), cancelling),
}


async def play(folder: Path, story: str, timeout: float = ADAPTER_TIMEOUT) -> Json:
    """One life of a story; what the world looks like at its end."""
    from crash_view import view

    app, clock = open_app(folder, timeout)
    try:
        await STORIES[story].drive(Stage(folder, app, clock))
        return await view(app, folder)
    except UsageError as error:
        raise AssertionError(f"{story}: {error}") from error
    finally:
        await app.triggers.close()
        await app.store.close()
