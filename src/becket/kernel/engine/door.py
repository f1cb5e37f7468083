"""The door: the single place through which every effect leaves.

Key, policy, redaction, intent row, attempt, result row. After a crash or an answer that never came, the class of the
effect decides: look it up, do it again with the same key, or say honestly that nobody knows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

from becket.kernel.contract.action import EffectReport
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import EffectCap
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.effect import (
    SETTLED,
    Effect,
    EffectAdapter,
    EffectCall,
    EffectState,
    LookUpResult,
    Origin,
    door_mint,
)
from becket.kernel.contract.errors import EffectFailed, EffectRefused, Fenced, StoreUnavailable, WorkerDeclaredDead
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.contract.store import Store
from becket.kernel.engine.redact import Redactor

_before_intent = CrashPoint("door.before_intent", "nothing is written: the effect is asked for again as if new")
_after_intent = CrashPoint("door.after_intent", "an intent without an attempt looks like one in flight")
_before_perform = CrashPoint("door.before_perform", "the attempt is on record and has not begun")
_after_perform = CrashPoint("door.after_perform", "the outside has acted and the row does not know")
_before_settle = CrashPoint("door.before_settle", "the answer is known here and nowhere else")
_after_settle = CrashPoint("door.after_settle", "the row knows; the action that asked does not")
_before_look_up = CrashPoint("door.before_look_up", "an attempt in doubt, not looked up yet")
_after_look_up = CrashPoint("door.after_look_up", "the look-up's answer is lost")
_before_retry = CrashPoint("door.before_retry", "the next attempt is due and not on record")

_IN_DOUBT = "in_doubt"
_LONGEST_REASON = 2000
LONGEST_NAP = 30.0
"""Seconds after which a due time is looked at again."""


Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the door goes on by itself. All in seconds.

    An effect that a run waits for is tried 1 + len(delays) times. A deferred notice is tried for a day.
    """

    grace: float = 2.0  # after an adapter's timeout, until an attempt counts as no longer in flight
    delays: tuple[float, ...] = (1.0, 4.0, 16.0)
    longest_wait: float = 60.0  # an outside that asks a waiting run for more than this has said no
    deferred_first: float = 5.0
    deferred_growth: float = 4.0
    deferred_longest: float = 3600.0
    deferred_for: float = 86400.0
    deferred_attempts: int = 40
    jitter: float = 0.25  # a delay is stretched by up to this share of itself

    def attempts(self, deferred: bool) -> int:
        return self.deferred_attempts if deferred else 1 + len(self.delays)

    def delay(self, attempts: int, deferred: bool) -> float:
        """The pause after so many attempts."""
        if not deferred:
            return self.delays[min(attempts, len(self.delays)) - 1] if self.delays else 0.0
        return min(self.deferred_first * self.deferred_growth ** min(attempts - 1, 50), self.deferred_longest)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One caller's way through the door."""

    adapter: EffectAdapter | None
    epoch: int | None
    autonomy: Autonomy | None  # None: a notice whose policy was decided when it was let out
    may_attempt: bool = True


class Door:
    """Lets effects out, once each. Safe to call again with the same call after any crash."""

    def __init__(
        self,
        store: Store,
        adapters: Mapping[str, EffectAdapter],
        redactor: Redactor,
        caps: Mapping[str, EffectCap],
        sleep: Sleep = asyncio.sleep,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._redactor = redactor
        self._caps = caps
        self._sleep = sleep
        self._patience = patience
        self._chance = chance
        self._mint = door_mint()
        self._counting = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def perform(
        self,
        call: EffectCall,
        origin: Origin,
        epoch: int | None,
        autonomy: Autonomy,
        dry_run: bool,
        adapter: EffectAdapter | None = None,
    ) -> EffectReport:
        """Let an effect out, or give the answer that is on record for it.

        Raises EffectRefused or EffectFailed. Returns `done`, `dry_run`, `unknown`, and for a deferred notice that has
        not arrived yet `retrying` or `intended`. `adapter` stands in for the registered one.
        """
        turn = _Turn(adapter or self._adapters.get(call.name), epoch, autonomy)
        key = origin.key(call)
        async with self._lock(key):
            row = await self._store.get_effect(key)
            if row is None:
                row = await self._let_out(key, call, origin, turn, dry_run)
            elif row.digest != call.digest:
                raise EffectRefused(
                    f"{call.name} to {row.call.target} was asked for before with other contents; "
                    "give the second one a label of its own"
                )
            row = await self._drive(row, turn)
        return _answer(row)

    async def resume(self, effect: Effect) -> EffectReport:
        """Go on with an effect that its run left unsettled; called by the dispatcher for due ones, outside any claim.

        Deferred notices are tried again. Others are only looked up: once its run is over, nothing acts in its name.
        Never raises for the outcome: a failed one is reported as `failed`.
        """
        turn = _Turn(self._adapters.get(effect.call.name), None, None, may_attempt=effect.call.defer)
        async with self._lock(effect.key):
            row = await self._drive(await self._read(effect.key), turn)
        return _report(row)

    def _lock(self, key: str) -> asyncio.Lock:
        """Two callers in one process take turns; between processes the epoch and the settle time keep them apart."""
        return self._turns.setdefault(key, asyncio.Lock())

    async def _read(self, key: str) -> Effect:
        row = await self._store.get_effect(key)
        assert row is not None, "an effect's row is kept as long as it is unsettled"
        return row

    async def _let_out(self, key: str, call: EffectCall, origin: Origin, turn: _Turn, dry_run: bool) -> Effect:
        """From the wish to the intent row, and the first attempt if nothing speaks against it."""
        async with self._counting:
            leaving, leak = self._clean(call)
            refusal = await self._objection(call, turn) or leak or self._spoilt(call, leaving, turn.adapter)
            state = EffectState.refused if refusal else EffectState.dry_run if dry_run else EffectState.intended
            _before_intent()
            row, new = await self._store.intend(
                key, origin, turn.epoch, leaving, call.digest,
                turn.adapter.class_ if turn.adapter else EffectClass.blind,
                state, await self._settle_time(turn.adapter), self._said(refusal or ""),
            )  # fmt: skip
        _after_intent()
        if not new or row.state is not EffectState.intended:
            return row
        return await self._attempt(row, turn, in_doubt=False)

    async def _objection(self, call: EffectCall, turn: _Turn) -> str | None:
        """Policy: what speaks against the call as asked, before its contents are looked at for secrets."""
        if turn.adapter is None:
            known = ", ".join(sorted(self._adapters)) or "none"
            return f"there is no effect named {call.name!r}; known here: {known}"
        if wrong := turn.adapter.check(call):
            return f"{call.name}: {wrong}"
        if turn.autonomy is not None and not turn.autonomy.allows(turn.adapter.needs):
            return _too_little(call, turn.adapter, turn.autonomy)
        cap = self._caps.get(call.name)
        if cap and await self._store.count_effects(call.name, await self._store.now() - cap.per) >= cap.count:
            return (
                f"{call.name} was let out {cap.count} times within {cap.per:g} s, the most that becket.yaml allows; "
                "raise effect_caps or wait"
            )
        return None

    def _clean(self, call: EffectCall) -> tuple[EffectCall, str | None]:
        """The call as it may leave and be stored, and why it may not leave at all."""
        target = self._redactor.text(call.target)
        leaving = call.model_copy(update={"target": target, "payload": self._redactor.value(call.payload)})
        if names := self._redactor.leaks([leaving.target, leaving.label, leaving.payload]):
            withheld = call.model_copy(update={"target": "[withheld]", "label": "", "payload": {}})
            return withheld, (
                f"{call.name} would carry the value of {', '.join(names)} out; it was withheld. "
                "Remove the secret from what the loop sends"
            )
        if target != call.target:
            return leaving, (
                f"the target of {call.name} holds a secret ({target}); "
                "name the target in the configuration and use that name"
            )
        return leaving, None

    @staticmethod
    def _spoilt(call: EffectCall, leaving: EffectCall, adapter: EffectAdapter | None) -> str | None:
        """Some contents must be exact: an adapter that cannot do with the redacted ones says so in its check."""
        wrong = adapter.check(leaving) if adapter and leaving != call else None
        return f"{call.name} holds a secret and is no use without it: {wrong}" if wrong else None

    async def _settle_time(self, adapter: EffectAdapter | None) -> float:
        in_flight = adapter.timeout + self._patience.grace if adapter else 0.0
        return await self._store.now() + in_flight

    async def _drive(self, row: Effect, turn: _Turn) -> Effect:
        """Move an effect until it is settled, or until only time can help and nobody waits for it."""
        while row.state not in SETTLED:
            due = row.settle_at if row.state is EffectState.intended else row.next_at or 0.0
            now = await self._store.now()
            if now >= due:
                row = await self._go_on(row, turn)
            elif row.call.defer or not turn.may_attempt:
                break
            else:
                await self._sleep(min(due - now, LONGEST_NAP))  # the clock may be set meanwhile
                row = await self._read(row.key)
        return row

    async def _go_on(self, row: Effect, turn: _Turn) -> Effect:
        """No attempt is in flight any more. Find out what is true, then try again or end it."""
        in_doubt = row.state is EffectState.intended or bool(row.result.get(_IN_DOUBT))
        if in_doubt and row.class_ is EffectClass.blind:
            return await self._end(row, turn, True, row.reason or "it was cut off, and it cannot be looked up")
        if in_doubt and row.class_ is EffectClass.queryable and turn.adapter is not None:
            seen = await self._look_up(row, turn.adapter)
            if seen is LookUpResult.yes:
                return await self._settle(row, turn, EffectState.done, {"observed": True}, "")
            if seen is LookUpResult.cannot_tell:
                return await self._end(row, turn, True, f"the look-up cannot tell. {row.reason}")
            in_doubt = False
        if forbidden := self._no_more(row, turn):
            return await self._end(row, turn, in_doubt, forbidden)
        _before_retry()
        try:
            row = await self._store.attempt(row.key, turn.epoch, await self._settle_time(turn.adapter))
        except EffectRefused:  # another process was first: its attempt is in flight, or has settled
            return await self._read(row.key)
        return await self._attempt(row, turn, in_doubt)

    def _no_more(self, row: Effect, turn: _Turn) -> str | None:
        if turn.adapter is None:
            return f"there is no effect named {row.call.name!r} here any more. {row.reason}"
        if not turn.may_attempt:
            return f"its run ended before it was done. {row.reason}"
        if row.attempts >= self._patience.attempts(row.call.defer):
            return f"given up after {row.attempts} attempts. {row.reason}"
        if turn.autonomy is not None and not turn.autonomy.allows(turn.adapter.needs):
            return _too_little(row.call, turn.adapter, turn.autonomy)
        return None

    async def _look_up(self, row: Effect, adapter: EffectAdapter) -> LookUpResult:
        """A look-up that fails is tried again like an effect; it changes nothing outside."""
        for delay in (*self._patience.delays, None):
            _before_look_up()
            try:
                async with asyncio.timeout(adapter.timeout + self._patience.grace / 2):
                    seen = await adapter.look_up(row.call, row.key)
                _after_look_up()
                return seen
            except (Fenced, WorkerDeclaredDead, StoreUnavailable):
                raise
            except Exception:  # whatever it was, the look-up did not tell
                if delay is not None:
                    await self._sleep(delay)
        return LookUpResult.cannot_tell

    async def _attempt(self, row: Effect, turn: _Turn, in_doubt: bool) -> Effect:
        """One attempt, from the permit to the row that says how it ended."""
        assert turn.adapter is not None
        await self._store.now()  # raises if the journal that holds the intent is not there any more
        _before_perform()
        try:
            result = await self._perform(row, turn.adapter)
        except EffectRefused as refusal:
            state = EffectState.unknown if in_doubt else EffectState.refused
            return await self._settle(row, turn, state, {}, str(refusal))
        except EffectFailed as failure:
            return await self._failed(row, turn, failure, in_doubt)
        _after_perform()
        return await self._settle(row, turn, EffectState.done, result, "")

    async def _perform(self, row: Effect, adapter: EffectAdapter) -> dict[str, Json]:
        """The adapter has half the grace on top of its own time-out, so that it can say itself what went wrong."""
        try:
            async with asyncio.timeout(adapter.timeout + self._patience.grace / 2):
                return await adapter.perform(row.call, self._mint(row.key, row.call))
        except (EffectRefused, EffectFailed, Fenced, WorkerDeclaredDead, StoreUnavailable):
            raise
        except TimeoutError:
            raise EffectFailed(f"no answer within {adapter.timeout:g} s", retryable=True, ambiguous=True) from None
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise EffectFailed(said, retryable=True, ambiguous=True) from error

    async def _failed(self, row: Effect, turn: _Turn, failure: EffectFailed, in_doubt: bool) -> Effect:
        """What follows from a failed attempt: an end, or another attempt at a time that is on record."""
        in_doubt, said = in_doubt or failure.ambiguous, str(failure)
        if row.class_ is EffectClass.blind and in_doubt:
            return await self._end(row, turn, in_doubt, said)
        if row.class_ is EffectClass.queryable and failure.ambiguous:
            return await self._try_later(row, turn, row.settle_at, in_doubt, said)
        if not (failure.retryable or failure.ambiguous):
            return await self._end(row, turn, in_doubt, said)
        now, delay = await self._store.now(), self._delay(row, failure)
        if row.attempts >= self._patience.attempts(row.call.defer) or self._too_late(row, now, delay):
            return await self._end(row, turn, in_doubt, f"given up after {row.attempts} attempts: {said}")
        earliest = row.settle_at if failure.ambiguous else 0.0
        return await self._try_later(row, turn, max(now + delay, earliest), in_doubt, said)

    def _delay(self, row: Effect, failure: EffectFailed) -> float:
        delay = self._patience.delay(row.attempts, row.call.defer)
        delay *= 1 + self._patience.jitter * self._chance()
        return max(delay, failure.retry_after or 0.0)

    def _too_late(self, row: Effect, now: float, delay: float) -> bool:
        if row.call.defer:
            return now + delay > row.created_at + self._patience.deferred_for
        return delay > self._patience.longest_wait

    async def _try_later(self, row: Effect, turn: _Turn, next_at: float, in_doubt: bool, said: str) -> Effect:
        result: dict[str, Json] = {_IN_DOUBT: True} if in_doubt else {}
        return await self._settle(row, turn, EffectState.retrying, result, said, next_at)

    async def _end(self, row: Effect, turn: _Turn, in_doubt: bool, said: str) -> Effect:
        """No further attempt. `failed` is said only of what did not happen."""
        return await self._settle(row, turn, EffectState.unknown if in_doubt else EffectState.failed, {}, said)

    async def _settle(
        self, row: Effect, turn: _Turn, state: EffectState, result: dict[str, Json], said: str,
        next_at: float | None = None,
    ) -> Effect:  # fmt: skip
        _before_settle()
        row = await self._store.settle(
            row.key, turn.epoch, state, self._redactor.value(result), self._said(said), next_at
        )
        _after_settle()
        return row

    def _said(self, text: str) -> str:
        return self._redactor.text(text.strip())[:_LONGEST_REASON]


def _too_little(call: EffectCall, adapter: EffectAdapter, autonomy: Autonomy) -> str:
    return (
        f"{call.name} needs autonomy {adapter.needs}, and this run has {autonomy}; "
        "raise `autonomy` in becket.yaml and in the loop, or let a person do it"
    )


def _report(row: Effect) -> EffectReport:
    return EffectReport(key=row.key, state=row.state.value, result=row.result, reason=row.reason)


def _answer(row: Effect) -> EffectReport:
    if row.state is EffectState.refused:
        raise EffectRefused(row.reason)
    if row.state is EffectState.failed:
        raise EffectFailed(row.reason)
    return _report(row)
