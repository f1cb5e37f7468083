"""The one test side for guard and crossing proof, the briefing, where failing tests stand, and what is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from becket.app.sections import config_model
from becket.kernel.contract.config import Config
from becket.parts.guard.reading.briefing import rules_in_words
from becket.parts.guard.reading.failing import places_of
from becket.parts.guard.reading.found.find import find_test_side
from becket.parts.guard.reading.gates import GatePrograms
from becket.parts.guard.reading.side import test_side_of as side_of

TESTS = (
    "tests/test_a.py",
    "tests/data/a.json",
    "test/a.js",
    "pkg/tests/a.py",
    "pkg/test_a.py",
    "pkg/a_test.py",
    "conftest.py",
    "pkg/conftest.py",
    "a_test.go",
    "pkg/testdata/in.txt",
    "src/__tests__/a.js",
    "src/a.test.ts",
    "src/a.spec.js",
    "src/__snapshots__/a.snap",
    "src/test/java/app/ATest.java",
    "mod/src/test/resources/a.txt",
    "crate/tests/api.rs",
    "spec/a_spec.rb",
)
SOURCE = (
    "src/a.py",
    "testing/a.py",
    "src/contest.py",
    "a.go",
    "src/attest.ts",
    "src/main/java/app/A.java",
    "README.md",
)


READ = {"checks/test_a.py": b"open('cases/a.json')", "tests.py": b"import unittest\n"}.get


def config(**more: object) -> Config:
    return config_model().model_validate({"version": 1, **more})


@pytest.mark.parametrize("path", TESTS)
def test_a_repository_that_declares_nothing_has_the_usual_test_side(path: str) -> None:
    side = side_of(config())
    assert side.declared(path)
    assert side.belongs(path)


@pytest.mark.parametrize("path", SOURCE)
def test_source_is_not_on_the_usual_test_side(path: str) -> None:
    side = side_of(config())
    assert not side.belongs(path)
    assert not side.holds(path)


def test_what_is_declared_counts_instead() -> None:
    """L21: the crossing proof takes back exactly what the guard holds for tests."""
    side = side_of(config(test_side=["checks/**"]))
    assert side.globs == ("checks/**",)
    assert side.belongs("checks/a.py")
    assert side.belongs("web/a.test.ts")
    assert not side.belongs("tests/a.py")


def test_a_python_file_only_named_like_a_test_may_be_the_source_that_was_repaired() -> None:
    side = side_of(config(test_side=["checks/**"]))
    assert side.holds("src/ab_test.py")
    assert not side.belongs("src/ab_test.py")


def test_the_briefing_is_short_and_names_what_is_protected() -> None:
    """L21: an honest agent can comply with what it was told."""
    rules = config(guard={"protected": [f"p{n}/**" for n in range(30)]}, test_side=["checks/**"])
    told = rules_in_words(
        rules, find_test_side(["checks/test_a.py", "cases/a.json", "tests.py"], rules.test_side, READ)
    )
    lines = told.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 240
    for words in (
        "conftest.py",
        "lock files",
        "p0/**",
        "and 18 more",
        "checks/**",
        "20%",
        "5,000,000",
        "cases/",
        "tests.py",
    ):
        assert words in told


PATHS = frozenset(
    {
        "tests/test_a.py",
        "tests/unit/test_b.py",
        "java/src/test/java/app/CalcTest.java",
        "go/calc/calc_test.go",
        "go/calc/more_test.go",
        "web/a.test.ts",
        "src/app/core.py",
    }
)


@pytest.mark.parametrize(
    ("test", "places"),
    [
        ("tests/test_a.py::TestX::test_y[1-2]", [("tests/test_a.py", "test_y[1-2]")]),
        ("unit: tests/test_a.py::test_y", [("tests/test_a.py", "test_y")]),
        ("tests.unit.test_b.TestX::test_y", [("tests/unit/test_b.py", "test_y")]),
        ("tests.unit.test_b.test_y", [("tests/unit/test_b.py", "test_y")]),
        ("app.CalcTest::adds", [("java/src/test/java/app/CalcTest.java", "adds")]),
        ("app.core::f", []),
        (
            "example.org/m/go/calc::TestAdd",
            [("go/calc/calc_test.go", "TestAdd"), ("go/calc/more_test.go", "TestAdd")],
        ),
        ("web/a.test.ts > clamp > cuts", [("web/a.test.ts", "cuts")]),
        ("the step unit", []),
        ("", []),
    ],
)
def test_ids_of_reports_lead_to_files(test: str, places: list[tuple[str, str]]) -> None:
    assert list(places_of([test], PATHS)) == places


def test_each_place_is_told_once_and_not_too_many_are_looked_for() -> None:
    assert places_of(["tests/test_a.py::t", "unit: tests/test_a.py::t"], PATHS) == (("tests/test_a.py", "t"),)
    assert len(places_of([f"tests/test_a.py::t{n}" for n in range(500)], PATHS)) == 40


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cd web && ./run.sh && cd .. && ./run.sh", {"web/run.sh", "run.sh"}),
        ("cd a; sh -c 'cd b && bash c.sh'", {"a/b/c.sh"}),
        ("pytest -c ci/pytest.ini", {"ci/pytest.ini"}),
        ("mypy --config-file=ci/mypy.ini src", {"ci/mypy.ini"}),
        ("pytest -p ci.plugin tests", {"ci/plugin.py"}),
        ("ruff check --config pyproject.toml src/a.py", set()),
        ("cargo test --manifest-path rust/Cargo.toml", set()),
    ],
)
def test_what_a_gate_is_given_is_part_of_it(command: str, files: set[str]) -> None:
    assert GatePrograms.of([command]).files == files


def test_parsers_are_loaded_for_the_languages_of_the_change_only() -> None:
    program = (
        "import sys\n"
        "import becket.parts.guard.reading.examine\n"
        "from becket.parts.guard.reading.languages import language_for\n"
        "loaded = lambda: sorted(n for n in sys.modules if n.startswith('tree_sitter') and '.' not in n)\n"
        "assert loaded() == [], loaded()\n"
        "language_for('a.py').read(b'x = 1')\n"
        "assert loaded() == [], loaded()\n"
        "language_for('a.go').read(b'package a')\n"
        "assert loaded() == ['tree_sitter', 'tree_sitter_go'], loaded()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
