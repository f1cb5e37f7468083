"""Starts that failed, kept in cursors and retried: a bounded number, for a bounded time, always reported."""

from __future__ import annotations

from becket.kernel.contract.base import Record, digest_of
from becket.kernel.contract.errors import StartRefused
from becket.kernel.contract.store import Cursor, OperationsStore
from becket.kernel.engine.causes import Start
from becket.kernel.engine.intake import StartRequest
from becket.kernel.engine.trigger_alerts import TriggerAlerts, in_words, retry_after

HELD = "held:"
KEEP_HELD = 7 * 86_400.0
MOST_HELD = 200
"""So many starts of one loop are held; the alert counts those beyond."""


class HeldStart(Record):
    """A start that failed, kept in a cursor until it works."""

    start: Start
    since: float
    next_at: float
    failures: int = 1


def _name(ask: StartRequest) -> str:
    return f"{HELD}{ask.loop_id}:{digest_of(ask.origin_key)[:32]}"


class HeldStarts:
    """The starts that wait for their turn."""

    def __init__(self, store: OperationsStore, trouble: TriggerAlerts, most: int = MOST_HELD) -> None:
        self._store = store
        self._trouble = trouble
        self._most = most

    async def hold(self, start: Start, error: Exception) -> None:
        ask, now = start.ask, await self._store.now()
        of_loop, name = f"{HELD}{ask.loop_id}:", _name(ask)
        waiting = {cursor.name for cursor in await self._store.cursors(of_loop)}
        if len(waiting - {name}) >= self._most:
            await self._leave_out(start, error)
            return
        held = HeldStart(start=start, since=now, next_at=now + retry_after(1))
        await self._store.fire(None, Cursor(name=name, value=held.model_dump_json()), ())
        await self._tell(start, error)

    async def any_of(self, loop_id: str) -> bool:
        return bool(await self._store.cursors(f"{HELD}{loop_id}:"))

    async def due(self) -> tuple[HeldStart, ...]:
        now = await self._store.now()
        found = [HeldStart.model_validate_json(cursor.value) for cursor in await self._store.cursors(HELD)]
        # A clock that went back must not delay it by the jump.
        return tuple(held for held in found if held.next_at <= now or held.since > now)

    async def hold_on(self, held: HeldStart, error: Exception) -> None:
        """It failed again: later, or no more."""
        now = await self._store.now()
        if now - held.since > KEEP_HELD:
            await self._give_up(held, error)
            return
        await self._tell(held.start, error)
        failures = held.failures + 1
        again = HeldStart(
            start=held.start, since=min(held.since, now), next_at=now + retry_after(failures), failures=failures
        )
        if (cursor := await self._cursor(held)) is not None:
            await self._store.fire(cursor, Cursor(name=cursor.name, value=again.model_dump_json()), ())

    async def drop(self, held: HeldStart) -> None:
        if (cursor := await self._cursor(held)) is not None:
            await self._store.drop_cursors([cursor.name])

    async def _cursor(self, held: HeldStart) -> Cursor | None:
        """By what it says and not by its letters: an earlier Becket may have written it."""
        cursors = await self._store.cursors(_name(held.start.ask))
        return next((one for one in cursors if HeldStart.model_validate_json(one.value) == held), None)

    async def _tell(self, start: Start, error: Exception) -> None:
        ask = start.ask
        if not isinstance(error, StartRefused):  # that one has an alert of its own
            await self._trouble.not_started(ask.loop_id, ask.trigger, error, {"of": ask.origin_key})

    async def _leave_out(self, start: Start, error: Exception) -> None:
        """Said, and counted by its alert: nothing disappears without a word (L44)."""
        ask = start.ask
        text = (
            f"{ask.loop_id} is asked for faster than it can be started: {self._most} starts wait already, and more are "
            f"left out, such as {ask.origin_key}. {in_words(error)}\nStop what posts them; then start it with "
            f"`becket run {ask.loop_id}` if it is still needed."
        )
        await self._trouble.report(f"flood:{ask.loop_id}", text, {"loop": ask.loop_id, "of": ask.origin_key})

    async def _give_up(self, held: HeldStart, error: Exception) -> None:
        """Said before it is dropped: nothing disappears without a word (L44)."""
        ask = held.start.ask
        key = f"given_up:{ask.loop_id}"
        text = (
            f"{ask.loop_id} could not be started for {KEEP_HELD / 86_400:g} days ({ask.origin_key}) and is no longer "
            f"tried: {in_words(error)}\nStart it with `becket run {ask.loop_id}` if it is still needed."
        )
        await self._trouble.over(key)  # an earlier one that was told must not keep this one quiet
        await self._trouble.report(key, text, {"loop": ask.loop_id, "of": ask.origin_key, "fields": ask.fields})
        await self.drop(held)
