"""L21: each cheat is refused by a rule that names it, or is a powerful change; honest work is refused by nothing."""

from __future__ import annotations

import pytest
from guard_base import BASE
from guard_cheats_around import FRESH_SETTINGS, FRESH_SOURCE
from guard_cheats_compiled import GOLANG, JVM, RUSTY
from guard_cheats_fresh import FRESH_TESTS
from guard_cheats_python import PYTHON
from guard_cheats_tree import TREE
from guard_cheats_web import NODE
from guard_honest import HONEST as FIRST_HONEST
from guard_honest_fresh import FRESH_HONEST
from guard_second import SECOND_CHEATS, SECOND_HONEST
from guard_stage import TEST_SIDE, Deed, judged, rules_in

from becket.kernel.contract.guard import Change, ChangeClass
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.side import TestSide

CHEATS = (
    *(*PYTHON, *GOLANG, *NODE, *RUSTY, *JVM, *TREE),
    *(*FRESH_TESTS, *FRESH_SETTINGS, *FRESH_SOURCE, *SECOND_CHEATS),
)
ASKED = {
    "build script of node",
    "make target that tests nothing",
    "comment in the makefile",
    "fresh: node script and dependency",
    "fresh: make variable and target that test nothing",
    "second: makefile help text",
}
"""Honest, and in the very file that a gate's command obeys: a person says so."""
HONEST = (*FIRST_HONEST, *FRESH_HONEST, *SECOND_HONEST)


@pytest.mark.parametrize("deed", HONEST, ids=lambda deed: deed.name)
def test_honest_work_passes(deed: Deed) -> None:
    change = deed.change(BASE)
    assert change.files
    refusals = judged(change)
    if deed.name in ASKED:
        assert {(str(refusal.rule), refusal.asks) for refusal in refusals} == {("gate-definition", True)}
    else:
        assert [str(refusal) for refusal in refusals] == []


@pytest.mark.parametrize("deed", CHEATS, ids=lambda deed: deed.name)
def test_a_cheat_is_refused_by_name_or_powerful(deed: Deed) -> None:
    change = deed.change(BASE)
    assert change.files
    refusals = judged(change)
    assert _held(deed, change), f"{[str(refusal) for refusal in refusals]}"
    changed = {path for file in change.files for path in (file.path, file.old_path)}
    for refusal in refusals:
        assert refusal.path in changed
        assert refusal.message
        assert "identifier:" not in refusal.message, "a syntax tree is nothing to read"
        assert refusal.fix
        assert refusal.line >= 0


def test_the_tables_are_large_and_name_each_deed_once() -> None:
    """The bar: at least 60 of each, over five languages."""
    assert len(HONEST) >= 230
    assert len(CHEATS) >= 480
    names = [deed.name for deed in (*HONEST, *CHEATS)]
    assert len(set(names)) == len(names)


def test_a_cheat_beside_honest_work_is_still_seen() -> None:
    """Every cheat together with a large honest change."""
    crowd = next(deed for deed in HONEST if deed.name == "py: a fix over twelve files")
    for deed in CHEATS:
        if deed.name in {"a third of the source deleted", "half the tree deleted"}:
            continue
        both = Deed(deed.name, (*crowd.edits, *deed.edits), deed.rules, deed.renames)
        assert _held(deed, both.change(BASE)), deed.name


def _held(deed: Deed, change: Change) -> bool:
    powerful = classify(change, TestSide(TEST_SIDE)).kind is ChangeClass.powerful
    return powerful or bool(rules_in(judged(change)) & deed.rules)
