"""What `becket watch` shows: which loops commits start, how far each may go, and the daemon's log."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.app.containment import autonomy_here
from becket.app.state import State, holder
from becket.app.status import AutonomyNow, autonomy_of
from becket.contract.spec import LoopSpec
from becket.contract.store import RunFilter

LARGEST_TAIL = 4_000_000
LOOK_EVERY = 0.25


@dataclass(frozen=True, slots=True)
class LoopWatched:
    """A loop with a commit trigger, and what its last run came to."""

    loop_id: str
    branches: tuple[str, ...]
    autonomy: str  # in force: the lowest of becket.yaml, the loop and what the sandbox holds
    paused: bool
    last_run: str
    last_subject: str
    last_status: str


@dataclass(frozen=True, slots=True)
class Watched:
    autonomy: AutonomyNow
    loops: tuple[LoopWatched, ...]


def watched(state: State) -> Watched:
    """Opens the app, and without a daemon tries the sandbox, so the cap is what holds here and now."""

    async def look() -> Watched:
        app = App.open(state)
        try:
            return await _look(app)
        finally:
            await app.store.close()

    return asyncio.run(look())


async def _look(app: App) -> Watched:
    paused = {item.scope for item in await app.store.controls()}
    loops = [
        await _loop(app, loop.spec, branches, paused)
        for loop in app.loops.all()
        if (branches := _branches(app, loop.spec))
    ]
    now = autonomy_of(app.state, holder(app.state.daemon_lock)) or autonomy_here(app)
    return Watched(now, tuple(loops))


def _branches(app: App, spec: LoopSpec) -> tuple[str, ...]:
    found = (trigger.commit for trigger in spec.trigger if trigger.commit is not None)
    return tuple(dict.fromkeys(commit.branch or app.config.branch for commit in found))


async def _loop(app: App, spec: LoopSpec, branches: tuple[str, ...], paused: set[str]) -> LoopWatched:
    last = next(iter(await app.store.list_runs(RunFilter(loop_id=spec.loop_id, limit=1))), None)
    return LoopWatched(
        loop_id=spec.loop_id,
        branches=branches,
        autonomy=app.autonomy(spec).value,
        paused=bool(paused & {"all", f"loop:{spec.loop_id}"}),
        last_run=last.run_id if last else "",
        last_subject=last.subject.name if last else "",
        last_status=last.status.value if last else "",
    )


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log, and where it was then: following goes on exactly there."""

    lines: tuple[str, ...]
    place: int = 0
    file: int | None = None  # its inode; None while there is no log yet


def tail_of(path: Path, count: int) -> Tail:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - LARGEST_TAIL, 0))
            read = file.read(min(size, LARGEST_TAIL))
            inode = os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return Tail(())
    whole, _, rest = read.rpartition(b"\n")
    lines = whole.decode("utf-8", "replace").splitlines()[-count:] if count else []
    return Tail(tuple(lines), size - len(rest), inode)


def new_lines(path: Path, after: Tail) -> Iterator[str]:
    """Lines as they are written, for ever; a log that was rotated away is followed to its successor."""
    place, known = after.place, after.file
    while True:
        try:
            with path.open("rb") as file:
                now = os.fstat(file.fileno()).st_ino
                place = place if now == known else 0
                known = now
                file.seek(place)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            whole, end = b"", b""
        place += len(whole) + len(end)
        yield from whole.decode("utf-8", "replace").splitlines()
        time.sleep(LOOK_EVERY)  # a file of another process has no bell
