"""What the door's tests share: a scripted outside behind the port, and a runtime that can crash and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from becket.kernel.contract import crash
from becket.kernel.contract.action import EffectReport
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import EffectCap
from becket.kernel.contract.effect import Effect, EffectCall, EffectState, LookUpResult, Origin, Permit, demand
from becket.kernel.contract.errors import EffectFailed, EffectRefused
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.contract.store import Store
from becket.kernel.engine.door import Door, Patience
from becket.kernel.engine.redact import Redactor
from becket.kernel.store import open_memory
from becket.testing.clock import ManualClock

ORIGIN = Origin(run_id="run_1", iteration=1, phase="act", action_id="tell")
CALL = EffectCall(name="outside.tell", target="somebody", payload={"text": "hello"})
SECRET = "Kq7-tv_zzP0/wN+22"


class Crashed(BaseException):
    """The process is gone at this line."""


class Outside:
    """Acts, or does not, as the script says; after the script it acts and answers.

    ok: acts and answers.            busy: does not act, may be asked again.      no: does not act, for good.
    refuses: does not act, and tells that it must not.
    lost: acts, the answer is lost.  dropped: does not act, no answer comes.      breaks: acts, the adapter breaks.
    crash_before, crash_after: our process dies before or after the outside acted.
    slow: our process dies while the outside is at work; it acts a second and a half later.
    """

    def __init__(self, class_: EffectClass, clock: ManualClock, *script: str) -> None:
        self.name = CALL.name
        self.class_ = class_
        self.needs = Autonomy.propose
        self.timeout = 10.0
        self.script = list(script)
        self.asked = 0
        self.looked_up = 0
        self.answers: list[LookUpResult | Exception] = []  # of look-ups, before the true ones
        self.calls: list[EffectCall] = []
        self._clock = clock
        self._acts: list[tuple[float, str]] = []

    def check(self, call: EffectCall) -> str | None:
        return None if "bad" not in call.payload else "the payload is bad"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        self.asked += 1
        self.calls.append(call)
        step = self.script.pop(0) if self.script else "ok"
        if step in {"ok", "lost", "crash_after", "breaks", "slow"}:
            self._acts.append((self._clock() + (1.5 if step == "slow" else 0.0), permit.key))
        self._trouble(step)
        return {"receipt": self.asked}

    def _trouble(self, step: str) -> None:
        if step in {"crash_before", "crash_after", "slow"}:
            raise Crashed(step)
        if step == "breaks":
            raise ZeroDivisionError("a bug")
        if step == "busy":
            raise EffectFailed("busy", retryable=True)
        if step == "refuses":
            raise EffectRefused("not allowed")
        if step == "no":
            raise EffectFailed("no such room")
        if step in {"lost", "dropped"}:
            raise EffectFailed("the line went dead", retryable=True, ambiguous=True)

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        self.looked_up += 1
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return (
            LookUpResult.yes
            if any(at <= self._clock() and acted == key for at, acted in self._acts)
            else LookUpResult.no
        )

    @property
    def happened(self) -> int:
        """What the world sees; a keyed outside drops doubles."""
        keys = [key for _, key in self._acts]
        return len(set(keys)) if self.class_ is EffectClass.keyed else len(keys)


class _Far:
    """The same store, but every call lets others go first."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Json]]:
        method = getattr(self._store, name)

        async def later(*args: Json, **named: Json) -> Json:
            await asyncio.sleep(0)
            return await method(*args, **named)

        return later


class House:
    """A journal that outlives its doors, and time that passes only by sleeping."""

    def __init__(self, class_: EffectClass = EffectClass.keyed, *script: str) -> None:
        self.clock = ManualClock()
        self.store: Store = open_memory(self.clock)
        self.outside = Outside(class_, self.clock, *script)
        self.slept: list[float] = []
        self.caps: dict[str, EffectCap] = {}
        self.patience = Patience(jitter=0.0)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)

    def move_the_journal_far_away(self) -> None:
        """Others come in between, as they do on Postgres."""
        self.store = cast("Store", _Far(self.store))

    def door(self, registered: bool = True) -> Door:
        """A new process over the same journal."""
        adapters: Mapping[str, Outside] = {self.outside.name: self.outside} if registered else {}
        return Door(self.store, adapters, Redactor({"DEPLOY_TOKEN": SECRET}), self.caps, self._sleep, self.patience)

    def perform(
        self,
        call: EffectCall = CALL,
        *,
        origin: Origin = ORIGIN,
        epoch: int | None = None,
        autonomy: Autonomy = Autonomy.merge,
        dry_run: bool = False,
    ) -> EffectReport:
        return asyncio.run(self.door().perform(call, origin, epoch, autonomy, dry_run))

    def perform_until_it_ends(self, call: EffectCall = CALL) -> EffectReport:
        """Start again after every crash, as a supervisor would."""
        for _ in range(40):
            try:
                return self.perform(call)
            except Crashed:
                continue
        raise AssertionError("it does not end")

    def resume(self, registered: bool = True) -> EffectReport:
        return asyncio.run(self.door(registered).resume(self.row()))

    def row(self, call: EffectCall = CALL, origin: Origin = ORIGIN) -> Effect:
        row = asyncio.run(self.store.get_effect(origin.key(call)))
        assert row is not None
        return row

    def state(self, call: EffectCall = CALL) -> EffectState:
        return self.row(call).state

    def due(self) -> tuple[Effect, ...]:
        return asyncio.run(self.store.due_effects())


@contextmanager
def crashing(hook: Callable[[str], None]) -> Iterator[None]:
    crash.install(hook)
    try:
        yield
    finally:
        crash.install(None)


def crash_at(name: str, nth: int = 1) -> Callable[[str], None]:
    """Raise at the nth hit of one point, once."""
    left = [nth]

    def hook(hit: str) -> None:
        if hit == name:
            left[0] -= 1
            if left[0] == 0:
                raise Crashed(hit)

    return hook
