"""Tells of branches that moved: file events wake it, a slow poll is its safety net, and values decide."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import RefMoved
from becket.kernel.git.refs import Refs

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP_MS = 10  # a move is seen after one to two steps, and idling costs a wake-up per step: 0.2% of a core
DEGRADED_POLL = 2.0
_TRIES = 3


async def watch(
    refs: Refs,
    branches: Sequence[str],
    poll: float,
    degraded: Callable[[str | None], None],
    events: FolderEvents | None = None,
) -> AsyncGenerator[RefMoved, None]:
    """The generator behind Git.watch. `degraded` is told why only polling is left, or None once it is not."""
    names = {f"refs/heads/{branch}": branch for branch in branches}
    known: dict[str, str | None] = dict.fromkeys(names)
    events = events or FolderEvents()
    try:
        while True:
            # The folders come first: what moves while the values are read is then an event already.
            trouble = events.follow(lambda: refs.folders(names))
            values, broken = await _read(refs, tuple(names))
            trouble = trouble or broken
            degraded(trouble)
            for ref, new in values.items():
                old, known[ref] = known[ref], new
                if new != old:
                    yield RefMoved(branch=names[ref], old=old, new=new)
            await events.wait(min(poll, DEGRADED_POLL) if trouble else poll)
    finally:
        await events.close()


async def _read(refs: Refs, names: Sequence[str]) -> tuple[Mapping[str, str | None], str | None]:
    """The values that can be had, and why not all can: one broken ref does not hide the moves of the others."""
    try:
        return await refs.values(names), None
    except GitFailed as failed:
        if len(names) == 1:
            return {}, str(failed)
    each = [await _read(refs, (name,)) for name in names]
    return {ref: value for values, _ in each for ref, value in values.items()}, next(
        (why for _, why in each if why), None
    )


def notifier(folders: list[str]) -> RustNotify:
    from watchfiles._rust_notify import RustNotify

    return RustNotify(folders, False, False, 0, False, False)  # not recursive: objects/ and remotes would be noise


class FolderEvents:
    """Wakes when something happens directly in one of a few folders. One waiting thread while it is in use."""

    def __init__(self, notify: Callable[[list[str]], RustNotify] = notifier) -> None:
        self._notifier = notify
        self._folders: list[str] = []
        self._notify: RustNotify | None = None
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1, "becket-ref-watch")
        self._waiting: Future[object] | None = None

    def follow(self, folders: Callable[[], Sequence[Path]]) -> str | None:
        """Watch these folders from now on; events since the last wait are kept. Returns what prevents it, if any."""
        trouble: Exception | None = None
        for _ in range(_TRIES):
            wanted = [str(folder) for folder in folders()]
            if self._notify is not None and wanted == self._folders:
                return None
            self._drop()
            try:
                self._notify, self._folders = self._notifier(wanted), wanted
                return None
            except FileNotFoundError as gone:  # between listing and watching: list again
                trouble = gone
            except (OSError, RuntimeError) as error:  # RuntimeError: its word for "no more inotify instances"
                trouble = error
                break
        return f"file events cannot be had ({trouble}); refs are polled every {DEGRADED_POLL:g} s instead"

    async def wait(self, seconds: float) -> None:
        """Until something happened, or the time is over."""
        if self._notify is None:
            await asyncio.sleep(seconds)
            return
        self._waiting = self._thread.submit(
            self._notify.watch, STEP_MS, STEP_MS, max(1, int(seconds * 1000)), self._stop
        )
        seen = await asyncio.wrap_future(self._waiting)
        if isinstance(seen, set) and any(path in self._folders for _, path in seen):
            self._drop()  # a folder itself came, went or was replaced: its watch may have gone with it

    async def close(self) -> None:
        """Everything that ends the thread comes before the first await: a second cancellation cannot skip it."""
        self._stop.set()
        self._thread.shutdown(wait=False)
        if self._waiting is not None and not self._waiting.done():
            await asyncio.shield(asyncio.wrap_future(self._waiting))
        self._drop()

    def _drop(self) -> None:
        if self._notify is not None:
            self._notify.close()
        self._notify, self._folders = None, []
