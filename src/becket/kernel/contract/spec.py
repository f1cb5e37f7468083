"""LoopSpec version 1: a loop as a contract that can be checked before it runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from becket.kernel.contract.base import Duration, Json, KeyProblem, PositiveDuration, Record
from becket.kernel.contract.condition import Lifetime
from becket.kernel.contract.naming import BranchName, Line, VariableName, is_place
from becket.kernel.contract.process import Network

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
LoopId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
DottedName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")]
EventName = Annotated[DottedName, StringConstraints(max_length=200)]
ConditionRef = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
NonBlank = Annotated[str, StringConstraints(pattern=r"\S")]  # as it is written, and not nothing


class Phase(StrEnum):
    """The seven phases, in order. A run passes through all of them once per iteration."""

    discover = "discover"
    plan = "plan"
    act = "act"
    verify = "verify"
    persist = "persist"
    decide = "decide"
    notify = "notify"


PHASES: tuple[Phase, ...] = tuple(Phase)
CLOSING: tuple[Phase, ...] = (Phase.persist, Phase.decide, Phase.notify)
"""The phases that run even after an action failed."""


class Autonomy(StrEnum):
    """How far a loop may go by itself, lowest first."""

    observe = "observe"
    propose = "propose"
    merge = "merge"
    release = "release"

    @property
    def rank(self) -> int:
        return _RANKS[self]

    def allows(self, needed: Autonomy) -> bool:
        return self.rank >= needed.rank

    @staticmethod
    def lowest(*levels: Autonomy) -> Autonomy:
        return min(levels, key=lambda level: level.rank)


_RANKS = {level: rank for rank, level in enumerate(Autonomy)}


class Missed(StrEnum):
    """What to do about fires that were due while nobody was there."""

    skip = "skip"
    once = "once"
    all = "all"


class Edge(StrEnum):
    """leading: act at once, then stay quiet for the debounce; trailing: wait until it is quiet, then act."""

    leading = "leading"
    trailing = "trailing"


class ManualTrigger(Record):
    """Started by a person: `becket run LOOP`."""


class ScheduleTrigger(Record):
    """Fires by the clock. `tz` is an IANA name; a fire in a skipped hour happens right after it."""

    cron: Text
    tz: str = "UTC"
    missed: Missed = Missed.once
    grace: Duration = 60.0  # later than this, a fire counts as missed


class CommitTrigger(Record):
    """Fires when a branch moved, by whatever means. Without `branch`: the one of becket.yaml."""

    branch: BranchName | None = None
    debounce: Duration = 0.3
    edge: Edge = Edge.leading
    unless: Name | None = None  # a fact recorded about the subject, such as `proven` or `completed`
    at_first_sight: bool = False  # the commit that is there when the branch is first looked at counts as news
    max_chain: int | None = Field(default=None, ge=1, le=100)


class EventTrigger(Record):
    """Fires on an event posted by `becket event NAME` whose data has every value of `match`."""

    name: EventName
    match: dict[str, str] = Field(default_factory=dict)
    unless: Name | None = None
    max_chain: int | None = Field(default=None, ge=1, le=100)


class AfterTrigger(Record):
    """Fires when a run of another loop ended with one of `outcome`."""

    loop: LoopId
    outcome: Annotated[
        tuple[Literal["completed", "ready_for_handoff", "failed", "cancelled"], ...], Field(min_length=1)
    ] = ("completed",)
    max_chain: int | None = Field(default=None, ge=1, le=100)


class Trigger(Record):
    """Exactly one of the keys."""

    manual: ManualTrigger | None = None
    schedule: ScheduleTrigger | None = None
    commit: CommitTrigger | None = None
    event: EventTrigger | None = None
    after: AfterTrigger | None = None

    @model_validator(mode="before")
    @classmethod
    def _empty_form(cls, value: Json) -> Json:
        """`- manual:` and `- commit:` with nothing after the colon take every default."""
        if isinstance(value, dict) and len(value) == 1:
            (kind, settings), *_ = value.items()
            return {kind: {}} if settings is None and kind in ("manual", "commit") else value
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set) != 1 or getattr(self, next(iter(self.model_fields_set))) is None:
            raise ValueError("a trigger has exactly one of manual, schedule, commit, event, after")
        return self

    @property
    def kind(self) -> str:
        return next(iter(self.model_fields_set))


class OnBusy(StrEnum):
    """What a new run does while its concurrency group is taken."""

    queue = "queue"  # waits its turn, oldest first
    newest_waits = "newest_waits"  # waits; an older waiting run of the group is cancelled as superseded
    drop = "drop"  # is not started at all


class Concurrency(Record):
    """At most one run per group is at work. The group is a template over the subject's fields."""

    group: Text
    on_busy: OnBusy = OnBusy.queue


class InputType(StrEnum):
    string = "string"
    integer = "integer"
    number = "number"
    boolean = "boolean"
    sha = "sha"
    path = "path"


_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,2})?")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BOOLEANS = {"true": True, "false": False}


class InputSpec(Record):
    """A typed run parameter: `becket run LOOP --with name=value`."""

    type: InputType = InputType.string
    optional: bool = False
    default: Json = None
    choices: Annotated[tuple[str, ...], Field(min_length=1)] = ()
    description: str = ""

    def read(self, value: Json) -> Json:
        """The value as its type has it; a text is read as a file would be. Raises ValueError with what is wrong."""
        if self.choices and str(value) not in self.choices:
            raise ValueError(f"{str(value)[:60]!r} is not one of {', '.join(self.choices)}")
        made = _READERS[self.type](str(value), value)
        if made is None:
            raise ValueError(f"{str(value)[:60]!r} is not {_CALLED[self.type]}")
        return made


def _text_of(text: str, value: Json) -> str | None:
    return None if isinstance(value, dict | list) else text


def _path_of(text: str, value: Json) -> str | None:
    """Not what a program would take for an option either."""
    return text if isinstance(value, str) and is_place(text) and not text.startswith("-") else None


_READERS: dict[InputType, Callable[[str, Json], Json]] = {
    InputType.string: _text_of,
    InputType.path: _path_of,
    InputType.integer: lambda text, _: int(text) if _INTEGER.fullmatch(text) else None,
    InputType.number: lambda text, _: float(text) if _NUMBER.fullmatch(text) else None,
    InputType.boolean: lambda text, _: _BOOLEANS.get(text.lower()),
    InputType.sha: lambda text, _: text if _SHA.fullmatch(text) else None,
}
_CALLED = {
    InputType.string: "a text",
    InputType.path: "a relative path without `..`, such as build/out.xml",
    InputType.integer: "a whole number",
    InputType.number: "a number",
    InputType.boolean: "true or false",
    InputType.sha: "a full commit hash",
}


class Budget(Record):
    """What one run may use. `wall` excludes waiting. Zero is none of it: a run that needs none is not held up."""

    wall: PositiveDuration | None = None
    agent_time: Duration | None = None
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9)


class WaitThen(StrEnum):
    handoff = "handoff"
    fail = "fail"


class Signal(StrEnum):
    """What the runtime sends to a run that waits. A part may send others; its actions say which."""

    approval = "approval"  # a person answered
    child = "child"  # a child run ended
    clock = "clock"  # the evidence's `until`, or `poll`
    worktree_changed = "worktree_changed"  # files or locks in its way (the evidence's `paths`, the index)


UNASKED = (Signal.clock.value, Signal.worktree_changed.value)
"""Signals that come to every loop; the others come of what its actions do."""


COMPLETED = "completed"
"""The fact that `unless` may always ask for: a run of the loop with this subject completed."""


class Wait(Record):
    """What wakes a run that waits on a condition: a signal, or `clock` (the evidence's `until`, or `poll`)."""

    wake: Name
    poll: PositiveDuration | None = None
    for_: PositiveDuration = Field(alias="for")
    then: WaitThen = WaitThen.handoff


class OnError(StrEnum):
    """After the retries: go on to persist, decide and notify; carry on; or fail the run after notify."""

    decide = "decide"
    carry_on = "continue"
    fail = "fail"


class EffectClass(StrEnum):
    """What may be done when nobody knows whether an effect happened."""

    queryable = "queryable"  # look it up before doing it again
    keyed = "keyed"  # the receiver drops a second one with the same key
    blind = "blind"  # never repeated by itself; its outcome is shown as unknown
    repeatable = "repeatable"  # a mere notice: twice does no harm


class RunEffect(Record):
    """Makes a `run:` action an effect: it goes through the door, and only then may it ask for `network: full`."""

    name: DottedName
    class_: EffectClass = Field(default=EffectClass.blind, alias="class")
    needs: Autonomy = Autonomy.propose
    look_up: Text | None = None  # a command: exit 0 it happened, 1 it did not; only for queryable

    @model_validator(mode="after")
    def _look_up_fits(self) -> Self:
        if self.class_ is EffectClass.keyed:
            raise KeyProblem("a command cannot be keyed", "class", fix="use queryable, blind or repeatable")
        if (self.look_up is not None) != (self.class_ is EffectClass.queryable):
            culprit, fix = (
                ("class", "add `look_up:`") if self.look_up is None else ("look_up", "write `class: queryable`")
            )
            raise KeyProblem("a queryable effect has a look_up command, and only a queryable one", culprit, fix=fix)
        return self


class CommandFolder(StrEnum):
    tree = "tree"  # the run's own checkout of the repository
    scratch = "scratch"  # the run's own empty folder


class Command(Record):
    """A shell command of a spec: contained, timed, with one log."""

    run: Text | None = None
    timeout: PositiveDuration = 600.0
    in_: CommandFolder = Field(default=CommandFolder.tree, alias="in")
    env: dict[VariableName, str] = Field(default_factory=dict)
    network: Network = Network.none


class ActionSpec(Command):
    """`uses: name` with parameters, or `run: shell`."""

    id: Name
    uses: DottedName | None = None
    with_: dict[str, Json] = Field(default_factory=dict, alias="with")
    when: str | None = None
    retry: int = Field(default=0, ge=0, le=10)
    on_error: OnError = OnError.decide
    outputs: dict[Name, str] = Field(default_factory=dict)  # stdout | json:PATH | file:PATH
    parse: str | None = None  # json | junit:FILE
    raises: dict[str, ConditionRef] = Field(default_factory=dict)  # "0", "2-5", "*", "json:PATH=VALUE"
    keep: Lifetime = Lifetime.iteration
    effects: RunEffect | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        _check_kind(self, "an action", ("outputs", "parse", "raises", "keep", "effects"))
        return self


class VerifierSpec(Command):
    """A registered verifier by name, or a command: exit 0 pass, 1 fail, anything else undecided.

    Its result is the condition `<id>.pass`, `<id>.fail` or `<id>.undecided`.
    """

    id: Name
    uses: DottedName | None = None
    with_: dict[str, Json] = Field(default_factory=dict, alias="with")
    when: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Json) -> Json:
        return {"id": value.replace(".", "_"), "uses": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        _check_kind(self, "a verifier", ())
        return self


def _check_kind(step: ActionSpec | VerifierSpec, what: str, also_of_run: tuple[str, ...]) -> None:
    if step.uses is None and step.run is None:
        raise ValueError(f"{what} has either `uses` or `run`")
    if step.uses is not None and step.run is not None:
        raise KeyProblem(f"{what} has either `uses` or `run`, not both", "run", fix="remove one of the two")
    if step.uses is None and step.with_:
        fix = "use `{id.output}` in the command, or `env`"
        raise KeyProblem("`with` belongs to a step that `uses` an action", "with", fix=fix)
    if step.uses is not None:
        for key in (*also_of_run, "env", "network", "in_"):
            if key in step.model_fields_set:
                name = key.rstrip("_")
                raise KeyProblem(f"`{name}` belongs to a `run` step, not to `uses`", name, fix=f"remove `{name}`")


class PhaseSpec(Record):
    """What one phase is for, does, checks and keeps."""

    objective: Text
    actions: tuple[ActionSpec, ...] = ()
    verifiers: tuple[VerifierSpec, ...] = ()
    persist_outputs: tuple[str, ...] = ()


class LoopSpec(Record):
    """The whole contract of one loop."""

    version: Literal[1]
    loop_id: LoopId
    replaces_built_in: bool = False  # this loop stands in for the one of its name that comes with Becket
    goal: Text
    trigger: Annotated[tuple[Trigger, ...], Field(min_length=1)]
    subject: Line = "{loop_id}/{start}"
    state_refs: tuple[str, ...] = ()
    needs: tuple[Literal["gates", "services", "agents", "remote"], ...] = ()  # sections of becket.yaml; else it sleeps
    concurrency: Concurrency | None = None
    inputs: dict[Name, InputSpec] = Field(default_factory=dict)
    max_iterations: int = Field(ge=1, le=1000)
    deadline: PositiveDuration
    autonomy: Autonomy = Autonomy.propose
    budget: Budget = Budget()
    stop_conditions: Annotated[tuple[ConditionRef, ...], Field(min_length=1)]
    handoff_conditions: tuple[ConditionRef, ...] = ()
    wait_conditions: dict[ConditionRef, Wait] = Field(default_factory=dict)
    phases: dict[Phase, PhaseSpec]

    def phase(self, phase: Phase) -> PhaseSpec:
        """The phase as declared, or an empty one."""
        return self.phases.get(phase) or PhaseSpec(objective="nothing to do here")

    def watches(self, branch: str) -> tuple[str, ...]:
        """The branches whose commits start it; `branch` is that of becket.yaml."""
        found = (trigger.commit for trigger in self.trigger if trigger.commit is not None)
        return tuple(dict.fromkeys(commit.branch or branch for commit in found))

    def output_makers(self) -> dict[str, ActionSpec]:
        return {action.id: action for phase in self.phases.values() for action in phase.actions}

    def verifier_ids(self) -> frozenset[str]:
        return frozenset(verifier.id for phase in self.phases.values() for verifier in phase.verifiers)
