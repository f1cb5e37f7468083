"""A stage for triggers: the real journal in memory, the real intake, a clock that stands still, loops as plain text."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from becket.kernel.contract import crash
from becket.kernel.contract.base import digest_of
from becket.kernel.contract.errors import Finding, InvalidDocument, NotFound
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.run import Move, Run, RunStatus, Started
from becket.kernel.contract.spec import LoopSpec
from becket.kernel.contract.store import Alert, AlertState, End, Recorded, RunFilter, Store, WorkerInfo
from becket.kernel.engine.intake import Intake
from becket.kernel.engine.triggers import Triggers
from becket.kernel.store import open_memory
from becket.testing.clock import ManualClock

T = TypeVar("T")

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)


def at(text: str, tz: str = "UTC", fold: int = 0) -> float:
    """`2026-03-29 03:00` in a zone as seconds since 1970."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz), fold=fold).timestamp()


class Book:
    """The loops of a repository, without the files."""

    def __init__(self) -> None:
        self._loops: dict[str, LoadedLoop] = {}
        self._broken: set[str] = set()

    def put(self, loop_id: str, *triggers: dict[str, Any], **more: Any) -> None:
        document = {
            "version": 1, "loop_id": loop_id, "goal": "be started", "trigger": list(triggers) or [{"manual": {}}],
            "max_iterations": 1, "deadline": "1h", "stop_conditions": ["done"],
            "phases": {"act": {"objective": "act", "actions": [{"id": "do", "run": "true", "raises": {"0": "done"}}]}},
        } | more  # fmt: skip
        text = json.dumps(document)
        spec = LoopSpec.model_validate(document)
        self._loops[loop_id] = LoadedLoop(spec=spec, text=text, digest=digest_of(text), source=f"{loop_id}.yaml")
        self._broken.discard(loop_id)

    def remove(self, loop_id: str) -> None:
        del self._loops[loop_id]

    def breaks(self, loop_id: str) -> None:
        self._broken.add(loop_id)

    def mend(self, loop_id: str) -> None:
        self._broken.discard(loop_id)

    def get(self, loop_id: str) -> LoadedLoop:
        if loop_id in self._broken:
            raise InvalidDocument([_cut_off(loop_id)])
        if loop_id not in self._loops:
            raise NotFound(f"there is no loop {loop_id}")
        return self._loops[loop_id]

    def all(self) -> list[LoadedLoop]:
        return [loop for loop_id, loop in self._loops.items() if loop_id not in self._broken]

    def broken(self) -> dict[str, tuple[Finding, ...]]:
        return {f"{loop_id}.yaml": (_cut_off(loop_id),) for loop_id in self._broken}

    def parse(self, text: str) -> LoopSpec:
        return LoopSpec.model_validate_json(text)


def _cut_off(loop_id: str) -> Finding:
    return Finding(f"{loop_id}.yaml", 3, 1, "bad-yaml", "it is cut off", "finish it")


class Repo:
    """As much of the git port as intake and triggers ask of it."""

    root = Path("/somewhere/repo")

    def __init__(self) -> None:
        self.heads: dict[str, str] = {}

    async def resolve(self, revision: str) -> str | None:
        if len(revision) == 40 and "/" not in revision:
            return revision
        return self.heads.get(revision.removeprefix("refs/heads/"))


class Stage:
    """Made inside the test's own event loop."""

    def __init__(self, now: str = "2026-06-01 12:00") -> None:
        self.clock = ManualClock(at(now))
        self.store: Store = open_memory(self.clock)
        self.loops = Book()
        self.repo = Repo()
        self.intake = Intake(self.store, self.loops, self.repo, "main", lambda: None)  # type: ignore[arg-type]

    async def runs(self, loop_id: str | None = None) -> list[Run]:
        return list(await self.store.list_runs(RunFilter(loop_id=loop_id, limit=500, oldest_first=True)))

    async def fields(self, loop_id: str, name: str) -> list[Any]:
        """One field of every run of a loop, oldest first."""
        return [run.subject.fields[name] for run in await self.runs(loop_id)]

    async def alerts(self, *states: AlertState) -> dict[str, Alert]:
        return {alert.key: alert for alert in await self.store.alerts(states or (AlertState.open, AlertState.told))}

    async def join(self, role: str = "daemon", worker: str = "w") -> None:
        now = self.clock()
        info = WorkerInfo(
            worker_id=worker, pid=1, host="here", role=role, version="0", started_at=now, beat_at=now, dead=False
        )
        await self.store.join(info, alone=False)

    async def end(self, run: Run, move: Move = Move.complete, facts: tuple[tuple[str, str], ...] = ()) -> Run:
        """Take a queued run and end it."""
        claim = await self.store.claim(run.run_id, run.segment, "w", 60)
        assert claim is not None
        if facts:
            await self.store.record(run.run_id, claim.run.epoch, Recorded(steps=(), facts=facts))
        await self.store.end(run.run_id, claim.run.epoch, End(move=move, reason=move.value))
        return await self.store.get_run(run.run_id)


def play(story: Callable[[Stage], Coroutine[Any, Any, T]], now: str = "2026-06-01 12:00") -> T:
    """Run a story on a stage of its own."""

    async def whole() -> T:
        stage = Stage(now)
        try:
            return await story(stage)
        finally:
            await stage.store.close()

    return asyncio.run(whole())


class Killed(BaseException):
    """What a crash point does here: like a kill, nothing in the code catches it."""


@contextmanager
def killed_at(name: str) -> Iterator[None]:
    def hook(hit: str) -> None:
        if hit == name:
            raise Killed(name)

    crash.install(hook)
    try:
        yield
    finally:
        crash.install(None)


class ManualTime:
    """Monotonic time for timers: sleepers wake when `pass_` reaches them, in order."""

    def __init__(self) -> None:
        self.now = 100.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, future))
        await future

    async def pass_(self, seconds: float) -> None:
        await _let_others_run()
        end = self.now + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self.now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await _let_others_run()
        self.now = end


async def _let_others_run() -> None:
    """Every task goes as far as it can without time passing; nothing here waits for anything but its turn."""
    for _ in range(20):
        await asyncio.sleep(0)


OPEN, TOLD, CLOSED = AlertState.open, AlertState.told, AlertState.closed
Told = Callable[[Alert], Awaitable[bool]]
COMPLETED, FAILED = RunStatus.completed, RunStatus.failed


class Scene:
    """Triggers on a stage, with timers that stand still."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.time = ManualTime()
        self.heard: list[Started] = []
        self.triggers = self.another()

    def another(self) -> Triggers:
        """The triggers of another process, or of the same one after a restart."""
        return Triggers(
            self.stage.store,
            self.stage.loops,
            self.stage.intake,
            self.stage.repo,  # type: ignore[arg-type]
            "main",
            on_started=self.heard.append,
            clock=self.time,
            sleep=self.time.sleep,
        )

    async def move(self, new: str | None, old: str | None = None, branch: str = "main") -> None:
        if new is None:
            self.stage.repo.heads.pop(branch, None)
        else:
            self.stage.repo.heads[branch] = new
        await self.triggers.branch_moved(RefMoved(branch=branch, old=old, new=new))
        await self.time.pass_(0)  # a timer without a window has its turn

    async def shas(self, loop_id: str = "heal") -> list[str]:
        return await self.stage.fields(loop_id, "sha")


def heal(stage: Stage, loop_id: str = "heal", **more: Any) -> None:
    stage.loops.put(loop_id, {"commit": more}, subject="{branch}@{sha}")
