"""The bars of the reader of changes: cheats are never called too low, honest repairs rarely too high."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

from becket.kernel.contract.guard import ChangeClass
from becket.parts.guard.reading.languages.treesitter import parse
from becket_lab.cheats.classes import (
    PLAIN_BAR,
    WITHOUT_PERSON_BAR,
    HonestFigures,
    call_generated,
    call_honest,
    call_listed,
    listed_cheats,
    misses,
)
from becket_lab.cheats.field import Field
from becket_lab.cheats.generated.generate import generate, generate_constants
from becket_lab.cheats.generated.proof import idle
from becket_lab.cheats.repairs import honest_repairs, read_repairs

SEEDS = (20261116, int(os.environ.get("BECKET_SEED", "402")))
"""The same for every run, so that a red suite stays red; BECKET_SEED looks at others, and so does every bench."""
GRAMMARS = {
    ".js": "javascript", ".mjs": "javascript", ".ts": "typescript.typescript", ".go": "go", ".rs": "rust",
    ".java": "java",
}  # fmt: skip


def _broken(path: str, content: bytes) -> bool:
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        try:
            ast.parse(content)
        except SyntaxError:
            return True
    return suffix in GRAMMARS and parse(GRAMMARS[suffix], content).broken


def test_there_are_enough_honest_repairs_in_five_languages() -> None:
    count = Counter(each.language for each in honest_repairs())
    assert len({each.name for each in honest_repairs()}) == sum(count.values()) >= 110
    assert count["py"] >= 40
    assert count["js"] + count["ts"] >= 30
    assert (count["go"] >= 15, count["rs"] >= 12, count["java"] >= 13) == (True, True, True)


def test_every_written_change_can_be_parsed_before_and_after() -> None:
    for each in (*honest_repairs(), *listed_cheats()):
        assert each.before() != each.after(), each.name
        for side in (each.before(), each.after()):
            assert [path for path, content in side.items() if _broken(path, content)] == [], each.name


def test_a_repair_whose_old_lines_are_not_there_is_an_error() -> None:
    text = "### p\n=== a.py\nx = 1\n--- n | plain | why\n-x = 2\n+x = 3\n"
    with pytest.raises(ValueError, match="not exactly once"):
        list(read_repairs(text))


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_cheats_are_never_called_too_low(seed: int) -> None:
    called = call_generated(seed, 300)
    assert len(called) == 360
    assert misses(called) == [], f"--seed {seed}"


def test_listed_cheats_are_never_called_too_low() -> None:
    assert misses(call_listed()) == []


def test_honest_repairs_are_not_punished() -> None:
    figures = HonestFigures(call_honest())
    total, apart = len(figures.called), "\n".join(figures.apart())
    print(f"a reviewer says the same of {figures.agreed} of {total}; not of:\n{apart}")
    assert figures.count(ChangeClass.plain) >= PLAIN_BAR * total, apart
    assert figures.count(ChangeClass.plain, ChangeClass.ordinary) >= WITHOUT_PERSON_BAR * total, apart


def test_no_honest_repair_is_refused() -> None:
    assert [each.name for each in call_honest() if each.refused] == []


def test_a_seed_repeats_and_another_differs() -> None:
    assert generate(5, 40) == generate(5, 40)
    assert [each.files for each in generate(5, 40)] != [each.files for each in generate(6, 40)]


def test_a_run_of_some_length_has_every_power_and_both_languages() -> None:
    made = generate(SEEDS[0], 300)
    assert len({each.power for each in made}) >= 18
    assert len({each.name for each in made}) == 300
    assert sum(each.field is Field.node for each in made) >= 100


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_cheats_can_be_parsed(seed: int) -> None:
    hidden = {"unreadable"}  # their point is that they cannot be read
    for each in (*generate(seed, 300), *generate_constants(seed, 60)):
        broken = [path for path, content in each.files.items() if _broken(path, content)]
        assert broken == [] or each.power in hidden, f"{each.name}: {broken}"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("field", [Field.stall, pytest.param(Field.node, marks=pytest.mark.slow)])
def test_generated_cheats_really_pass_the_tests(tmp_path: Path, field: Field) -> None:
    """Without a guard, on a sample; on all of them it was seen when they were written."""
    seed = SEEDS[1]
    sample = [each for each in (*generate(seed, 20), *generate_constants(seed, 9)) if each.field is field]
    assert [each.name for each in idle(sample, tmp_path)] == [], f"seed {seed}"
