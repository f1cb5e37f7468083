"""What loops do and check, as code: actions and verifiers that declare beforehand what they may raise and make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import Field

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.calls import AgentCall, CallEnd, CallGrant, CallRequest
from becket.kernel.contract.condition import Condition, ConditionGroup, Conditions, ref
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.handoff import Approval
from becket.kernel.contract.made import object_of
from becket.kernel.contract.process import ChildEnd, ChildWatcher, SandboxKind
from becket.kernel.contract.receipt import Receipt
from becket.kernel.contract.run import Decision, Run
from becket.kernel.contract.spec import (
    COMPLETED,
    PHASES,
    UNASKED,
    ActionSpec,
    Autonomy,
    EffectClass,
    LoopSpec,
    Phase,
)

Port = TypeVar("Port")

KEPT = 8_000_000
"""Bytes that are kept of a file that a program wrote."""


class EffectReport(Record):
    """What the door says to the action that asked."""

    key: str
    state: str
    result: dict[str, Json] = Field(default_factory=dict)
    reason: str = ""

    @property
    def happened(self) -> bool:
        return self.state == "done"


class ActionContext(Protocol):
    """What an action may see and ask for. Made anew for every attempt; nothing in it outlives the action."""

    run: Run
    spec: LoopSpec
    phase: Phase
    step_id: str
    attempt: int
    conditions: Conditions
    outputs: Mapping[str, Mapping[str, Json]]  # by action id: this iteration's, and persisted ones of earlier
    decision: Decision | None  # only in notify
    failed_before: str  # how the attempt before this one failed, if there was one
    seconds_left: float  # until the run's wall budget or deadline; the action is cancelled then

    @property
    def autonomy(self) -> Autonomy:
        """How far the run may go, by the configuration as it stands now."""
        ...

    @property
    def autonomy_told(self) -> str:
        """The autonomy in words, with what caps it if it is not the configuration's."""
        ...

    def port(self, kind: type[Port]) -> Port:
        """The adapter behind a port, such as Git or Processes."""
        ...

    def fill(self, template: str) -> str:
        """Replace `{id.output}`, `{subject}`, `{sha}` and the like; an unknown name is an ActionFailed."""
        ...

    async def workspace(self) -> Path:
        """The run's own checkout of the repository, made at the first call."""
        ...

    async def existing_workspace(self) -> Workspace | None:
        """The checkout as it was left, or None if this run never had one (or something removed it)."""
        ...

    async def scratch(self) -> Path:
        """The run's own empty folder, made at the first call."""
        ...

    def folder(self, name: str) -> Path:
        """A place of this run for one kind of thing, such as a second checkout; removed with the run."""
        ...

    async def perform(self, call: EffectCall) -> EffectReport:
        """Ask the door. Raises EffectRefused or EffectFailed; returns `unknown` for an outcome nobody can know."""
        ...

    async def keep(self, content: bytes | Path, name: str, most: int = KEPT) -> str:
        """Store an artifact; returns its digest. The step's record refers to it.

        A file is one that a program wrote: it is kept without secrets, and of more than `most` bytes the beginning
        and the end.
        """
        ...

    def redact(self, text: str) -> str:
        """The text without secrets (L25): for what programs said, before it is kept as bytes or told to anybody."""
        ...

    async def read(self, digest: str, limit: int | None = None) -> bytes:
        """An artifact of this run, by its digest. Raises NotFound."""
        ...

    async def known(self, fact: str, subject: str) -> bool:
        """Was this fact recorded about a subject, by whatever run?"""
        ...

    async def receipt(self, receipt: Receipt, started_at: float, ended_at: float) -> str:
        """Attach a receipt to the step; returns its digest."""
        ...

    async def command(self, command: RunCommand) -> CommandEnd:
        """Run one contained command; its log is kept and a receipt is attached."""
        ...

    async def execute(self, command: RunCommand) -> Executed:
        """Run one contained command and keep its log; what it proves, the caller says in a receipt of its own."""
        ...

    def watcher(self) -> ChildWatcher:
        """Who must be told about a child that an adapter starts for this action."""
        ...

    async def start_run(self, loop: str, subject: str | None, inputs: Mapping[str, Json], again: bool) -> Run:
        """Start a child run, or find the one that answers for this subject."""
        ...

    async def child_runs(self) -> tuple[Run, ...]:
        """The runs that this run started, oldest first."""
        ...

    async def ask_approval(
        self, question: str, bound_to: str, role: str, expires_in: float, *, stands: bool = False
    ) -> Approval:
        """The approval for exactly this question and binding: asked now, or as it stands.

        The question is its first line; the lines below only tell more. What was used is asked anew, unless `stands`.
        """
        ...

    async def use_approval(self, approval_id: str, bound_to: str) -> Approval:
        """Spend an approval: once, before it expires, for what it was bound to. Raises ActionFailed otherwise."""
        ...

    async def spend(self, kind: str, amount: float) -> None:
        """Book tokens, usd or agent_time on the run, the loop and the day."""
        ...

    async def begin_call(self, request: CallRequest) -> CallGrant:
        """Ask for leave to call an agent: what it may use is booked on the run, the loop, the day and the month.

        Raises BudgetSpent if nothing is left. Unsettled calls of earlier lives of this step keep their booking.
        """
        ...

    async def end_call(self, grant: CallGrant, end: CallEnd) -> None:
        """Say how it ended; its booking becomes what it used. Called once for each grant, cancelled calls included."""
        ...

    async def open_calls(self) -> tuple[AgentCall, ...]:
        """Calls of this very step that no earlier life of it saw end."""
        ...

    async def now(self) -> float:
        """The store's time."""
        ...


class RunCommand(Record):
    """A command for ActionContext.command; `text` goes to `sh -euc`."""

    text: str
    cwd: Path
    timeout: float
    env: dict[str, str] = Field(default_factory=dict)
    network: str = "none"
    tree: str | None = None
    input: bytes = b""
    kind: str = "command"
    label: str = ""  # tells apart several commands of one action, in its logs
    readable: tuple[Path, ...] = ()  # beside the system: a checkout needs its objects


class Executed(Record):
    """How a command ended, before anybody says what that means. The files live as long as the run's folder."""

    end: ChildEnd
    exit_code: int | None
    seconds: float
    log: str  # artifact digest of the whole log, without secrets
    log_path: Path
    stdout_path: Path
    left_running: int
    sandbox: SandboxKind
    message: str
    started_at: float
    ended_at: float
    cut: bool = False  # of what it printed, the middle is missing


class CommandEnd(Record):
    exit_code: int | None
    end: str
    stdout: str  # the whole of standard output; "" where it is `unfit`
    tail: str  # the end of the log
    log: str  # artifact digest of the whole log
    receipt: str
    left_running: int
    message: str = ""
    unfit: str = ""  # why standard output can be no value: it is too large, or not text


@dataclass(frozen=True, slots=True)
class Result:
    """What an action brought. `nothing_to_do` says, with the reason, that no output was to be expected."""

    outputs: Mapping[str, Json] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    note: str = ""
    nothing_to_do: str = ""
    progress: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)  # fact name -> the subject it is about


class Conclusion(StrEnum):
    passed = "pass"
    failed = "fail"
    undecided = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verifier's answer, with what it saw."""

    says: Conclusion
    evidence: Mapping[str, Json]


class NoParams(Record):
    """For actions and verifiers without parameters."""


@dataclass(frozen=True, slots=True)
class NamesOutput:
    """Marks a parameter that names outputs of the loop, so that lint can look them up."""

    of: str = ""  # the parameter names only the action, and this is the output that is read


@dataclass(frozen=True, slots=True)
class NamesCondition:
    """Marks a parameter that names conditions of the loop, so that lint can look them up."""

    expression: bool = False  # it may say `a or b`, as in `when`


Raises = tuple[ConditionGroup, ...] | Callable[[Any], tuple[ConditionGroup, ...]]


@dataclass(frozen=True, slots=True)
class ActionDef:
    """A registered action. `raises` may depend on the parameters (`gate.run of: base` raises `base.*`)."""

    name: str
    summary: str
    run: Callable[[ActionContext, Any], Awaitable[Result]]
    params: type[Record] = NoParams
    raises: Raises = ()
    outputs: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()  # outputs that later iterations have too, without being listed in `persist_outputs`
    about: str = ""  # the object of its outputs, by which parameters take them; `{of}` is that of its own parameter
    effects: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()  # names that a trigger's `unless` may use
    signals: tuple[str, ...] = ()  # what may wake a loop that has this action, and no loop without it
    calls_agent: bool = False  # left out in a dry run

    def groups(self, params: Record) -> tuple[ConditionGroup, ...]:
        return self.raises(params) if callable(self.raises) else self.raises

    def groups_if_told(self, params: Record) -> tuple[ConditionGroup, ...] | None:
        """None if its declaration cannot tell while a parameter still is a template."""
        try:
            return self.groups(params)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class VerifierDef:
    """A registered verifier."""

    name: str
    summary: str
    run: Callable[[ActionContext, Any], Awaitable[Verdict]]
    params: type[Record] = NoParams


@dataclass(frozen=True, slots=True)
class EffectInfo:
    """What lint needs to know about an effect, without its adapter."""

    name: str
    class_: EffectClass
    needs: Autonomy


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything that specs can name. A typo fails at load, not at night."""

    actions: Mapping[str, ActionDef] = field(default_factory=dict)
    verifiers: Mapping[str, VerifierDef] = field(default_factory=dict)
    effects: Mapping[str, EffectInfo] = field(default_factory=dict)
    signals: tuple[str, ...] = UNASKED  # they may wake any loop, whatever its actions

    @property
    def senders(self) -> dict[str, tuple[str, ...]]:
        """Everything that somebody may send to a run, with the actions that lead to it."""
        found: dict[str, tuple[str, ...]] = dict.fromkeys(self.signals, ())
        for action in self.actions.values():
            for name in action.signals:
                found[name] = (*found.get(name, ()), action.name)
        return found

    def made(self, spec: LoopSpec) -> dict[str, tuple[str, ...]]:
        """Kind -> `id.output` of every step that makes it, in the order of an iteration."""
        found: dict[str, tuple[str, ...]] = {}
        for action, definition in self._defined(spec):
            about = object_of(definition.about, definition.params, action.with_)
            for name in definition.outputs if about else ():
                kind = f"{about}.{name}"
                found[kind] = (*found.get(kind, ()), f"{action.id}.{name}")
        return found

    def kept(self, spec: LoopSpec) -> frozenset[str]:
        """`id.output` of everything that later iterations have."""
        listed = {name for phase in spec.phases.values() for name in phase.persist_outputs}
        return frozenset(
            listed | {f"{step.id}.{name}" for step, action in self._defined(spec) for name in action.keeps}
        )

    def uncounted(self, spec: LoopSpec) -> frozenset[str]:
        """The conditions whose next iteration does not count."""
        return frozenset(
            ref(group.object, name)
            for action, definition in self._defined(spec)
            for group in definition.groups_if_told(definition.params.model_construct(**action.with_)) or ()
            for name in group.uncounted
        )

    def _defined(self, spec: LoopSpec) -> Iterator[tuple[ActionSpec, ActionDef]]:
        for phase in PHASES:
            for action in spec.phase(phase).actions:
                if (definition := self.actions.get(action.uses or "")) is not None:
                    yield action, definition

    @property
    def facts(self) -> frozenset[str]:
        """Everything that a trigger's `unless` can ask for."""
        return frozenset({COMPLETED, *(fact for action in self.actions.values() for fact in action.facts)})
