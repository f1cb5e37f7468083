"""The doctor finds a budget that bounds nobody, a cap on nothing, and a branch that is only another name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from becket.parts.doctor.doctor import facts

CONFIG = """\
version: 1
budgets:
  loops:
    heal: {day: {usd: 1}}
    heel: {day: {usd: 1}}
"""


LOOP = """\
version: 1
loop_id: page
goal: Bring the page out.
trigger: [manual: {}]
max_iterations: 1
deadline: 1h
stop_conditions: [check.pass]
phases:
  act: {objective: Do it., actions: [{id: x, run: make, effects: {name: deploy.page}}]}
  verify: {objective: Check it., verifiers: [{id: check, run: "true"}]}
"""


def test_a_budget_for_a_loop_that_does_not_exist_is_found(tmp_path: Path) -> None:
    """A misspelt name would leave the loop without a limit; one that only sleeps here is no mistake."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "becket.yaml").write_text(CONFIG)
    (found,) = facts(tmp_path).lint_loops()
    assert (found.file, found.line) == ("becket.yaml", 5)
    assert found.message == "`budgets.loops.heel` bounds a loop that does not exist"
    assert found.fix == "did you mean `heal`?"


def test_a_cap_on_an_effect_that_does_not_exist_is_found(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    caps = "{git.update_ref: {count: 1}, notify.consol: {count: 1}, deploy.page: {count: 1}}"
    (tmp_path / "becket.yaml").write_text(f"version: 1\neffect_caps: {caps}\n")
    (tmp_path / ".becket/loops").mkdir(parents=True)
    (tmp_path / ".becket/loops/page.yaml").write_text(LOOP)
    (found,) = facts(tmp_path).lint_loops()
    assert (found.rule, found.line, found.column) == (
        "unknown-effect",
        2,
        1 + len("effect_caps: {git.update_ref: {count: 1}, "),
    )
    assert found.fix == "did you mean `notify.console`?"


@pytest.mark.parametrize(("autonomy", "told"), [("merge", ["symbolic-branch"]), ("propose", [])])
def test_a_branch_that_promote_could_not_move_is_found(tmp_path: Path, autonomy: str, told: list[str]) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)
    subprocess.run(["git", "symbolic-ref", "refs/heads/main", "refs/heads/trunk"], cwd=tmp_path, check=True)
    (tmp_path / "becket.yaml").write_text(f"version: 1\nbranch: main\nautonomy: {autonomy}\n")
    found = list(facts(tmp_path).lint_loops())
    assert [(item.rule, item.line, item.fix) for item in found] == [(rule, 2, "branch: trunk") for rule in told]
