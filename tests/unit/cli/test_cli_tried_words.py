"""What is shown of steps that were tried and are red."""

from __future__ import annotations

import pytest

from becket.kernel.contract.gate import GateColor, TriedStep, Trouble
from becket.parts.gates.trial import StepTried, Tried
from becket.parts.gates.verbs.trying import show_red


def test_a_long_reason_is_told_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """It says what to do in its last sentence; lines of a log may be cut."""
    reason = f"the set-up `{'pip install ' * 30}` failed. Install its dependencies only"
    step = TriedStep(gate="", step="setup", color=GateColor.red, trouble=Trouble.environment, reasons=(reason,))
    show_red(Tried(run_id="run_1", sha="a" * 40, steps=(StepTried(step=step, said="x" * 900, key="setup.run"),)))
    told = capsys.readouterr().out.splitlines()
    assert f"  {reason}" in told
    assert max(len(line) for line in told if "x" in line and reason not in line) < 210
