"""Events and ended runs as causes of new runs, and which runs each of them starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from pydantic import Field

from becket.kernel.contract.base import Json, Record, canonical
from becket.kernel.contract.caller import BECKET, Caller
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.run import Run
from becket.kernel.contract.spec import AfterTrigger, CommitTrigger, EventTrigger
from becket.kernel.engine.intake import StartRequest

DEEPEST = 8

T = TypeVar("T", CommitTrigger, EventTrigger, AfterTrigger)


class Start(Record):
    """A wish to start a run together with the trigger's brakes."""

    ask: StartRequest
    unless: str | None = None
    max_chain: int | None = None


class EventPosted(Record):
    """An event; `data` is flat."""

    name: str
    event_id: str
    data: dict[str, Json] = Field(default_factory=dict)
    chain: int = 0
    cause: str | None = None  # the run that posted it
    by: Caller = BECKET

    @property
    def key(self) -> str:
        return f"event:{self.event_id}"

    def starts(self, loops: Sequence[LoadedLoop]) -> Iterator[Start]:
        """Of the loops that listen to it."""
        for loop, trigger in triggers_of(loops, EventTrigger):
            if trigger.name == self.name and all(
                as_text(self.data.get(key)) == value for key, value in trigger.match.items()
            ):
                loop_id = loop.spec.loop_id
                fields = {"name": self.name, "id": self.event_id} | {f"data.{k}": v for k, v in self.data.items()}
                ask = StartRequest(
                    loop_id=loop_id,
                    trigger="event",
                    inputs=_inputs(loop, self.data),
                    fields=fields,
                    origin_key=f"event:{loop_id}:{self.event_id}",
                    chain=self.chain,
                    cause=self.cause,
                    by=self.by,
                )
                yield Start(ask=ask, unless=trigger.unless, max_chain=trigger.max_chain)


class RunEnded(Record):
    """A run that ended, as far as those that follow it want to know."""

    run_id: str
    loop_id: str
    subject: str
    outcome: str
    inputs: dict[str, Json] = Field(default_factory=dict)
    chain: int = 0

    @property
    def key(self) -> str:
        return f"after:{self.run_id}"

    def starts(self, loops: Sequence[LoadedLoop]) -> Iterator[Start]:
        """Of the loops that follow it."""
        for loop, trigger in triggers_of(loops, AfterTrigger):
            if trigger.loop == self.loop_id and self.outcome in trigger.outcome:
                loop_id = loop.spec.loop_id
                ask = StartRequest(
                    loop_id=loop_id,
                    trigger="after",
                    inputs=_inputs(loop, self.inputs),
                    fields={
                        "loop": self.loop_id, "run": self.run_id, "subject": self.subject, "outcome": self.outcome,
                    },
                    origin_key=f"after:{loop_id}:{self.run_id}",
                    chain=self.chain + 1,
                    cause=self.run_id,
                )  # fmt: skip
                yield Start(ask=ask, max_chain=trigger.max_chain)


Cause = EventPosted | RunEnded


def posted(
    name: str, data: Mapping[str, Json], event_id: str, chain: int, cause: str | None, by: Caller = BECKET
) -> EventPosted:
    flat = dict(_flattened(data))
    return EventPosted(name=name, event_id=event_id, data=flat, chain=chain, cause=cause, by=by)


def ended(run: Run) -> RunEnded:
    return RunEnded(
        run_id=run.run_id, loop_id=run.loop_id, subject=run.subject.name, outcome=run.status.value, inputs=run.inputs,
        chain=run.chain,
    )  # fmt: skip


def triggers_of(loops: Sequence[LoadedLoop], kind: type[T]) -> Iterator[tuple[LoadedLoop, T]]:
    for loop in loops:
        for trigger in loop.spec.trigger:
            found = getattr(trigger, trigger.kind)
            if isinstance(found, kind):
                yield loop, found


def _inputs(loop: LoadedLoop, given: Mapping[str, Json]) -> dict[str, Json]:
    """What the cause knows under the names of the loop's inputs."""
    return {name: given[name] for name in loop.spec.inputs if given.get(name) is not None}


def _flattened(data: Mapping[str, Json], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Json]]:
    """`{"issue": {"id": 7}}` as `issue.id`, down to a bound: the data comes from outside (L24)."""
    for key, value in data.items():
        if isinstance(value, dict) and depth < DEEPEST:
            yield from _flattened(value, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", value


def as_text(value: Json) -> str | None:
    """The form that `match` compares with: `true` and `7` are written as in JSON."""
    return value if value is None or isinstance(value, str) else canonical(value)
