"""The doctor names what is wrong with a file by its place, and tells a branch that may still come from a slip."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from becket.kernel.checks import configuration, loops
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.parts.doctor.doctor import facts
from becket.testing.world import make_repository

LOOP = """\
version: 1
loop_id: next
goal: Look at what is coming.
trigger: [{commit: {branch: release/next, unless: completed}}]
max_iterations: 1
deadline: 1h
stop_conditions: [look.pass]
phases:
  verify: {objective: look, verifiers: [{id: look, run: "true"}]}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    make_repository(home)
    return home


def commit(home: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    subprocess.run(["git", "-C", str(home), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(home), *who, "commit", "-qm", "files"], check=True)


def test_becket_yaml_in_another_encoding_is_named_with_its_byte(home: Path) -> None:
    (home / "becket.yaml").write_bytes(b"version: 1\nbranch: main # caf\xe9\n")
    commit(home)
    exam = Exam(facts(home))
    (found,) = configuration.readable(exam)
    assert (found.where, found.what) == ("becket.yaml:2:19", "byte 30 of the file is 0xe9, which is not UTF-8")
    assert list(configuration.committed(exam)) == []


def test_a_committed_file_in_another_encoding_is_not_called_uncommitted(home: Path) -> None:
    (home / "becket.yaml").write_bytes(b"version: 1 # caf\xe9\n")
    commit(home)
    (home / "becket.yaml").write_bytes(b"version: 1\n")
    (found,) = configuration.committed(Exam(facts(home)))
    assert "0xe9" in found.what


def test_a_branch_that_is_not_there_yet_is_told_and_no_error(home: Path) -> None:
    def told() -> list[Diagnosis]:
        return [item for item in loops.lint(Exam(facts(home))) if item.level is not Level.ok]

    place = home / ".becket/loops/next.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(LOOP)
    (home / "becket.yaml").write_text("version: 1\n")
    commit(home)
    (found,) = told()
    assert (found.level, found.where) == (Level.warn, f"{place}:4:29")
    assert "no branch release/next" in found.what
    subprocess.run(["git", "-C", str(home), "branch", "release/next"], check=True)
    assert told() == []


def test_a_branch_of_becket_yaml_that_is_not_there_is_told_and_no_error(home: Path) -> None:
    """`origin/main` may be a branch here, but hardly ever is."""
    (home / "becket.yaml").write_text("version: 1\nbranch: origin/main\n")
    commit(home)
    (found, _) = loops.lint(Exam(facts(home)))
    assert (found.level, found.where) == (Level.warn, "becket.yaml:2:1")
    assert "there is no branch origin/main here yet" in found.what
