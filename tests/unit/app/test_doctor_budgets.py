"""The doctor finds a budget that bounds nobody."""

from __future__ import annotations

import subprocess
from pathlib import Path

from becket.app.doctor import facts

CONFIG = """\
version: 1
budgets:
  loops:
    heal: {day: {usd: 1}}
    heel: {day: {usd: 1}}
"""


def test_a_budget_for_a_loop_that_does_not_exist_is_found(tmp_path: Path) -> None:
    """A misspelt name would leave the loop without a limit; one that only sleeps here is no mistake."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "becket.yaml").write_text(CONFIG)
    (found,) = facts(tmp_path).lint_loops()
    assert (found.file, found.line) == ("becket.yaml", 5)
    assert found.message == "`budgets.loops.heel` bounds a loop that does not exist"
    assert "heal" in found.fix
