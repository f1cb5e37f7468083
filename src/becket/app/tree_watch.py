"""Raises `worktree_changed`: a run that files or locks hold up looks again as soon as they change.

Its wait's `poll` is the net below: another work tree, or a change within the moment between two looks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from becket.app.compose import App
from becket.kernel.contract.base import new_id
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.spec import Signal
from becket.kernel.contract.store import RunFilter

TREE_EVERY = 1.0

Stamp = tuple[tuple[int, int, int] | None, ...]


class TreeWatch:
    """Remembers how the places in the way looked when each run was first seen waiting for them."""

    def __init__(self, app: App, concerns: Callable[[str], bool] = lambda _: True) -> None:
        self._app = app
        self._concerns = concerns
        self._seen: dict[str, tuple[int, Stamp]] = {}  # by run: the segment it waits in
        self._wakes: dict[str, frozenset[str]] = {}  # by spec: the conditions that this signal ends

    async def look(self) -> None:
        """A chore: called often, costs a few `stat` where somebody waits and nothing else."""
        waiting = await self._app.store.list_runs(RunFilter(statuses=(RunStatus.waiting,), limit=None))
        held = [run for run in waiting if self._concerns(run.run_id) and await self._is_held(run)]
        before, self._seen = self._seen, {}
        for run in held:
            now = (run.segment, await self._stamp(run))
            self._seen[run.run_id] = now
            if before.get(run.run_id, now)[0] == run.segment and before.get(run.run_id, now) != now:
                await self._app.store.signal(run.run_id, Signal.worktree_changed, {}, new_id("tree"))
                self._app.kick()

    async def _is_held(self, run: Run) -> bool:
        if run.spec_digest not in self._wakes:
            spec = self._app.loops.parse(await self._app.store.spec_text(run.spec_digest))
            self._wakes[run.spec_digest] = frozenset(
                name for name, wait in spec.wait_conditions.items() if wait.wake == Signal.worktree_changed
            )
        return not self._wakes[run.spec_digest].isdisjoint(run.waiting_on)

    async def _stamp(self, run: Run) -> Stamp:
        root, common = self._app.state.root, self._app.state.common
        places = [common / "index", common / "index.lock", common / "HEAD.lock"]
        for condition in await self._app.store.conditions(run.run_id):
            paths = condition.evidence.get("paths")
            if condition.ref in run.waiting_on and isinstance(paths, list):
                places += [root / str(path) for path in paths]
        return tuple(map(_look, places))


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
