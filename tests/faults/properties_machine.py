"""What is left on the machine: folders of runs, locks, processes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from becket.app.state import StateFolder, holder
from becket.kernel.process.environment import MARK
from becket.kernel.process.keeper import processes


def folder_problems(place: Path, open_runs: Collection[str]) -> Iterator[str]:
    for folder in sorted(place.iterdir()) if place.is_dir() else ():
        if folder.name not in open_runs:
            yield f"the folder {folder} is left of a run that has ended"


def lock_problems(state: StateFolder, *, busy: bool) -> Iterator[str]:
    """Ours are the system's and die with their owner; those of git are files, and stay when it is killed."""
    for path in (state.engine_lock, state.daemon_lock, state.watchdog_lock, *state.drivers.glob("*")):
        pid = holder(path)
        if pid is not None and not _alive(pid):
            yield f"{path} is held by the process {pid}, which is dead"
    if busy:
        return
    for path in sorted(state.common.rglob("*.lock")):
        if not path.is_relative_to(state.folder):
            yield f"{path} is left, and every git that needs it fails from now on"
    if (state.folder / "promotion" / "promote.json").exists():
        yield "an interrupted promotion was never put in order (promotion/promote.json is there)"


def process_problems(state: StateFolder, children: Collection[Any]) -> Iterator[str]:
    """Every process that carries our mark, and whose files are this repository's, is a child that the journal knows."""
    known = {f"{one.pid}.{one.started}.{one.boot}" for one in children}
    here = os.fsencode(state.folder)
    for seen in processes.look_around():
        found = _mark_of(seen.pid) if seen.alive else None
        if found is not None and found not in known and here in _told_by(seen.pid):
            yield f"the process {seen.pid} is a child ({found}) that the journal does not know"


def _mark_of(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    wanted = f"{MARK}=".encode()
    return next((entry[len(wanted) :].decode() for entry in environment if entry.startswith(wanted)), None)


def _told_by(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() + os.fsencode(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return b""


def _alive(pid: int) -> bool:
    seen = processes.look(pid)
    return seen is not None and seen.alive
