"""What of a first becket.yaml stays, once its steps were tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from becket.app.sections import load_config
from becket.kernel.contract.config import Config
from becket.kernel.contract.gate import GateColor, StepTrouble, TriedStep
from becket.parts.gates.trial import StepTried, Tried
from becket.parts.init.beginning import InitResult, keep_green
from becket.parts.init.detect import detect
from becket.parts.init.ecosystem import Tools
from becket.parts.init.scaffold import write_config

Tree = Callable[[Mapping[str, str]], Path]
FILES = {"setup.py": "", "tests/test_a.py": "", "web/package.json": '{"scripts": {"test": "mocha"}}'}


def begun(tree: Tree) -> InitResult:
    root = tree(FILES)
    found = detect(root, Tools(""))
    assert [step.name for step in found.fast] == ["pytest", "npm_test_web"]
    return InitResult(branch="main", detected=found, written=write_config(root, found, "main", "jane"))


def tried(**troubles: StepTrouble | None) -> Tried:
    steps = [
        TriedStep(
            gate="fast", step=name, trouble=trouble, color=GateColor.red if trouble else GateColor.green,
            reasons=("no test was executed",) if trouble else (),
        )
        for name, trouble in troubles.items()
    ]  # fmt: skip
    return Tried(run_id="run_1", sha="a" * 40, steps=tuple(StepTried(step=step) for step in steps))


def config_of(made: InitResult) -> Config:
    return load_config(made.written.config.read_bytes(), "becket.yaml", {})


def test_a_step_that_ran_no_test_becomes_a_comment(tree: Tree) -> None:
    made = begun(tree)
    assert keep_green(made, tried(pytest=StepTrouble.no_tests, npm_test_web=None)) == {"pytest": "no test was executed"}
    assert [step.name for step in config_of(made).gates["fast"]] == ["npm_test_web"]
    assert "#    - name: pytest" in made.written.config.read_text()


def test_a_step_whose_tests_fail_stays(tree: Tree) -> None:
    """And so does everything else: a person has to look first."""
    made = begun(tree)
    assert keep_green(made, tried(pytest=StepTrouble.no_tests, npm_test_web=StepTrouble.code)) == {}
    assert len(config_of(made).gates["fast"]) == 2


def test_where_no_step_ran_a_test_none_is_left(tree: Tree) -> None:
    made = begun(tree)
    assert set(keep_green(made, tried(pytest=StepTrouble.no_tests, npm_test_web=StepTrouble.no_tests))) == {
        "pytest",
        "npm_test_web",
    }
    assert not config_of(made).gates
