"""When a step's failing tests can be run alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.app.sections import config_model
from becket.kernel.contract.git import Workspace
from becket.parts.gates.judging.step import has_selection
from becket.parts.gates.judging.tree import ProofTree
from becket.parts.gates.section import GateStep

FAILING = ("tests/test_a.py::test_one",)


@pytest.mark.parametrize(
    ("report", "rerun", "alone"),
    [
        ("junit:report.xml", "pytest --junitxml=report.xml {tests}", True),
        ("junit:report.xml", "pytest --junitxml report.xml {tests}", True),
        ("junit:sub/report.xml", "cd sub && pytest '--junitxml=report.xml' {tests}", True),
        ("junit:reports/*.xml", "pytest --junitxml=reports/unit.xml {tests}", True),
        ("junit:report.xml", "pytest {tests}", False),
        ("junit:report.xml", "pytest --junitxml=other.xml {tests}", False),
        ("pytest", "pytest {tests}", True),
        ("tap", "node --test {tests}", False),
        ("junit:report.xml", None, False),
    ],
)
def test_only_a_rerun_that_writes_the_report_counts(
    report: str, rerun: str | None, alone: bool, tmp_path: Path
) -> None:
    """L11: some tests without their report would be red however they end; then the whole step runs again."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").touch()
    step = GateStep(name="unit", run="make check", rerun=rerun, report=report)
    proof = ProofTree(Workspace(tree=tmp_path, git_dir=tmp_path, sha="0" * 40), "0" * 40, config_model()(version=1))
    assert has_selection(step, proof, FAILING) is alone
    assert not has_selection(step, proof, ())
    assert not has_selection(step, proof, ("tests/test_a.py::test_one[[redacted:TOKEN]]",)), "nobody has such a test"
