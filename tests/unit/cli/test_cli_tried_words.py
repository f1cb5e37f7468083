"""What is shown of steps that were tried and are red."""

from __future__ import annotations

import pytest

from becket.kernel.contract.gate import GateColor, StepTrouble, TriedStep
from becket.parts.gates.trial import StepTried, Tried
from becket.parts.gates.verbs.trying import show_red, step_line


def test_a_long_reason_is_told_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """It says what to do in its last sentence; lines of a log may be cut."""
    reason = f"the set-up `{'pip install ' * 30}` failed. Install its dependencies only"
    step = TriedStep(gate="", step="setup", color=GateColor.red, trouble=StepTrouble.environment, reasons=(reason,))
    show_red(Tried(run_id="run_1", sha="a" * 40, steps=(StepTried(step=step, said="x" * 900, key="setup.run"),)))
    told = capsys.readouterr().out.splitlines()
    assert f"  {reason}" in told
    assert max(len(line) for line in told if "x" in line and reason not in line) < 210


def test_a_plain_step_claims_no_test() -> None:
    plain = TriedStep(gate="slow", step="lint", color=GateColor.green, tests_run=1, counts_tests=False, exit_code=0)
    assert "exit code 0, no tests counted in" in step_line(plain)
    assert "1 test in" in step_line(plain.model_copy(update={"counts_tests": True}))


def test_the_line_that_blames_the_machine_is_shown_of_a_long_log(capsys: pytest.CaptureFixture[str]) -> None:
    blamed = "error TS5033: Could not write file 'x/tsconfig.tmp': EROFS: read-only file system"
    said = "\n".join([*(f"first {n}" for n in range(15)), blamed, *(f"last {n}" for n in range(30))])
    step = TriedStep(
        gate="fast", step="unit", color=GateColor.red, trouble=StepTrouble.environment, problem=f"read-only: {blamed}"
    )
    show_red(Tried(run_id="run_1", sha="a" * 40, steps=(StepTried(step=step, said=said, key="gates.fast[0].run"),)))
    told = capsys.readouterr().out.splitlines()
    assert f"  {blamed}" in told
    assert "  first 0" in told
    assert "  last 29" in told
    assert len(told) < 28
