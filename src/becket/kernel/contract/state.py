"""What a loop's `state_refs` name: where its state lives. Each is looked at when a run begins and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.events import Event, EventKind
from becket.kernel.contract.naming import is_place, ref_problem

STATE = "state_refs"
"""Where `run.created` and `run.ended` hold what was seen: ref -> digest, or None where nothing was there."""


@dataclass(frozen=True, slots=True)
class StateKind:
    """How the refs of one kind are written. `fits` judges what stands behind the colon."""

    example: str
    fits: Callable[[str], bool]


STATE_KINDS: Mapping[str, StateKind] = {
    "git": StateKind("git:main", lambda name: name == "HEAD" or ref_problem(full_ref(name)) is None),
    "file": StateKind("file:docs/plan.md", is_place),
    "journal": StateKind("journal", lambda rest: not rest),
}


def full_ref(name: str) -> str:
    """A branch by its short name; every other ref by its whole one."""
    return name if name == "HEAD" or name.startswith("refs/") else f"refs/heads/{name}"


def fits(ref: str) -> bool:
    kind, colon, rest = ref.partition(":")
    return kind in STATE_KINDS and bool(colon) is bool(rest) and STATE_KINDS[kind].fits(rest)


class StateSeen(Record):
    """One ref as a run found it and as it left it. `looked`: somebody looked at its end too."""

    ref: str
    began: Json
    ended: Json = None
    looked: bool = False

    @property
    def changed(self) -> bool:
        return self.looked and self.began != self.ended


def state_seen(events: tuple[Event, ...]) -> tuple[StateSeen, ...]:
    """What the chain of a run tells of them; nothing of one from before they were looked at."""
    told = {event.kind: event.data[STATE] for event in events if STATE in event.data}
    began, ended = told.get(EventKind.run_created, {}), told.get(EventKind.run_ended, {})
    return tuple(
        StateSeen(ref=ref, began=seen, ended=ended.get(ref), looked=ref in ended) for ref, seen in began.items()
    )
