"""The first minutes: init, doctor, lint, status, demo; by the real program."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from cli_stage import Stage
from terminal import watched

BAD = """\
version: 1
loop_id: bad
goal: It has a typo.
trigger:
  - manual: {}
max_iterations: 1
deadline: 10m
stop_conditions: [good.pass]
phases:
  verify:
    objective: Look.
    verifiers:
      - {id: good, run: "true", tiemout: 1m}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "repo", "greet")


def test_init_finds_the_tests_writes_the_file_and_says_what_comes_next(stage: Stage) -> None:
    (stage.root / "becket.yaml").unlink()
    stage.write("pyproject.toml", '[project]\nname = "x"\nversion = "1"\n')
    stage.write("tests/test_x.py", "def test_x():\n    assert True\n")
    told = stage.becket("init", "--no-try").out
    assert "Found python" in told
    assert "Wrote becket.yaml" in told
    assert "git add becket.yaml .becket" in told
    assert "becket doctor" in told
    assert "pytest" in (stage.root / "becket.yaml").read_text()
    stage.becket("loops", "lint")
    assert stage.json("run", "hello")["run"]["status"] == "completed"


def test_doctor_breaks_its_lines_between_words_on_a_terminal(stage: Stage) -> None:
    code, rows = watched(("doctor",), stage.root)
    known = stage.becket("doctor", code=code).out.split()
    assert len(rows) > 5
    assert {word for word in " ".join(rows).split() if word.isalpha()} <= set(known), "numbers change meanwhile"


def test_init_never_overwrites_and_force_keeps_the_old_file(stage: Stage) -> None:
    before = (stage.root / "becket.yaml").read_text()
    assert "exists already" in stage.becket("init", code=2).err
    assert (stage.root / "becket.yaml").read_text() == before
    begun = stage.json("init", "--force", "--no-example", "--no-try")
    assert Path(begun["written"]["backup"]).read_text() == before
    assert begun["written"]["example"] is None
    assert begun["to_commit"] == ["becket.yaml"]


def test_a_second_init_names_the_loops_too_until_they_are_committed(stage: Stage) -> None:
    stage.write(
        ".becket/loops/mine.yaml", (stage.root / ".becket/loops/greet.yaml").read_text().replace("greet", "mine")
    )
    assert "git add becket.yaml .becket &&" in stage.becket("init", "--force", "--no-example", "--no-try").out


def test_doctor_names_what_is_wrong_with_the_mending_command(stage: Stage) -> None:
    (stage.root / "becket.yaml").unlink()
    told = stage.becket("doctor", code=1).out
    assert "ERROR config" in told
    assert "becket init" in told
    found = stage.json("doctor", code=1)
    assert found["ok"] is False
    assert {item["name"] for item in found["diagnoses"]} >= {"python", "git", "config", "sandbox"}
    stage.write("becket.yaml", "version: 1\nbranhc: main\n")
    assert "did you mean `branch`?" in stage.becket("doctor", code=2).out


def test_doctor_is_content_with_a_good_repository_and_makes_no_journal(stage: Stage) -> None:
    stage.write("becket.yaml", 'version: 1\ngates: {fast: [{name: unit, run: "test -f becket.yaml"}]}\n')
    stage.commit("gates")
    assert stage.json("doctor")["errors"] == 0
    assert not (stage.state / "becket.db").exists()


def test_doctor_works_outside_a_repository(tmp_path: Path, stage: Stage) -> None:
    told = stage.becket("-C", str(tmp_path), "doctor", code=1).out
    assert "ERROR repository" in told


def test_lint_points_at_file_line_and_column_with_exit_code_2(stage: Stage) -> None:
    """L45: a typo is an error."""
    stage.write(".becket/loops/bad.yaml", BAD)
    told = stage.becket("loops", "lint", code=2)
    assert ".becket/loops/bad.yaml:13:" in told.out
    found = stage.json("loops", "lint", code=2)
    assert [(item["line"], item["rule"]) for item in found["findings"]] == [(13, found["findings"][0]["rule"])]
    assert found["ok"] is False
    assert stage.becket("loops", "lint", "greet").out == "1 loop without a finding.\n"
    assert ".becket/loops/bad.yaml:13:" in stage.becket("run", "bad", code=2).err
    assert "bad.yaml does not run" in stage.becket("loops", "list").err


def test_a_broken_becket_yaml_is_pointed_at_too(stage: Stage) -> None:
    stage.write("becket.yaml", "version: 1\nautonmy: merge\n")
    assert "becket.yaml:2:1:" in stage.becket("run", "greet", code=2).err
    error = stage.json("runs", "list", code=2)["error"]
    assert error["findings"][0]["line"] == 2


def test_loops_are_listed_and_shown(stage: Stage) -> None:
    listed = stage.json("loops", "list")
    assert [loop["loop_id"] for loop in listed["loops"]] == ["greet"]
    assert listed["loops"][0]["inputs"]["times"]["type"] == "integer"
    assert "loop_id: greet" in stage.becket("loops", "show", "greet").out
    assert stage.json("loops", "show", "greet")["spec"]["deadline"] == "10m"
    assert "known: greet" in stage.becket("loops", "show", "nope", code=2).err


@pytest.mark.parametrize("options", [(), ("--config",)])
def test_the_schema_is_a_json_schema(stage: Stage, options: tuple[str, ...]) -> None:
    schema = json.loads(stage.becket("loops", "schema", *options).out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "version" in schema["properties"]


def test_status_answers_before_anything_was_run(stage: Stage) -> None:
    assert "becket run LOOP" in stage.becket("status").out
    found = stage.json("status")
    assert (found["daemon"], found["counts"], found["configured"]) == (None, {}, True)
    assert not stage.state.exists()


def test_minus_c_works_as_with_git(tmp_path: Path, stage: Stage) -> None:
    assert "\ngreet " in stage.becket("-C", "..", "-C", "repo/.becket", "loops", "list").out
    assert "not inside a git work tree" in stage.becket("-C", str(tmp_path), "loops", "list", code=2).err


def test_debug_shows_the_traceback_that_is_hidden_otherwise(stage: Stage) -> None:
    stage.becket("run", "nope", code=2)
    stage.becket("--debug", "run", "nope", code=2, traceback=True)
    stage.becket("run", "nope", code=2, env={"BECKET_DEBUG": "1"}, traceback=True)


def test_the_demo_heals_a_running_service(stage: Stage, tmp_path: Path) -> None:
    folder, page = tmp_path / "demo", tmp_path / "demo/report.html"
    assert "--report" in stage.becket("demo", "--report", str(tmp_path / "no/where.html"), code=2).err
    told = stage.becket("demo", "--keep", str(folder)).out
    kept = Stage.__new__(Stage)
    kept.root = folder
    newest, first = kept.json("runs", "list")
    assert [(run["loop_id"], run["status"]) for run in (newest, first)] == [("heal", "completed")] * 2
    assert kept.git("status", "--porcelain") == ""
    assert kept.git("log", "-2", "--format=%s").splitlines()[1] == "Convert without slow divisions"
    checks = kept.json("verify", newest["run_id"])["checks"]
    assert all(check["ok"] for check in checks)
    told_lines_are_short_and_true(told, [sha[:8] for sha in kept.git("log", "--format=%H").split()], len(checks))
    assert "celsius * 9 / 5 + 32" in page.read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//|<script|@import""", page.read_text()), "it is self-contained"


def told_lines_are_short_and_true(told: str, shas: list[str], checks: int) -> None:
    """A person's story fits a screen of 24 rows; each commit is named where it has its part."""
    lines = [line for line in told.splitlines() if not line.startswith(("Kept:", "Every step"))]
    assert len(lines) <= 24
    assert max(map(len, lines)) < 80
    new, bad, sound = shas
    for said in (
        f"{sound} is proven by its gates, and the service kettle runs it.",
        f'Somebody commits a bug: {bad} "Convert without slow divisions".',
        f"Becket sees {bad}: gate fast is red, 2 of 4 tests of unit fail:",
        '"I have put the conversion right. All tests pass, trust me."',
        f"main moves from {bad} to {new}.",
        f"The 2 red tests, unchanged, are green at {new}",
        f"At {new} every gate is green: fast (unit) and slow (compiles).",
        f"runs {new}: water boils at 212 F.",
        f"{checks} of {checks} checks hold.",
    ):
        assert said in told
    assert lines[-1] == "Your turn: `becket init` in a repository of your own."


def test_the_demo_leaves_nothing_behind_but_its_report(stage: Stage, tmp_path: Path) -> None:
    """No repository, no daemon, no watchdog, no service (L19, L30); the report is in a folder of the demo's own."""
    place = tmp_path / "tmp"
    place.mkdir()
    told = stage.becket("demo", "--all", env={"TMPDIR": str(place)}).out
    assert "checks hold.\n" in told
    assert "\nreceipts\n" in told
    (own,) = place.iterdir()
    assert own.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in own.iterdir()] == ["report.html"]
    assert f"Every step and its evidence: {own / 'report.html'}\n" in told
    assert not stage.state.exists()
    assert not [line for line in command_lines() if str(place) in line]


def command_lines() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            found.append(str((folder / "cwd").readlink()))
    return found


def test_doctor_sees_locks_that_were_left_behind(stage: Stage) -> None:
    """A killed process of ours leaves its number, a killed git its lock file; each has a command that mends."""
    stage.state.mkdir(exist_ok=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    (stage.state / "engine.lock").write_text(str(gone.pid))
    index_lock = stage.root / ".git" / "index.lock"
    index_lock.touch()
    os.utime(index_lock, (0, 0))
    found = {item["where"]: item for item in stage.json("doctor", code=1)["diagnoses"] if item["name"] == "locks"}
    assert f"process {gone.pid}" in found[str(stage.state / "engine.lock")]["what"]
    assert found[str(index_lock)]["mend"].endswith("index.lock")


def test_doctor_does_not_deny_a_lock_that_is_in_use(stage: Stage) -> None:
    (stage.root / ".git" / "index.lock").touch()
    (found,) = [item for item in stage.json("doctor", code=1)["diagnoses"] if item["name"] == "locks"]
    assert (found["level"], found["what"]) == ("ok", "no lock file has lain for a minute; a younger one is in use")


def test_doctor_says_that_the_database_is_newer_or_unreachable(stage: Stage) -> None:
    stage.becket("run", "greet")
    with contextlib.closing(sqlite3.connect(stage.state / "becket.db")) as database, database:
        database.execute("update alembic_version set version_num = '9999'")
    told = stage.becket("doctor", code=1).out
    assert "9999" in told
    stage.write("becket.yaml", "version: 1\ndatabase: postgresql://nobody@127.0.0.1:9/none\n")
    assert "database" in stage.becket("doctor", code=1).out
    assert "Traceback" not in stage.becket("run", "greet", code=2).err
