"""A run as its events tell it: what its rows must be if nobody changed them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from becket.kernel.contract.base import Json
from becket.kernel.contract.condition import Condition, Lifetime
from becket.kernel.contract.effect import SETTLED
from becket.kernel.contract.events import COVERS, OF_STEPS, SEALS, Event, EventKind
from becket.kernel.contract.run import Run, RunStatus, Step, started_as

AFTER_END = frozenset(
    {
        EventKind.effect_settled,
        EventKind.approval_decided,
        EventKind.handoff_changed,
        EventKind.child_ended,
        EventKind.call_settled,
        EventKind.spent,
        EventKind.artifacts_dropped,
        EventKind.clock_leapt,
        EventKind.note,
    }
)
"""All that may still be told of a run that has ended."""

WRITTEN_ONCE = ("step", "receipt", "artifact")
"""Kinds of rows that never change: a second seal under the same name is a forgery."""

_STATUS_OF = {
    EventKind.run_claimed: RunStatus.running,
    EventKind.run_requeued: RunStatus.queued,
    EventKind.run_waiting: RunStatus.waiting,
    EventKind.run_woken: RunStatus.queued,
}

_AT_FIRST: dict[str, Json] = {
    "iteration": 1, "counted": 1, "held": False, "cancel_asked": False, "reason": "", "detail": {}, "waiting_on": [],
    "waits_since": {}, "ended_at": None,
}  # fmt: skip


@dataclass(slots=True)
class ToldCall:
    """A call of an agent: what it was booked at, and what was settled."""

    booked: dict[str, Json] = field(default_factory=dict)
    settled: dict[str, Json] = field(default_factory=dict)


def as_it_stands(run: Run) -> dict[str, Json]:
    """The fields of a run's row that its events tell of."""
    now = {name: getattr(run, name) for name in _AT_FIRST}
    return {**started_as(run), **now, "waiting_on": list(run.waiting_on), "spec_digest": run.spec_digest}


class Replay:
    """Reads the events in their order. `steps` are the rows by name: only their seals are in the events."""

    def __init__(self, events: Iterable[Event], steps: Mapping[str, Step]) -> None:
        self.status: RunStatus | None = None
        self.run: dict[str, Json] = {}
        self.seals: dict[str, str] = {}
        self.conditions: dict[tuple[str, str], Condition] = {}
        self.dropped = 0
        self.seconds = 0.0  # at work, as its steps say
        self.covers: frozenset[str] = frozenset()
        self.calls: dict[str, ToldCall] = {}
        self.amounts: dict[str, dict[str, float]] = {}
        self.problems: list[str] = []
        self._steps = steps
        self._settled: set[str] = set()
        for event in events:
            try:
                self._tell(event)
            except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
                self.problems.append(f"event {event.seq} ({event.kind}) does not say what its kind says")

    def _tell(self, event: Event) -> None:
        kind, data = event.kind, event.data
        if kind in OF_STEPS:
            self.seconds += float(str(data.get("seconds", 0.0)))
        if (kind is EventKind.run_created) is not (event.seq == 1):
            self.problems.append(f"event {event.seq} is {kind}; a run begins once")
        if self.run.get("ended_at") is not None and kind not in AFTER_END:
            self.problems.append(f"event {event.seq} is {kind}, and the run had ended")
        self._keep_seals(event)
        self.status = _STATUS_OF.get(kind, self.status)
        if kind in OF_STEPS:
            self._raise(*(item for name in data.get(SEALS, {}) for item in self._raised_by(name)))
        elif kind in _TELL:
            _TELL[kind](self, event)

    def _keep_seals(self, event: Event) -> None:
        for name, seal in event.data.get(SEALS, {}).items():
            if self.seals.get(name, seal) != seal and (name.split()[0] in WRITTEN_ONCE or name in self._settled):
                self.problems.append(f"event {event.seq} tells of {name} anew")
            self.seals[name] = seal
            effect_settled = name.startswith("effect ") and event.data["state"] in SETTLED
            if effect_settled or event.kind is EventKind.call_settled:
                self._settled.add(name)

    def _raised_by(self, name: str) -> tuple[Condition, ...]:
        return self._steps[name].conditions if name in self._steps else ()

    def _raise(self, *new: Condition) -> None:
        for item in new:
            for name in (*item.group, item.name):
                self.conditions.pop((item.object, name), None)
            self.conditions[item.object, item.name] = item

    def created(self, event: Event) -> None:
        self.status = RunStatus.queued
        self.run = {**_AT_FIRST, **event.data}
        self.covers = frozenset(event.data.get(COVERS, ()))

    def claimed(self, event: Event) -> None:
        """A worker of an older release may move a run that a newer one made."""
        self.covers &= frozenset(event.data.get(COVERS, ()))

    def iteration(self, event: Event) -> None:
        data = event.data
        counted = self.run["counted"] + int(data.get("counts", False))
        self.run |= {"iteration": data["iteration"], "counted": counted, "waits_since": data.get("since", {})}
        self.conditions = {key: item for key, item in self.conditions.items() if item.life is Lifetime.run}
        if event.kind is EventKind.run_waiting:
            self.run["waiting_on"] = list(dict.fromkeys(row["condition"] for row in data["waits"]))
        elif "segment" in data:  # it gave its claim back without a reason to sleep
            self.status = RunStatus.queued

    def leapt(self, event: Event) -> None:
        if "deadline_at" in event.data:
            self.run |= {"deadline_at": event.data["deadline_at"], "waits_since": event.data["since"]}

    def woken(self, event: Event) -> None:
        self.run["waiting_on"] = []
        self._raise(Condition(name="woken", evidence=event.data, iteration=self.run["iteration"], at=event.at))

    def cancel_asked(self, event: Event) -> None:
        if self.status is RunStatus.running:
            self.run |= {"cancel_asked": True, "detail": event.data}

    def ended(self, event: Event) -> None:
        self.status = RunStatus(event.data["status"])
        said = {"reason": event.data["reason"], "detail": event.data["detail"]}
        self.run |= {**said, "ended_at": event.at, "waiting_on": []}

    def held(self, event: Event) -> None:
        self.run["held"] = event.kind is EventKind.run_held

    def migrated(self, event: Event) -> None:
        self.run["spec_digest"] = event.data["to"]

    def call_booked(self, event: Event) -> None:
        call, booked = _text(event.data["call"]), _amounts(event.data["booked"])
        told = {**event.data, "limits": dict(event.data["limits"].items())}
        if call in self.calls:
            self.problems.append(f"event {event.seq} books the call {call} anew")
        self.calls[call] = ToldCall(booked=told)
        self.amounts[call] = booked

    def call_settled(self, event: Event) -> None:
        """A call that began before a run told of its calls is settled without a booking."""
        call, used = _text(event.data["call"]), _amounts(event.data["used"])
        told = {**event.data, "usage": dict(event.data["usage"].items())}
        known = self.calls.setdefault(call, ToldCall())
        if known.settled or (not known.booked and "call" in self.covers):
            self.problems.append(f"event {event.seq} settles the call {call}, which was not open")
        known.settled = told
        self.amounts[call] = used

    def spent(self, event: Event) -> None:
        self.amounts[_text(event.data["key"])] = _amounts(event.data["used"])

    def artifacts_dropped(self, event: Event) -> None:
        self.dropped += int(event.data["count"])
        self.seals = {name: seal for name, seal in self.seals.items() if not name.startswith("artifact ")}


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value


def _amounts(told: Json) -> dict[str, float]:
    return {kind: float(amount) for kind, amount in told.items()}


_TELL = {
    EventKind.run_created: Replay.created,
    EventKind.run_claimed: Replay.claimed,
    EventKind.run_waiting: Replay.iteration,
    EventKind.iteration_started: Replay.iteration,
    EventKind.run_woken: Replay.woken,
    EventKind.run_ended: Replay.ended,
    EventKind.run_held: Replay.held,
    EventKind.run_unheld: Replay.held,
    EventKind.run_migrated: Replay.migrated,
    EventKind.clock_leapt: Replay.leapt,
    EventKind.cancel_asked: Replay.cancel_asked,
    EventKind.call_booked: Replay.call_booked,
    EventKind.call_settled: Replay.call_settled,
    EventKind.spent: Replay.spent,
    EventKind.artifacts_dropped: Replay.artifacts_dropped,
}
