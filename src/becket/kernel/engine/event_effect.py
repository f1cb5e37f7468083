"""event.post: an event that other loops may listen to. It stays inside the runtime, but it may start other loops."""

from __future__ import annotations

from collections.abc import Callable

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.engine.triggers import Triggers


class EventEffect:
    """The target is the event's name. Payload: `event` (its id), `data`, `chain`, `cause`. The same id again
    starts only what is still missing.
    """

    def __init__(self, triggers: Callable[[], Triggers]) -> None:
        self.name = "event.post"
        self.class_ = EffectClass.repeatable
        self.needs = Autonomy.observe
        self.timeout = 30.0
        self._triggers = triggers

    def check(self, call: EffectCall) -> str | None:
        return (
            None
            if isinstance(call.payload.get("data"), dict) and call.payload.get("event")
            else "the event is not whole"
        )

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        data, event, cause = call.payload["data"], str(call.payload["event"]), str(call.payload["cause"])
        assert isinstance(data, dict)
        await self._triggers().post(call.target, data, event, int(str(call.payload["chain"])), cause)
        return {}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.cannot_tell
