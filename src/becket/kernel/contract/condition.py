"""Conditions: named facts about an object, always with evidence."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from pydantic import Field

from becket.kernel.contract.base import Json, Record

RUN = "run"
"""The object of a condition written without one: the run itself."""


class Lifetime(StrEnum):
    """How long a condition stays raised."""

    iteration = "iteration"
    run = "run"


class ConditionGroup(Record):
    """Conditions of one object whose values replace each other, such as fast_green / fast_red / fast_undecided."""

    object: str = RUN
    names: tuple[str, ...]
    life: Lifetime = Lifetime.iteration
    uncounted: tuple[str, ...] = ()  # those whose next iteration does not count towards `max_iterations`

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(ref(self.object, name) for name in self.names)


class Condition(Record):
    """One raised condition."""

    object: str = RUN
    name: str
    group: tuple[str, ...] = ()  # the names it replaces; empty means only itself
    life: Lifetime = Lifetime.iteration
    evidence: dict[str, Json] = Field(default_factory=dict)
    iteration: int = 0
    at: float = 0.0

    @property
    def ref(self) -> str:
        return ref(self.object, self.name)


def ref(object_: str, name: str) -> str:
    """How a condition is written in a spec: `base.fast_red`, or `no_progress` for the run's own."""
    return name if object_ == RUN else f"{object_}.{name}"


def split_ref(text: str) -> tuple[str, str]:
    """The inverse of `ref`."""
    head, dot, tail = text.partition(".")
    return (head, tail) if dot else (RUN, head)


class Conditions:
    """The conditions raised at one moment. A value: `raised` and `next_iteration` return a new set."""

    __slots__ = ("_by_ref",)

    def __init__(self, items: tuple[Condition, ...] = ()) -> None:
        self._by_ref = {item.ref: item for item in items}

    def __contains__(self, wanted: str) -> bool:
        return wanted in self._by_ref

    def __iter__(self) -> Iterator[Condition]:
        return iter(self._by_ref.values())

    def __len__(self) -> int:
        return len(self._by_ref)

    def get(self, wanted: str) -> Condition | None:
        return self._by_ref.get(wanted)

    def has(self, wanted: str) -> bool:
        return wanted in self._by_ref

    def raised(self, new: tuple[Condition, ...]) -> Conditions:
        """These conditions with `new` raised; each replaces the other names of its group."""
        kept = dict(self._by_ref)
        for item in new:
            for name in (*item.group, item.name):
                kept.pop(ref(item.object, name), None)
            kept[item.ref] = item
        return Conditions(tuple(kept.values()))

    def next_iteration(self) -> Conditions:
        """What survives into the next iteration."""
        return Conditions(tuple(item for item in self._by_ref.values() if item.life is Lifetime.run))


RUNTIME_CONDITIONS: dict[str, str] = {
    "dry_run": "the run was started with --dry-run",
    "action_error": "an action of this iteration failed; the rest of its phase was left out, unless it may `continue`",
    "verifier_failed": "a verifier of this iteration said fail",
    "verifier_undecided": "a verifier of this iteration could not tell",
    "no_output": "a declared output was not made by the action that ran for it",
    "woken": "this iteration began with a wake-up, not with the end of the last one",
}
"""Raised by the runtime itself; any spec may use them in `when:` and in its conditions."""

RUNTIME_HANDOFFS: dict[str, str] = {
    "iterations_exhausted": "max_iterations passed without the stop conditions",
    "deadline_passed": "the run's deadline passed",
    "budget_exhausted": "a budget of the run, the loop, the day or the month is used up",
    "no_progress": "an iteration brought nothing new, or the same failure came a third time",
    "wait_expired": "what the run waited for did not come in time",
    "effect_unknown": "whether an effect happened cannot be known; a person must look",
    "effect_refused": "the door refused an effect",
    "observe_only": "the loop may only observe, and its stop conditions are not met",
}
"""Handoff reasons that hold in every loop, listed or not."""
