"""What may be asked with: strict, bounded, and refused with the field's name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.spec import Autonomy, EventName

A = TypeVar("A", bound=Record)

DEEPEST = 30
MOST_FIELDS = 200
LARGEST = 2**63
MOST = 200
NAME = "[A-Za-z0-9_.@-]{1,80}"
"""What stands in a path."""

_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


class Wrong(Exception):
    """What was sent cannot be used: for each field, why."""

    def __init__(self, errors: list[dict[str, str]]) -> None:
        super().__init__("; ".join(f"{one['field']}: {one['why']}" if one["field"] else one["why"] for one in errors))
        self.errors = errors


class Asking(Record):
    """A body: nothing is taken for what it might mean."""

    model_config = ConfigDict(strict=True)


_WHOLE = r"^[^\x00]*$"
Words = Annotated[str, StringConstraints(max_length=2_000, pattern=_WHOLE)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_WHOLE)]


class Nothing(Asking):
    """No fields."""


class RunsWanted(Record):
    loop: Short | None = None
    status: str = Field(
        default="",
        pattern=f"^({'|'.join(RunStatus)})(,({'|'.join(RunStatus)})){{0,7}}$|^$",
        description="Only these, with commas between them.",
    )
    subject: Short | None = None
    since: float | None = Field(default=None, ge=0, le=1e11, description="Only runs that began then or later.")
    limit: int = Field(default=50, ge=1, le=MOST)
    cursor: str | None = Field(
        default=None, pattern="^run_[0-9a-z]{16}$", description="`next` of the answer before this one."
    )


class EventsWanted(Record):
    after: int = Field(default=0, ge=0, le=10**9)
    limit: int = Field(default=MOST, ge=1, le=1_000)


class StepsWanted(Record):
    iteration: int | None = Field(default=None, ge=1, le=10**6)


class LogWanted(Record):
    bytes: int = Field(default=65_536, ge=1, le=1_048_576, description="So much of its end.")


class VerifyWanted(Record):
    head: str | None = Field(default=None, pattern="^[0-9a-f]{64}$", description="A chain head that is kept elsewhere.")


class OfRun(Record):
    run: str | None = Field(default=None, pattern=f"^{NAME}$", description="All of this run, decided ones too.")


class OneLoop(Record):
    loop: Short | None = None


class SpendWanted(Record):
    days: int = Field(default=30, ge=1, le=366)
    by: str = Field(default="day", pattern="^(run|day|agent|loop)$")


class AuditWanted(Record):
    before: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Only lines with a smaller number.")
    limit: int = Field(default=50, ge=1, le=MOST)


class NewRunWanted(Asking):
    loop_id: Short
    subject: Short | None = None
    sha: Short | None = Field(default=None, description="The commit, where the loop is about one.")
    inputs: dict[str, Json] = Field(default_factory=dict)
    dry_run: bool = False
    autonomy: Autonomy | None = None


class Reason(Asking):
    reason: Words = ""


class Remarked(Asking):
    note: Words = ""


class AgentMessage(Asking):
    text: Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]


class Approve(Asking):
    about: Annotated[str, StringConstraints(pattern="^[0-9a-f]{8,64}$")] = Field(
        description="`bound_to` of the approval as you saw it, or its beginning: a stale yes is refused."
    )
    note: Words = ""


class Accept(Asking):
    sha: Annotated[str, StringConstraints(pattern="^[0-9a-f]{8,64}$")] = Field(
        description="The proven commit as you saw it, or its beginning."
    )
    note: Words = ""


class Decline(Asking):
    why: Words = ""


class NewEventWanted(Asking):
    name: EventName
    data: dict[str, Json] = Field(default_factory=dict)
    event_id: Short | None = Field(default=None, description="The same id again starts nothing twice.")


def read_body(model: type[A], body: bytes) -> A:
    """Raises Wrong."""
    read_object(body or b"{}")
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise _wrong(error) from None


def read_object(body: bytes) -> dict[str, Json]:
    """A JSON object that can be kept. Raises Wrong."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Wrong([{"field": "", "why": "the body is no JSON"}]) from None
    if not isinstance(value, dict):
        raise Wrong([{"field": "", "why": "the body is no JSON object"}])
    if why := next(_unkept(value, 0), ""):
        raise Wrong([{"field": "", "why": why}])
    return value


def _no_number(name: str) -> Json:
    raise ValueError(name)


def _unkept(value: Json, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        yield f"it is nested more than {DEEPEST} deep"
    elif isinstance(value, str):
        if _UNWRITABLE.search(value):
            yield "a text holds what is no character"
    elif isinstance(value, dict):
        if len(value) > MOST_FIELDS:
            yield f"an object has more than {MOST_FIELDS} fields"
        for key, inner in value.items():
            yield from _unkept(key, depth)
            yield from _unkept(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _unkept(inner, depth + 1)
    elif isinstance(value, int | float) and not -LARGEST <= value < LARGEST:  # nor one that is no number
        yield "a number is too large"


def read_query(model: type[A], query: dict[str, str]) -> A:
    """Raises Wrong."""
    for name, text in query.items():
        if _UNWRITABLE.search(name + text):
            raise Wrong([{"field": name[:80], "why": "it holds what is no character"}])
    try:
        return model.model_validate(query)
    except ValidationError as error:
        raise _wrong(error) from None


def _wrong(error: ValidationError) -> Wrong:
    found = error.errors(include_input=False, include_url=False)[:20]
    return Wrong(
        [
            {"field": ".".join(map(str, one["loc"]))[:80], "why": one["msg"].removeprefix("Value error, ")[:200]}
            for one in found
        ]
    )
