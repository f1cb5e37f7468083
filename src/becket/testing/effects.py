"""Effects that are recorded instead of performed, with scripted trouble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit
from becket.kernel.contract.spec import Autonomy, EffectClass


@dataclass
class RecordedEffect:
    """An outside that keeps what reached it. `trouble` holds what the next calls raise, None for success."""

    name: str
    class_: EffectClass = EffectClass.keyed
    needs: Autonomy = Autonomy.observe
    timeout: float = 5.0
    trouble: Sequence[Exception | None] = ()
    deliveries: list[tuple[str, EffectCall]] = field(default_factory=list)
    _attempts: int = 0

    def check(self, call: EffectCall) -> str | None:
        return None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        if not permit.covers(call):
            raise AssertionError("the permit is for another call")
        self._attempts += 1
        if self._attempts <= len(self.trouble) and (error := self.trouble[self._attempts - 1]) is not None:
            raise error
        self.deliveries.append((permit.key, call))
        return {"delivered": True}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.yes if any(seen == key for seen, _ in self.deliveries) else LookUpResult.no

    @property
    def distinct(self) -> dict[str, EffectCall]:
        """What a receiver that drops duplicates by key has seen."""
        return dict(self.deliveries)
