"""Gates: named steps that decide a tree, and what they said."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from becket.kernel.contract.base import Json, Record, digest_of


class GateColor(StrEnum):
    green = "green"
    red = "red"
    undecided = "undecided"  # nobody can tell: reruns disagree, or the step could not be judged


class RedClass(StrEnum):
    """Why a step is red, found before an agent is called (L13, L14)."""

    environment = "environment"
    flaky = "flaky"
    code = "code"


class StepVerdict(Record):
    """One step of a gate on one tree. Names of tests are capped; the report artifact has all of them."""

    gate: str
    step: str
    color: GateColor
    exit_code: int | None
    end: str
    seconds: float
    tests_run: int
    counts_tests: bool = True  # a plain step's one case is its exit code
    failing: tuple[str, ...] = ()
    failed: int = 0  # how many fail in all
    reasons: tuple[str, ...] = ()
    problem: str = ""  # for an environment's fault: what was seen
    receipt: str
    log: str
    report: str  # artifact: the TestReport as JSON
    environment: str  # digest of everything besides the tree that could change the result
    setup: str = ""  # the key of the set-up it ran with
    reused_from: str = ""  # the run that proved exactly this before

    @property
    def green(self) -> bool:
        return self.color is GateColor.green


class GateVerdict(Record):
    """What a gate says about one commit. Green only if every step is."""

    gate: str
    commit: str
    tree: str
    defined_by: str  # the commit whose becket.yaml defines the gate
    color: GateColor
    steps: tuple[StepVerdict, ...]

    @property
    def green(self) -> bool:
        return self.color is GateColor.green

    @property
    def failing(self) -> tuple[str, ...]:
        return tuple(f"{step.step}: {name}" for step in self.steps for name in step.failing)

    @property
    def failed(self) -> int:
        return sum(max(step.failed, len(step.failing)) for step in self.steps)

    @property
    def digest(self) -> str:
        """Of what was proven, not of how long it took."""
        beside = {"seconds", "reused_from", "counts_tests", "failed"}
        told: list[Json] = [step.model_dump(mode="json", exclude=beside) for step in self.steps]
        return digest_of({"gate": self.gate, "tree": self.tree, "defined_by": self.defined_by, "steps": told})


class StepTrouble(StrEnum):
    """What is wrong with a step that was tried, as a person would sort it."""

    environment = "environment"  # its log blames the machine, or it is the set-up that failed
    timeout = "timeout"
    no_report = "no report"
    no_tests = "zero tests"
    code = "code"  # tests fail, or the command says so by its exit code


class TriedStep(Record):
    """What one step, or the set-up before all of them, said when it was tried."""

    gate: str  # empty: the set-up
    step: str
    color: GateColor
    trouble: StepTrouble | None = None
    seconds: float = 0.0
    tests_run: int = 0
    counts_tests: bool = True
    exit_code: int | None = None
    end: str = ""
    reasons: tuple[str, ...] = ()
    problem: str = ""  # what of the machine its log blames
    at_work: str = ""  # the command line that did not end in time
    failing: tuple[str, ...] = ()
    summary: str = ""  # artifact: the failure, extracted from the log
    log: str = ""  # artifact

    @property
    def green(self) -> bool:
        return self.color is GateColor.green

    @property
    def name(self) -> str:
        return f"{self.gate}/{self.step}" if self.gate else self.step


def no_tests_counted(exit_code: int | None) -> str:
    """What a plain step says, to people."""
    return "no tests counted" if exit_code is None else f"exit code {exit_code}, no tests counted"


def green_at(gate: str, step: str, command: str) -> str:
    """The fact that a step was green with this command, about the commit it was green at."""
    return f"green_at.{gate}.{step}.{_short(command)}"


EVER_GREEN = "ever_green"


def ever_green(gate: str, step: str, command: str) -> str:
    """The fact that a step was green once with this command, at whatever commit; its subject is `EVER_GREEN`."""
    return f"{EVER_GREEN}.{gate}.{step}.{_short(command)}"


def _short(command: str) -> str:
    return digest_of(command)[:16]


class Verdicts(Protocol):
    """Remembers first-try green steps by (tree, step, environment). Never red, never undecided."""

    async def find(self, key: str, not_before: float, now: float) -> tuple[StepVerdict, str] | None:
        """The verdict and the run that made it, if it is younger than `not_before` and its evidence still exists."""
        ...

    async def put(self, key: str, verdict: StepVerdict, run_id: str, at: float) -> None:
        """Durable when it returns. Raises ValueError for anything but green."""
        ...
