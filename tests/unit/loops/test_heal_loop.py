"""The heal loop as a text: it says what happens, and lint proves what it leaves to its actions."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from becket.kernel.contract.action import Registry
from becket.kernel.contract.made import object_of, taken
from becket.kernel.spec.lint import lint_text
from becket.testing.world import World

TEXT = (files("becket.parts.heal") / "loop.yaml").read_text("utf-8")
STORED = (Path(__file__).parents[2] / "specs" / "stored" / "heal.yaml").read_text("utf-8")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return World(tmp_path_factory.mktemp("world")).app.registry


def test_it_needs_no_wiring_and_keeps_all_that_its_older_text_kept(registry: Registry) -> None:
    (spec, found), (older, of_older) = (lint_text(text, "heal.yaml", registry) for text in (TEXT, STORED))
    assert spec is not None
    assert older is not None
    assert [*found, *of_older] == []
    assert not any(phase.persist_outputs for phase in spec.phases.values())
    assert registry.kept(older) == registry.kept(spec)


RENAMED = {"refs_moved_by_nobody": "refs_moved_only_by_people"}
SINCE = {"push": "promoted and not branch_not_watched"}
"""What is asked of a step besides, since then."""
INPUTS_SINCE = {"changes"}
"""Nobody has to give them."""


def test_the_steps_and_their_conditions_are_those_of_its_older_text(registry: Registry) -> None:
    """People know the steps by these names, and journals name them."""
    (spec, _), (older, _) = (lint_text(text, "heal.yaml", registry) for text in (TEXT, STORED))
    assert spec is not None
    assert older is not None
    for phase, declared in older.phases.items():
        steps = (*spec.phase(phase).actions, *spec.phase(phase).verifiers)
        before = (*declared.actions, *declared.verifiers)
        now = [(one.id, RENAMED.get(one.uses or "", one.uses), SINCE.get(one.id, one.when)) for one in before]
        assert [(one.id, one.uses, one.when) for one in steps] == now
    same = {"phases", "state_refs", "inputs"}  # what it depends on stands where it always stood
    assert spec.model_dump(exclude=same) == older.model_dump(exclude=same)
    assert {name: one for name, one in spec.inputs.items() if name not in INPUTS_SINCE} == older.inputs
    assert all(spec.inputs[name].optional or spec.inputs[name].default == "" for name in INPUTS_SINCE)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("- candidate.fast_green\n", "- candidate.fast_gren\n", "unknown-condition"),
        ("- candidate.fast_green\n", "- candidate.fast_green or\n", "bad-parameter"),
        ("- {id: base, uses: git.read_base, with: {follow: true}}", "- {id: base, run: 'true'}", "missing-parameter"),
        ("- {id: settle, uses: heal.settle,", "- {id: settle, run: 'true',", "missing-parameter"),
    ],
)
def test_lint_sees_what_its_actions_would_lack(registry: Registry, old: str, new: str, rule: str) -> None:
    assert TEXT.count(old) == 1
    found = lint_text(TEXT.replace(old, new), "heal.yaml", registry)[1]
    assert rule in {finding.rule for finding in found}


def test_whatever_a_parameter_takes_some_action_makes(registry: Registry) -> None:
    made = {
        f"{object_of(one.about, one.params, {'of': of})}.{name}"
        for one in registry.actions.values() if one.about
        for of in ("base", "candidate") for name in one.outputs
    }  # fmt: skip
    wanted = {
        kind
        for one in (*registry.actions.values(), *registry.verifiers.values())
        for _, _, mark in taken(one.params, {}) for kind in mark.kinds
    }  # fmt: skip
    assert wanted
    assert wanted <= made
