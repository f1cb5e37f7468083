"""Effects: anything that leaves the runtime. All of them pass one door, and only the door mints permits."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from becket.kernel.contract.base import Json, Record, digest_of
from becket.kernel.contract.errors import EffectRefused
from becket.kernel.contract.spec import Autonomy, EffectClass


class EffectState(StrEnum):
    intended = "intended"  # the row is written; the outside may or may not have seen it
    retrying = "retrying"  # tried again at `next_at`; `result.in_doubt` tells that the outside may have acted
    done = "done"
    failed = "failed"
    refused = "refused"  # by the door
    unknown = "unknown"  # it may have happened, and nobody can tell: a person must look
    dry_run = "dry_run"  # recorded, not performed


SETTLED = frozenset(
    {EffectState.done, EffectState.failed, EffectState.refused, EffectState.unknown, EffectState.dry_run}
)


class EffectCall(Record):
    """What an action wants to happen outside."""

    name: str  # a registered effect: notify.file, http.post, git.update_ref ...
    target: str  # file, URL, ref ...
    payload: dict[str, Json] = Field(default_factory=dict)
    label: str = ""  # tells apart several effects of one action on one target
    approval: str | None = None  # the approval that allows it, where the effect demands one
    defer: bool = False  # a notice that may be delivered later: a failure does not hold up the run

    @property
    def digest(self) -> str:
        return digest_of({"name": self.name, "target": self.target, "payload": self.payload})


class Origin(Record):
    """Who asks: a step of a run, or an alarm of the watchdog (`run_id` is then the incident)."""

    run_id: str
    iteration: int = 0
    phase: str = ""
    action_id: str = ""

    def key(self, call: EffectCall) -> str:
        """The effect's identity over crashes: never made from the payload."""
        parts = [self.run_id, self.iteration, self.phase, self.action_id, call.name, call.label, call.target]
        return digest_of(parts)[:32]


class Effect(Record):
    """The journal's row about one effect."""

    key: str
    origin: Origin
    call: EffectCall  # as it leaves: redacted
    digest: str  # of the call as asked for
    class_: EffectClass
    state: EffectState
    attempts: int
    settle_at: float  # until then an attempt may still be in flight
    next_at: float | None = None
    result: dict[str, Json] = Field(default_factory=dict)
    reason: str = ""
    created_at: float
    updated_at: float


class LookUpResult(StrEnum):
    """A look-up's answer."""

    yes = "yes"
    no = "no"
    cannot_tell = "cannot_tell"


_MINT = object()


class Permit:
    """Proof that the door let this effect out. Adapters refuse to act without one."""

    __slots__ = ("digest", "key")

    def __init__(self, key: str, digest: str, mint: object) -> None:
        if mint is not _MINT:
            raise TypeError("only the door mints permits")
        self.key = key
        self.digest = digest

    def covers(self, call: EffectCall) -> bool:
        return self.digest == call.digest


def demand(permit: Permit, call: EffectCall) -> None:
    """The first line of every adapter's `perform`: no permit for exactly this call, no effect."""
    if not isinstance(permit, Permit) or not permit.covers(call):
        raise EffectRefused(f"{call.name} was asked for without a permit for this call; effects leave by the door only")


def door_mint() -> Callable[[str, EffectCall], Permit]:
    """The mint. Named by the door alone; the rooms test looks for other callers."""
    return lambda key, call: Permit(key, call.digest, _MINT)


class EffectAdapter(Protocol):
    """One kind of effect. `perform` is called at most once per permit; `look_up` only for queryable ones."""

    name: str
    class_: EffectClass
    needs: Autonomy
    timeout: float  # an attempt older than this plus a grace is no longer in flight

    def check(self, call: EffectCall) -> str | None:
        """Called before anything is written: what is wrong with target or payload, or None."""
        ...

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        """Do it. Raises EffectFailed; what it returns is the effect's result and is shown to people."""
        ...

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        """Has it happened? Called after a crash or an ambiguous failure, once the attempt has settled."""
        ...
