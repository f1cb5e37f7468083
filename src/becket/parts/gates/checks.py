"""What the doctor looks at: gates that can fail, and the programs that they start (L13)."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.configuration import FILE, place_of
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.checks.programs import missing_program
from becket.kernel.checks.shell import cannot_fail
from becket.kernel.contract.config import Config
from becket.parts.gates.section import GATES, SET_UP


def gates(exam: Exam) -> Iterator[Diagnosis]:
    config = exam.config
    if config is None:
        return
    steps = [(gate, step) for gate, steps in config.section(GATES).items() for step in steps]
    if not steps:
        yield Diagnosis(name="gates", level=Level.error, what=words.NO_GATE, mend=words.GATE_MEND, where=FILE)
        return
    if not config.section(GATES).get("fast"):
        yield Diagnosis(name="gates", level=Level.warn, what=words.NO_FAST_GATE, mend=words.GATE_MEND, where=FILE)
    toothless = [(gate, step) for gate, step in steps if cannot_fail(step.run)]
    for gate, step in toothless:
        what = words.GATE_CANNOT_FAIL.format(gate=gate, step=step.name, command=step.run)
        where = place_of(exam, step.run)
        yield Diagnosis(name="gates", level=Level.warn, what=what, mend=words.GATE_CANNOT_FAIL_MEND, where=where)
    if not toothless:
        names = ", ".join(f"{gate}.{step.name}" for gate, step in steps)
        yield Diagnosis(name="gates", level=Level.ok, what=words.GATES_OK.format(names=names))


def tools(exam: Exam) -> Iterator[Diagnosis]:
    if exam.config is None or exam.facts.root is None:
        return
    found = tuple(_missing(exam, exam.config))
    yield from found or [Diagnosis(name="tools", level=Level.ok, what=words.TOOLS_OK)]


def _missing(exam: Exam, config: Config) -> Iterator[Diagnosis]:
    setup = config.section(SET_UP)
    for gate, steps in config.section(GATES).items():
        for step in steps:
            user = f"gates.{gate}.{step.name}"
            yield from missing_program(exam, config, user, step.run, may_be_made=setup is not None)
    if setup is not None:
        yield from missing_program(exam, config, "setup", setup.run)
