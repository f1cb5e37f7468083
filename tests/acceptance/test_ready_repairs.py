"""Ready repairs by the real program: nobody pays for one twice, and what a command says of them is so."""

from __future__ import annotations

from pathlib import Path

from calc_stage import HEAL, REPAIR, Calculator


def ready(folder: Path) -> tuple[Calculator, str]:
    """A project whose run left a ready repair."""
    project = Calculator(folder / "repo", REPAIR, autonomy="propose")
    return project, project.json(*HEAL, code=1)["run"]["run_id"]


def test_a_commit_with_a_ready_repair_asks_no_agent_again_unless_told_to(tmp_path: Path) -> None:
    project, run_id = ready(tmp_path)
    told = project.becket("run", "heal", code=1)
    assert f"becket proposals accept {run_id}" in told.err
    assert f"becket runs retry {run_id}" in told.err
    assert f"Next: becket proposals accept {run_id}" in told.out
    again = project.json(*HEAL, "--no-follow", code=1)
    assert (again["created"], again["run"]["run_id"]) == (False, run_id)
    assert [run["run_id"] for run in project.json("runs", "list")] == [run_id]
    assert project.json("run", "heal", "--dry-run", code=0)["created"], "it pays nobody"
    new = project.json("runs", "retry", run_id, code=1)
    assert new["created"]
    assert new["run"]["run_id"] != run_id


def test_a_repair_that_could_not_be_taken_yet_is_no_success_and_says_why(tmp_path: Path) -> None:
    project, run_id = ready(tmp_path)
    before = (project.root / "calc.py").read_text()
    project.write("calc.py", before + "# half a thought\n")
    head = project.git("rev-parse", "main")
    told = project.becket("proposals", "accept", run_id, code=1)
    assert "for a clean work tree, looks again " in told.out
    assert "calc.py" in told.out
    assert "main has not moved yet: run_" in told.err
    assert project.git("rev-parse", "main") == head
    again = project.json("proposals", "accept", run_id, code=1)
    assert (again["created"], again["run"]["status"]) == (False, "waiting")
    project.write("calc.py", before)
    done = project.json("proposals", "accept", run_id)
    assert (done["created"], done["run"]["status"]) == (False, "completed")
    assert project.git("rev-parse", "main") != head
