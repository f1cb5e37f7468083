"""Its keys of becket.yaml."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from becket.kernel.contract.base import KeyProblem, PositiveDuration
from becket.kernel.contract.config import Names, Section, second
from becket.kernel.contract.naming import Glob, ReportFormat
from becket.kernel.contract.process import Network
from becket.kernel.contract.spec import Name, Text
from becket.kernel.contract.variables import Variables, WithEnvFile

# Without a slow gate the fast one decides alone.
GateName = Annotated[Name, Names("gates", "unknown-gate", optional=("slow",))]


class GateStep(Variables, WithEnvFile):
    """One named step of a gate."""

    name: Name
    run: Text
    timeout: PositiveDuration = 600.0
    network: Network = Network.none
    inputs: tuple[Glob, ...] = ()
    report: ReportFormat = "plain"
    rerun: Text | None = None
    min_tests: int = Field(default=0, ge=0, le=10**7)
    parallel: bool = False

    @model_validator(mode="after")
    def _counts_what_it_can_count(self) -> Self:
        if self.min_tests and self.report == "plain":
            fix = "add `report:`, such as junit:report.xml, or remove `min_tests`"
            raise KeyProblem("`min_tests` counts the tests of a report, and this step has none", "min_tests", fix=fix)
        if self.rerun is not None and "{tests}" not in self.rerun:
            fix = "write `{tests}` where their names belong"
            raise KeyProblem("`rerun` is for some tests alone and does not say where their names go", "rerun", fix=fix)
        return self


class SetupConfig(Variables):
    """What the tests need besides the tree; cached by the content of the key files."""

    run: Text
    key: Annotated[tuple[Glob, ...], Field(min_length=1)]
    network: Network = Network.none
    timeout: PositiveDuration = 1800.0


def _with_steps_of_their_own_names(gates: dict[str, tuple[GateStep, ...]]) -> dict[str, tuple[GateStep, ...]]:
    for gate, steps in gates.items():
        if (number := second([step.name for step in steps])) is not None:
            message = f"two steps of the gate {gate!r} have the same name"
            raise KeyProblem(message, gate, number, "name", fix="give one of them another name")
    return gates


GATES: Section[dict[str, tuple[GateStep, ...]]] = Section(
    Annotated[
        dict[Name, Annotated[tuple[GateStep, ...], Field(min_length=1)]], AfterValidator(_with_steps_of_their_own_names)
    ],
    dict,
    committed=True,
    literal=(),
)
SET_UP: Section[SetupConfig | None] = Section(SetupConfig | None, lambda: None, committed=True)
