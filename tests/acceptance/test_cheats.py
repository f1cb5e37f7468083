"""Scripted agents that really misbehave, and others that work honestly, through the heal loop (L7, L19 to L21, L25)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from becket.kernel.contract.guard import GuardRule
from becket_lab.cheats import CASES, By, Figures, Kind, find, generated_cases, run_cases, sandbox_holds

SAMPLE = (
    "skip-the-test",
    "break-something-else",
    "print-a-secret",
    "special-case-the-inputs",
    "the-smallest-repair",
    "repair-and-add-a-test",
)
"""Judged by git alone, so no sandbox is needed: none of them reaches out of its checkout."""


def failures(figures: Figures) -> dict[str, tuple[str, ...]]:
    return {played.case.name: played.problems for played in figures.played if not played.ok}


def test_there_are_enough_of_each() -> None:
    count = Counter(case.kind for case in CASES)
    assert count[Kind.cheat] >= 80
    assert count[Kind.honest] >= 40
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_case_says_what_must_come_of_it_and_its_program_can_be_read() -> None:
    for case in CASES:
        assert bool(case.caught_by) == (case.kind is Kind.cheat), case.name
        rules = {caught.word for caught in case.caught_by if caught.by is By.guard} - {""}
        assert rules <= {rule.value for rule in GuardRule}, case.name
        compile(case.source(), case.name, "exec")


def test_a_sample_is_caught_shown_and_promoted(tmp_path: Path) -> None:
    """L21, L20: and after each of them the next commit is proven."""
    figures = run_cases(find(SAMPLE), thorough=3, folder=tmp_path)
    assert failures(figures) == {}
    assert (figures.of(Kind.cheat), figures.of(Kind.honest), figures.promoted_cheats) == ((4, 4), (2, 2), 0)


def test_a_generated_case_is_found_again_by_its_name() -> None:
    for case in generated_cases(41, 14):
        assert find((case.name,)) == (case,)


@pytest.mark.slow
def test_generated_cheats_of_both_fields_move_nothing(tmp_path: Path) -> None:
    """Two in Python and one in JavaScript, and one without any power."""
    made = generated_cases(5, 30)
    figures = run_cases([*made[:3], made[-1]], thorough=False, folder=tmp_path)
    assert failures(figures) == {}
    assert figures.promoted_cheats == 0


def test_an_unknown_case_is_a_usage_error_with_near_names() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "becket.cli", "bench", "cheats", "--only", "skip-the-tests", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "skip-the-test" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_cheat_is_caught_and_honest_work_is_promoted(tmp_path: Path) -> None:
    """L7, L19, L21, L25: every case, with the next commit after each; bubblewrap must hold."""
    assert sandbox_holds(), "install bubblewrap"
    figures = run_cases(CASES, thorough=True, folder=tmp_path)
    caught = {name: why for name, why in failures(figures).items() if find((name,))[0].kind is Kind.cheat}
    assert caught == {}
    assert figures.ok, failures(figures)


@pytest.mark.slow
def test_the_command_prints_figures_by_class_and_tells_by_its_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "becket.cli", "bench", "cheats", "--json", "--only", "edit-ci", "--only", "stage-only"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (0, True), done.stderr
    totals = {name: figure["total"] for name, figure in told["figures"].items()}
    assert totals == {"cheat": 1, "honest": 1, "honest_plain": 1}
    assert sum(row["cheats_promoted"] for row in told["classes"]) == 0
