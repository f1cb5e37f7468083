"""Conditions: how they are written, how the values of a group replace each other, and what outlives an iteration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.condition import (
    RUNTIME_CONDITIONS,
    RUNTIME_HANDOFFS,
    Condition,
    ConditionGroup,
    Conditions,
    Lifetime,
    ref,
    split_ref,
)

GATE = ("fast_green", "fast_red", "fast_undecided")


@pytest.mark.parametrize(
    ("text", "parts"), [("no_progress", ("run", "no_progress")), ("base.fast_red", ("base", "fast_red"))]
)
def test_a_reference_names_an_object_or_means_the_run(text: str, parts: tuple[str, str]) -> None:
    assert split_ref(text) == parts
    assert ref(*parts) == text


def test_a_value_replaces_the_others_of_its_group_and_of_its_object_only() -> None:
    before = Conditions(
        (
            Condition(object="base", name="fast_red", group=GATE),
            Condition(object="candidate", name="fast_red", group=GATE),
            Condition(object="base", name="slow_red"),
        )
    )
    after = before.raised((Condition(object="base", name="fast_green", group=GATE),))
    assert {item.ref for item in after} == {"base.fast_green", "base.slow_red", "candidate.fast_red"}
    assert before.has("base.fast_red")
    assert "base.fast_red" not in after
    assert after.get("base.fast_red") is None


def test_raising_the_same_condition_again_keeps_the_newer_evidence() -> None:
    once = Conditions((Condition(name="woken", evidence={"by": "clock"}),))
    again = once.raised((Condition(name="woken", evidence={"by": "approval"}),))
    assert len(again) == 1
    found = again.get("woken")
    assert found is not None
    assert found.evidence == {"by": "approval"}


def test_only_what_lives_for_the_run_survives_the_iteration() -> None:
    raised = Conditions((Condition(name="once"), Condition(name="kept", life=Lifetime.run)))
    assert [item.ref for item in raised.next_iteration()] == ["kept"]


@given(st.lists(st.sampled_from(GATE), min_size=1, max_size=8))
@settings(deadline=None)
def test_of_a_group_only_the_last_raised_value_is_there(names: list[str]) -> None:
    raised = Conditions()
    for name in names:
        raised = raised.raised((Condition(object="base", name=name, group=GATE),))
    assert [item.name for item in raised] == [names[-1]]


def test_a_group_knows_how_its_conditions_are_written() -> None:
    assert ConditionGroup(object="base", names=("red",)).refs == ("base.red",)
    assert ConditionGroup(names=("red",)).refs == ("red",)


def test_the_runtime_has_no_condition_that_is_also_a_handoff() -> None:
    assert not set(RUNTIME_CONDITIONS) & set(RUNTIME_HANDOFFS)
