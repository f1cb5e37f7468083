"""Keeps what happened while a loop file did not load, until the file loads and says whether it starts a run (L42)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from becket.kernel.contract.base import Record, digest_of
from becket.kernel.contract.loop import LoadedLoop, Loops
from becket.kernel.contract.store import AlertState, Cursor, OperationsStore
from becket.kernel.engine.causes import Cause, Start
from becket.kernel.engine.trigger_alerts import TriggerAlerts

PREFIX = "unread:"
ALERT = "loop_files"
LEFT_OUT = "loop_files:left_out"
MOST_KEPT = 1000
"""So many causes are kept; one more is named in an alert."""

KEEP = 7 * 86_400.0


class KeptCause(Record):
    """A cause, and the files that had no say in it yet."""

    cause: Cause
    files: tuple[str, ...]
    since: float


@dataclass(frozen=True, slots=True)
class DueStarts:
    """What is to be started now for a cause, and the files that still have no say."""

    cursor: Cursor
    kept: KeptCause
    starts: tuple[Start, ...]
    left: tuple[str, ...]
    too_old: bool


class UnreadCauses:
    """Keeps causes in cursors. One is kept before it counts as handled, and let go after what it starts is started: a
    crash in between asks for the same start again, which has the same origin.
    """

    def __init__(self, store: OperationsStore, loops: Loops, trouble: TriggerAlerts, most: int = MOST_KEPT) -> None:
        self._store = store
        self._loops = loops
        self._trouble = trouble
        self._most = most
        self._told: tuple[str, ...] | None = None

    def look(self) -> tuple[Sequence[LoadedLoop], Collection[str]]:
        """The loops that load, and the files that do not. Both sides of the reading are looked at: a file that is
        being saved must not be missing from both.
        """
        before = self._loops.broken()
        return self._loops.all(), {*before, *self._loops.broken()}

    async def keep(self, cause: Cause, files: Collection[str]) -> None:
        """Called with what `look` said, before the cause counts as handled. Again and again is harmless."""
        if not files:
            return
        await self.tell(files)
        name = f"{PREFIX}{digest_of(cause.key)[:32]}"
        cursors = {cursor.name: cursor for cursor in await self._store.cursors(PREFIX)}
        known = KeptCause.model_validate_json(cursors[name].value) if name in cursors else None
        if known is None and len(cursors) >= self._most:
            await self._leave_out(cause.key, f"{self._most} others are kept already", files)
            return
        wanted = tuple(sorted({*files, *(known.files if known else ())}))
        if known is None or known.files != wanted:
            kept = KeptCause(cause=cause, files=wanted, since=known.since if known else await self._store.now())
            await self._store.fire(cursors.get(name), Cursor(name=name, value=kept.model_dump_json()), ())

    async def due(self) -> tuple[DueStarts, ...]:
        """What files that load again have to start, and what was kept for too long. Hand each to `settle` then."""
        loops, broken = self.look()
        await self.tell(broken)
        now, found = await self._store.now(), []
        for cursor in await self._store.cursors(PREFIX):
            kept = KeptCause.model_validate_json(cursor.value)
            left = tuple(file for file in kept.files if file in broken)
            too_old = now - kept.since > KEEP
            if too_old or left != kept.files:
                theirs = [loop for loop in loops if _comes_from(loop, {*kept.files} - {*left})]
                found.append(DueStarts(cursor, kept, tuple(kept.cause.starts(theirs)), left, too_old))
        return tuple(found)

    async def settle(self, due: DueStarts) -> None:
        """Its starts are made. It is kept on for the files that still are broken."""
        if due.left and due.too_old:
            await self._leave_out(due.kept.cause.key, f"they did not load for {KEEP / 86_400:g} days", due.left)
        if not due.left or due.too_old:
            await self._store.drop_cursors([due.cursor.name])
        else:
            again = due.kept.model_copy(update={"files": due.left})
            await self._store.fire(due.cursor, Cursor(name=due.cursor.name, value=again.model_dump_json()), ())

    async def tell(self, broken: Collection[str]) -> None:
        """One alert for all broken files, raised again when there are others. Costs nothing while nothing changes."""
        files = tuple(sorted(broken))
        if not files:
            await self._trouble.over(ALERT)
        elif files != self._told and not await self._is_known(files):
            text = (
                f"Loop files that do not load: {_names(files)}. Their triggers cannot be read, so nothing starts their "
                f"loops. Events and ended runs are kept for {KEEP / 86_400:g} days and start them when the files are "
                "mended; `becket loops lint` shows what is wrong."
            )
            await self._trouble.over(ALERT)  # one that was told must not keep this one quiet
            await self._trouble.report(ALERT, text, {"files": list(files)})
        self._told = files

    async def _is_known(self, files: Sequence[str]) -> bool:
        """An alert of an earlier process is not news again."""
        alerts = await self._store.alerts((AlertState.open, AlertState.told))
        return any(alert.key == ALERT and alert.data.get("files") == list(files) for alert in alerts)

    async def _leave_out(self, key: str, why: str, files: Collection[str]) -> None:
        """Said before it is dropped: nothing disappears without a word (L44)."""
        text = (
            f"{key} is no longer kept for the loop files {_names(files)}: {why}. Mend or remove the files; then start "
            "with `becket run` what is still needed."
        )
        await self._trouble.over(LEFT_OUT)
        await self._trouble.report(LEFT_OUT, text, {"of": key, "files": sorted(files)})


def _comes_from(loop: LoadedLoop, files: Collection[str]) -> bool:
    """From one of these files, or from one of these folders."""
    return any(loop.source == file or loop.source.startswith(f"{file}/") for file in files)


def _names(files: Collection[str]) -> str:
    return ", ".join(PurePath(file).name for file in sorted(files))
