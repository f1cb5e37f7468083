"""Which languages hold-out checks have, and by which program they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.parts.heal.holdouts.languages import LANGUAGES, language_of, program_of, spoken

BY_NAME = {language.name: language for language in LANGUAGES}


@pytest.mark.parametrize(
    ("tests", "product", "names"),
    [
        (["tests/test_a.py"], ["web/a.js"] * 9, ["Python"]),
        (["tests/test_a.py", "web/a.test.mjs", "tests/test_b.py"], [], ["Python", "JavaScript"]),
        ([], ["a.go", "b.go", "go.mod", "README.md", "x.py"], ["Go"]),
        (["a.spec.ts"], [], ["TypeScript"]),
    ],
)
def test_the_failing_tests_say_the_language_else_the_product(
    tests: list[str], product: list[str], names: list[str]
) -> None:
    found, why = spoken(tests, product)
    assert [language.name for language in found] == names
    assert why == ""


@pytest.mark.parametrize(
    ("tests", "product", "named"),
    [(["tests/it.rs"], ["a.py"], "Rust"), ([], ["src/A.java"] * 2, "Java"), ([], ["notes.txt"], "it"), ([], [], "it")],
)
def test_a_language_without_checks_is_named(tests: list[str], product: list[str], named: str) -> None:
    found, why = spoken(tests, product)
    assert found == ()
    assert why.startswith(f"hold-out checks are not supported for {named}, only for Python")


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (".venv/bin/python -m pytest -q", ".venv/bin/python"),
        ("PYTHONPATH=src python3 -m pytest", "python3"),
        (".venv/bin/pytest --junitxml=r.xml", ".venv/bin/python3"),
        ("other/bin/pytest", ".venv/bin/python3"),
        ('"$PWD/.venv/bin/python" -m pytest', ".venv/bin/python3"),
        ("an 'unclosed quote", ".venv/bin/python3"),
    ],
)
def test_the_program_is_the_one_that_the_gate_uses(tmp_path: Path, command: str, program: str) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python3").touch()
    assert program_of(BY_NAME["Python"], [command], tmp_path) == program


def test_without_anything_better_it_is_the_one_on_path(tmp_path: Path) -> None:
    assert program_of(BY_NAME["Python"], ["make test"], tmp_path) == "python3"
    assert program_of(BY_NAME["Go"], [], tmp_path) == "go"


def test_every_ending_belongs_to_one_language() -> None:
    endings = [ending for language in LANGUAGES for ending in language.endings]
    assert len(set(endings)) == len(endings)
    assert language_of("check_1.mjs") is BY_NAME["JavaScript"]
    assert language_of("check_1.rs") is None
