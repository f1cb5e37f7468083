"""What `becket watch` shows: which loops commits start, how far each may go, and the daemon's log."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from becket.app.compose import App
from becket.app.containment import autonomy_here
from becket.app.record.status import AutonomyNow, autonomy_of
from becket.app.state import StateFolder, holder
from becket.kernel.contract.spec import LoopSpec
from becket.kernel.contract.store import RunFilter

LARGEST_TAIL = 4_000_000
LOOK_EVERY = 0.25
STAMP = len("2026-01-31 23:59:59,999")


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
class WatchOverview:
    autonomy: AutonomyNow
    loops: tuple[LoopWatched, ...]


def watched(state: StateFolder) -> WatchOverview:
    """Opens the app, and without a daemon tries the sandbox, so the cap is what holds here and now."""

    async def look() -> WatchOverview:
        app = App.open(state, tolerant=True)
        try:
            return await _look(app)
        finally:
            await app.store.close()

    return asyncio.run(look())


async def _look(app: App) -> WatchOverview:
    paused = {item.scope for item in await app.store.controls()}
    loops = [
        await _loop(app, loop.spec, branches, paused)
        for loop in app.loops.all()
        if (branches := loop.spec.watches(app.config.branch))
    ]
    now = autonomy_of(app.state, holder(app.state.daemon_lock)) or autonomy_here(app)
    return WatchOverview(now, tuple(loops))


async def _loop(app: App, spec: LoopSpec, branches: tuple[str, ...], paused: set[str]) -> LoopWatched:
    last = next(iter(await app.store.list_runs(RunFilter(loop_id=spec.loop_id, limit=1))), None)
    return LoopWatched(
        loop_id=spec.loop_id,
        branches=branches,
        autonomy=app.policy.autonomy(spec).value,
        paused=bool(paused & {"all", f"loop:{spec.loop_id}"}),
        last_run=last.run_id if last else "",
        last_subject=last.subject.name if last else "",
        last_status=last.status.value if last else "",
    )


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a log, and where it was then: following goes on exactly there."""

    lines: tuple[str, ...]
    place: int = 0
    file: int | None = None  # its inode; None while there is no log yet


def tail_of(path: Path, count: int) -> LogTail:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - LARGEST_TAIL, 0))
            read = file.read(min(size, LARGEST_TAIL))
            inode = os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return LogTail(())
    whole, _, rest = read.rpartition(b"\n")
    lines = whole.decode("utf-8", "replace").splitlines()[-count:] if count else []
    return LogTail(tuple(lines), size - len(rest), inode)


def following(path: Path, after: LogTail) -> LogTail:
    """What was written since; a log that was rotated away is followed to its successor."""
    try:
        with path.open("rb") as file:
            now = os.fstat(file.fileno()).st_ino
            place = after.place if now == after.file else 0
            file.seek(place)
            whole, end, _ = file.read().rpartition(b"\n")
    except FileNotFoundError:
        return replace(after, lines=())
    return LogTail(tuple(whole.decode("utf-8", "replace").splitlines()), place + len(whole) + len(end), now)


def account(logs: Path, count: int) -> tuple[list[str], dict[Path, LogTail]]:
    """The last lines of daemon and watchdog together, in the order of time, and where each log was then."""
    tails = {logs / f"{name}.log": tail_of(logs / f"{name}.log", count) for name in ("daemon", "watchdog")}
    return merged(tails.values())[-count:] if count else [], tails


def merged(tails: Iterable[LogTail]) -> list[str]:
    """By their stamps; a line without one belongs to the line before it."""
    found: list[tuple[str, str]] = []
    for tail in tails:
        stamp = ""
        for text in tail.lines:
            stamp = text[:STAMP] if text[:1].isdigit() else stamp
            found.append((stamp, text))
    return [text for _, text in sorted(found, key=lambda entry: entry[0])]


def new_lines(tails: dict[Path, LogTail]) -> Iterator[str]:
    """Lines as they are written, for ever."""
    while True:
        tails = {path: following(path, tail) for path, tail in tails.items()}
        yield from merged(tails.values())
        time.sleep(LOOK_EVERY)  # a file of another process has no bell
