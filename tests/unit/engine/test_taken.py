"""Parameters that are what earlier steps made, and outputs that are kept without being listed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import pytest

from becket.kernel.contract.action import ActionContext, ActionDef, Registry, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.made import takes
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.spec.lint import lint_text
from becket.testing.world import World

LOOP = """
version: 1
loop_id: makes
goal: Something is made.
trigger: [{manual: {}}]
max_iterations: 1
deadline: 1h
stop_conditions: [there.pass]
phases:
  act:
    objective: Make and take.
    actions:
      ACTIONS
  verify:
    objective: It is there.
    verifiers: [{id: there, run: "true"}]
"""
MAKES = "{id: first, uses: test.make, with: {of: tree, text: one}}"
AGAIN = "{id: second, uses: test.make, with: {of: tree, text: two}}"
OTHER = "{id: third, uses: test.make, with: {of: house, text: three}}"


class MakeParams(Record):
    of: str = "tree"
    text: str


class TakeParams(Record):
    of: str = "tree"
    last: Annotated[str, takes("{of}.text")]
    every: Annotated[tuple[str, ...], takes("tree.text", "house.text", each=True)] = ()
    maybe: Annotated[str, takes("cellar.text")] = "nobody's"


class CountParams(Record):
    before: Annotated[int, takes("count.number")] = 0


async def make(context: ActionContext, params: MakeParams) -> Result:
    return Result(outputs={"text": params.text})


async def take(context: ActionContext, params: TakeParams) -> Result:
    return Result(outputs={"took": params.model_dump(mode="json")})


async def count(context: ActionContext, params: CountParams) -> Result:
    """Until three; an iteration that it asks for is none of the run's own."""
    number = params.before + 1
    name = "enough" if number == 3 else "more"
    return Result(outputs={"number": number, "own": number}, conditions=(Condition(name=name, group=COUNTED),))


COUNTED = ("more", "enough")
ACTIONS = (
    ActionDef("test.make", "makes a text", make, MakeParams, outputs=("text",), about="{of}"),
    ActionDef("test.take", "takes texts", take, TakeParams, outputs=("took",)),
    ActionDef(
        "test.count", "counts", count, CountParams, (ConditionGroup(names=COUNTED, uncounted=("more",)),),
        outputs=("number", "own"), keeps=("number",), about="count",
    ),
)  # fmt: skip
REGISTRY = Registry(actions={action.name: action for action in ACTIONS})


def text(*actions: str) -> str:
    return LOOP.replace("ACTIONS", "\n      ".join(f"- {action}" for action in actions))


def ran(folder: Path, loop: str) -> tuple[Run, dict[str, dict[str, Json]], World]:
    world = World(folder)
    world.action(*ACTIONS)
    world.loop(loop)
    world.commit()

    async def story() -> tuple[Run, dict[str, dict[str, Json]], World]:
        run = await world.run("makes")
        return run, {step.id: dict(step.outputs) for step in await world.store.steps(run.run_id)}, world

    return asyncio.run(story())


def took(folder: Path, *actions: str) -> dict[str, Json]:
    run, made, _ = ran(folder, text(*actions))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    return dict(made["take"]["took"])


def test_a_parameter_that_is_left_out_is_what_was_made_of_its_kind(tmp_path: Path) -> None:
    assert took(tmp_path, MAKES, AGAIN, OTHER, "{id: take, uses: test.take}") == {
        "of": "tree", "last": "two", "every": ["one", "two", "three"], "maybe": "nobody's",
    }  # fmt: skip


def test_the_steps_own_object_says_of_which_kind(tmp_path: Path) -> None:
    assert took(tmp_path, MAKES, OTHER, "{id: take, uses: test.take, with: {of: house}}")["last"] == "three"


def test_what_the_loop_says_outright_counts(tmp_path: Path) -> None:
    given = took(tmp_path, MAKES, '{id: take, uses: test.take, with: {last: "{first.text} more", every: []}}')
    assert (given["last"], given["every"]) == ("one more", [])


def test_what_nobody_made_is_missing_where_the_step_cannot_do_without(tmp_path: Path) -> None:
    left_out = MAKES.replace("}}", "}, when: dry_run}")
    run, _, world = ran(tmp_path, text(left_out, "{id: take, uses: test.take}"))
    (step,) = [step for step in asyncio.run(world.store.steps(run.run_id)) if step.id == "take"]
    assert (step.error_kind, run.status) == ("no_output", RunStatus.ready_for_handoff)
    assert "`last` is missing, as no step made `tree.text`" in step.error


def test_what_an_action_keeps_reaches_later_iterations_and_they_need_not_count(tmp_path: Path) -> None:
    loop = text("{id: count, uses: test.count}").replace("[there.pass]", "[enough, there.pass]")
    run, made, _ = ran(tmp_path, loop)
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert (made["count"]["number"], run.iteration, run.counted) == (3, 3, 1)


@pytest.mark.parametrize(
    ("actions", "rules"),
    [
        ([MAKES, "{id: take, uses: test.take}"], []),
        (['{id: take, uses: test.take, with: {last: "given"}}'], []),
        (["{id: take, uses: test.take}"], ["missing-parameter"]),
        (["{id: take, uses: test.take}", MAKES], ["missing-parameter"]),
        ([OTHER, "{id: take, uses: test.take}"], ["missing-parameter"]),
        ([OTHER, "{id: take, uses: test.take, with: {of: house}}"], []),
        (["{id: count, uses: test.count}"], []),
    ],
)
def test_lint_proves_that_it_is_made_before(actions: list[str], rules: list[str]) -> None:
    found = lint_text(text(*actions), "makes.yaml", REGISTRY)[1]
    assert [finding.rule for finding in found] == rules
    assert all("no step before this one makes `tree.text`" in finding.message for finding in found)


def test_lint_knows_what_is_kept() -> None:
    later = ["{id: use, run: 'echo \"{count.KIND}\"'}", "{id: count, uses: test.count}"]
    kinds = {"number": [], "own": ["output-used-before-made"]}
    for kind, rules in kinds.items():
        found = lint_text(text(*later).replace("KIND", kind), "makes.yaml", REGISTRY)[1]
        assert [finding.rule for finding in found] == rules
