"""Ready repairs by the real program: nobody pays for one twice, and what a command says of them is so."""

from __future__ import annotations

from pathlib import Path

from calc_stage import HEAL, REPAIR, Calculator
from terminal import COLUMNS, watched

MANY = """\
import sys

sys.path.insert(0, ".")
from calc import add

said = "" if add(2, 3) == 5 else '<failure message="it is bad"/>'
cases = [f'<testcase classname="tests.test_calc" name="test_{number}">{said}</testcase>' for number in range(230)]
with open("report.xml", "w") as report:
    report.write(f"<testsuite>{''.join(cases)}</testsuite>")
sys.exit(bool(said))
"""


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
    assert project.becket("runs", "show", run_id, "--log", "fix").out == "It was the sign.\n"
    assert "no step 'nothing'" in project.becket("runs", "show", run_id, "--log", "nothing", code=2).err
    again = project.json(*HEAL, "--no-follow", code=1)
    assert (again["created"], again["run"]["run_id"]) == (False, run_id)
    assert [run["run_id"] for run in project.json("runs", "list")] == [run_id]
    assert project.json("run", "heal", "--dry-run", code=0)["created"], "it pays nobody"
    new = project.json("runs", "retry", run_id, code=1)
    assert new["created"]
    assert new["run"]["run_id"] != run_id


def test_failing_tests_are_counted_whole_however_many_are_named(tmp_path: Path) -> None:
    project = Calculator(tmp_path, REPAIR, autonomy="propose")
    project.write("tests/test_calc.py", MANY)
    project.commit("230 tests")
    told = project.becket(*HEAL, code=1).out
    assert all(
        f"  {said} " in told
        for said in ("base_fast: fast red, code red", "fix: changed, a candidate", "way: a person decides")
    )
    assert ": 230 failing tests" in project.becket("status").out
    (run,) = project.json("runs", "list")
    assert "230, 230 failing" in project.becket("runs", "report", run["run_id"]).out
    assert project.git("log", "--all", "--format=%s", "-1", "--grep=Repair").strip() == "Repair test_0 and 229 more"


def test_a_repair_that_could_not_be_taken_yet_is_no_success_and_says_why(tmp_path: Path) -> None:
    project, run_id = ready(tmp_path)
    before = (project.root / "calc.py").read_text()
    project.write("calc.py", before + "# half a thought\n")
    head = project.git("rev-parse", "main")
    told = project.becket("proposals", "accept", run_id, code=1)
    assert "for a clean work tree, wakes on any change of it" in told.out
    assert "calc.py" in told.out
    assert "main has not moved yet: run_" in told.err
    assert project.git("rev-parse", "main") == head
    assert project.json("status")["main"]["state"] == "red", "the run that waits has judged nothing"
    again = project.json("proposals", "accept", run_id, code=1)
    assert (again["created"], again["run"]["status"]) == (False, "waiting")
    project.write("calc.py", before)
    done = project.json("proposals", "accept", run_id)
    assert (done["created"], done["run"]["status"]) == (False, "completed")
    assert project.git("rev-parse", "main") != head
    now = project.json("status")["main"]
    assert (now["state"], now["repaired"], now["alone"]) == ("green", True, False)


def test_a_list_in_a_narrow_terminal_names_each_run_its_commit_and_why(tmp_path: Path) -> None:
    project, run_id = ready(tmp_path)
    head = project.git("rev-parse", "--short=8", "main").strip()
    _, (title, row) = watched(("runs", "list"), project.root)
    assert title.split() == ["RUN", "LOOP", "STATUS", "SUBJECT", "REASON"]
    beginning, _, rest = row.partition("  ")
    assert run_id.startswith(beginning)
    assert rest.startswith(f"heal  handed off  main@{head}  a proven repair waits ")
    project.becket("proposals", "decline", "--why", "we rewrite it")
    _, (_, row) = watched(("runs", "list"), project.root)
    assert "  heal  settled  " in row
    assert row.endswith(f"main@{head}  declined: we rewrite it")
    _, (title, row) = watched(("handoffs", "list", "--all"), project.root)
    assert row.endswith(f"main@{head}  declined: we rewrite it")
    assert "declined: we rewrite it" in project.becket("handoffs", "list", "--all").out
    assert max(map(len, watched(("status",), project.root)[1])) <= COLUMNS


def test_a_question_of_many_lines_is_listed_by_its_first(tmp_path: Path) -> None:
    both = 'sed -i s/-/+/ calc.py; sed -i "s/== 5/in (5, 6)/" tests/test_calc.py; echo It is too strict.'
    project = Calculator(tmp_path, both)
    assert project.json(*HEAL)["run"]["status"] == "waiting"
    _, (_, row) = watched(("approvals", "list"), project.root)
    assert row.endswith("May this repair change the tests?")
    (asked,) = project.json("approvals", "list")
    told = project.becket("deny", asked["approval_id"]).out
    assert "FAIL tests/test_calc.py::test_add" in told
    assert "tests/test_calc.py:6 test-" in told
    assert told.splitlines()[-1] == f"Next: becket runs retry {asked['run_id']}"
