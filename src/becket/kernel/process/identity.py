"""Which process is which: references that survive a crash of ours, and the end of what they name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path

from becket.kernel.contract.process import ChildRef
from becket.kernel.process.environment import MARK
from becket.kernel.process.keeper import processes

_PATIENCE = 5.0
_PAUSE = 0.01


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def reference(pid: int) -> ChildRef:
    """The reference of a child of ours that is not reaped yet."""
    seen = processes.look(pid)
    if seen is None:
        raise ProcessLookupError(f"no process {pid}")
    return ChildRef(pid=pid, started=seen.started, boot=boot_id())


def mark(child: ChildRef) -> str:
    """The value of the mark in the environment of everything this child starts. Known from the reference alone."""
    return f"{child.pid}.{child.started}.{child.boot}"


def end(children: Sequence[ChildRef]) -> tuple[list[ChildRef], int]:
    """Kill what lives of these children; which were found alive, and how many processes were killed for them."""
    known = [child for child in children if child.boot == boot_id()]
    found: set[ChildRef] = set()
    killed: set[tuple[int, int]] = set()
    until = time.monotonic() + _PATIENCE
    while known:
        alive = list(_alive(known))
        if not alive or time.monotonic() > until:
            break
        for child, process in alive:
            found.add(child)
            if processes.send(process, signal.SIGKILL):
                killed.add((process.pid, process.started))
        time.sleep(_PAUSE)
    return [child for child in children if child in found], len(killed)


def _alive(children: Collection[ChildRef]) -> Iterable[tuple[ChildRef, processes.SeenProcess]]:
    """Every live process that belongs to one of these children: itself, its session, and whoever carries its mark."""
    by_process = {(child.pid, child.started): child for child in children}
    by_mark = {f"{MARK}={mark(child)}".encode(): child for child in children}
    around = [process for process in processes.look_around() if process.alive and process.pid != os.getpid()]
    leaders = {process.pid: by_process.get((process.pid, process.started)) for process in around}
    for process in around:
        owner = leaders.get(process.session) or by_process.get((process.pid, process.started))
        if owner is None:
            owner = next((by_mark[entry] for entry in environment(process.pid) if entry in by_mark), None)
        if owner is not None:
            yield owner, process


def environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's
        return []
