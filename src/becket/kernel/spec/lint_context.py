"""What the rules look at: a spec with its document, and what each of its steps may raise and make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from becket.kernel.contract.action import ActionDef, Conclusion, Registry, VerifierDef
from becket.kernel.contract.condition import RUNTIME_CONDITIONS, RUNTIME_HANDOFFS, ConditionGroup, Lifetime, split_ref
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.spec import PHASES, ActionSpec, LoopSpec, Phase, VerifierSpec
from becket.kernel.spec.document import Document, Path, Spot

Order = tuple[int, int, int]
"""When a step runs within an iteration: phase, actions before verifiers, position."""


@dataclass(frozen=True, slots=True)
class ActionStep:
    """An action of the spec. `known` is False if what it raises and makes cannot be told: its own finding says why."""

    path: Path
    order: Order
    spec: ActionSpec
    definition: ActionDef | None
    groups: tuple[ConditionGroup, ...]
    outputs: frozenset[str]
    known: bool = True

    @property
    def effects(self) -> tuple[str, ...]:
        if self.spec.effects is not None:
            return (self.spec.effects.name,)
        return self.definition.effects if self.definition else ()


@dataclass(frozen=True, slots=True)
class VerifierStep:
    """A verifier of the spec; its verdict is a condition."""

    path: Path
    order: Order
    spec: VerifierSpec
    definition: VerifierDef | None

    @property
    def groups(self) -> tuple[ConditionGroup, ...]:
        return (ConditionGroup(object=self.spec.id, names=tuple(Conclusion)),)


Step = ActionStep | VerifierStep


def action_specs(spec: LoopSpec) -> Iterator[tuple[Path, Order, ActionSpec]]:
    """Every action in the order of an iteration, whatever the order of the file."""
    for number, phase in enumerate(PHASES):
        for index, action in enumerate(_phase(spec, phase)[0]):
            yield ("phases", phase.value, "actions", index), (number, 0, index), action


def verifier_specs(spec: LoopSpec) -> Iterator[tuple[Path, Order, VerifierSpec]]:
    for number, phase in enumerate(PHASES):
        for index, verifier in enumerate(_phase(spec, phase)[1]):
            yield ("phases", phase.value, "verifiers", index), (number, 1, index), verifier


def _phase(spec: LoopSpec, phase: Phase) -> tuple[tuple[ActionSpec, ...], tuple[VerifierSpec, ...]]:
    declared = spec.phases.get(phase)
    return (declared.actions, declared.verifiers) if declared else ((), ())


@dataclass(frozen=True, slots=True)
class Raiser:
    """One way in which a condition may come about; `order` is None for the runtime's own."""

    order: Order | None
    group: ConditionGroup


@dataclass(frozen=True)
class LintContext:
    """One spec under examination. `others`, `config`: None where the other loops, or becket.yaml, are not known."""

    document: Document
    spec: LoopSpec
    registry: Registry
    others: Sequence[LoadedLoop] | None
    actions: tuple[ActionStep, ...]
    verifiers: tuple[VerifierStep, ...]
    findings: tuple[Finding, ...] = ()
    config: Config | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.actions, *self.verifiers)

    @cached_property
    def all_known(self) -> bool:
        """Whether everything that can be raised is known; without it, nothing is said to be unraisable."""
        return all(action.known for action in self.actions)

    @cached_property
    def raisers(self) -> dict[str, tuple[Raiser, ...]]:
        """Every condition that can come about, and how."""
        found: dict[str, list[Raiser]] = {}
        for name in (*RUNTIME_CONDITIONS, *RUNTIME_HANDOFFS):
            found[name] = [Raiser(None, ConditionGroup(names=(name,), life=Lifetime.run))]
        for step in self.steps:
            for group in step.groups if step.path[1] != Phase.notify else ():  # it only tells
                for ref in group.refs:
                    found.setdefault(ref, []).append(Raiser(step.order, group))
        return {ref: tuple(ways) for ref, ways in found.items()}

    @cached_property
    def verdicts(self) -> frozenset[str]:
        return frozenset(ref for verifier in self.verifiers for group in verifier.groups for ref in group.refs)

    @cached_property
    def passes(self) -> frozenset[str]:
        return frozenset(f"{verifier.spec.id}.{Conclusion.passed}" for verifier in self.verifiers)

    @cached_property
    def objects(self) -> frozenset[str]:
        return frozenset(split_ref(ref)[0] for ref in self.raisers)

    def exclusive(self, one: str, other: str) -> bool:
        """Whether the two can never be raised together: whoever raises either of them lowers the other."""
        if one == other or one not in self.raisers or other not in self.raisers:
            return False
        pairs = ((one, other), (other, one))
        return all(wanted in way.group.refs for raised, wanted in pairs for way in self.raisers[raised])

    def value(self, *path: str | int) -> Spot:
        return self.document.place(path).value

    def key(self, *path: str | int) -> Spot:
        return self.document.place(path).key

    def finding(self, spot: Spot, rule: str, message: str, fix: str) -> Finding:
        return self.document.finding(spot, rule, message, fix)
