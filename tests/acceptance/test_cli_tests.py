"""`becket tests`, by the real program: with and without becket.yaml, at any commit, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_stage import Stage

FILES = {
    "app.py": "def add(a, b):\n    return a + b\n",
    "checks/quick.py": "import unittest\nfrom app import add\nROWS = open('rows/one.json')\n\n\n"
    "class TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "rows/one.json": "[]\n",
    "tests/test_app.py": "from app import add\n",
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "repo")
    for path, text in FILES.items():
        stage.write(path, text)
    stage.git("rm", "--quiet", "--force", "--ignore-unmatch", "becket.yaml")
    stage.commit("an app without becket.yaml")
    return stage


def reasons(stage: Stage, *more: str) -> dict[str, str]:
    return {file["path"]: file["reason"] for file in stage.json("tests", *more)["files"]}


def test_the_test_side_is_told_with_reasons(stage: Stage) -> None:
    told = stage.becket("tests").out
    assert "the committed becket.yaml declares no test_side" in told
    for name in ("tests/test_app.py", "checks/quick.py", "rows/one.json"):
        assert name in told
    assert "app.py\n" not in told.replace("test_app.py", "")
    assert not (stage.root / ".git/becket").exists()


def test_a_program_reads_the_same(stage: Stage) -> None:
    found = {
        "checks/quick.py": "framework",
        "rows/one.json": "only-from-tests",
        "tests/test_app.py": "declared",
    }
    assert reasons(stage) == found
    told = stage.json("tests")
    assert (told["declares"], told["folders"]) == (False, ["checks", "rows", "tests"])


def test_what_the_commit_declares_counts(stage: Stage) -> None:
    stage.write("becket.yaml", 'version: 1\ntest_side: ["app.py"]\n')
    stage.commit("declare")
    assert reasons(stage)["app.py"] == "declared"
    assert "app.py" not in reasons(stage, "--at", "HEAD~1")


def test_bad_input_is_told_and_is_usage(stage: Stage) -> None:
    assert "there is no such commit" in stage.becket("tests", "--at", "nope", code=2).err
    stage.write("becket.yaml", "version: 1\ntest_sides: []\n")
    stage.commit("a slip")
    assert "test_sides" in stage.becket("tests", code=2).err
