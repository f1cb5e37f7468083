"""Parents and children: a run that answers for a subject works for everybody who asked for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.run import NewRun, Run, RunStatus, Step, Subject
from becket.kernel.contract.store import RunFilter
from becket.testing.people import person
from becket.testing.world import World

EXAMPLES = Path(__file__).parents[2] / "examples" / "loops"

PARENT = """
version: 1
loop_id: NAME
goal: The child has ended well.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 2h
stop_conditions: [children.completed]
handoff_conditions: [children.unfinished]
wait_conditions:
  children.pending: {wake: child, for: 1h}
phases:
  act:
    objective: Start it.
    actions:
      - START
      - {id: stand, uses: run.gather}
  verify:
    objective: It ended.
    verifiers: [{id: ended, uses: children_ended, when: not children.pending}]
"""

LEAF = """
version: 1
loop_id: leaf
goal: A person said yes.
trigger: [{manual: {}}]
subject: "leaf/{start}"
max_iterations: 3
deadline: 2h
stop_conditions: [approval.approved]
handoff_conditions: [approval.denied]
wait_conditions:
  approval.asked: {wake: approval, for: 1h}
phases:
  plan:
    objective: Ask.
    actions: [{id: ask, uses: approval.ask, with: {question: "Well?", about: "this"}}]
  verify:
    objective: Somebody answered.
    verifiers: [{id: look, run: "true", in: scratch}]
"""


@pytest.fixture(params=["memory", "sqlite"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(tmp_path, store=request.param)


def parent(name: str, start: str = '{id: child, uses: run.start, with: {loop: leaf, subject: "leaf/one"}}') -> str:
    return PARENT.replace("NAME", name).replace("START", start)


async def steps(world: World, run: Run) -> dict[str, Step]:
    """The last iteration's, by id."""
    return {step.id: step for step in await world.store.steps(run.run_id)}


def test_sweep_run_twice_on_one_commit_is_completed_by_the_same_children(world: World) -> None:
    """The second one finds everything measured: that is success, and not a lack of progress."""
    for example in EXAMPLES.glob("*.yaml"):
        world.write(f".becket/loops/{example.name}", example.read_text())
    world.commit({"docs/a.md": "a\n", "src/one.txt": "1\n2\n"})

    async def story() -> None:
        first = await world.run("sweep")
        second = await world.run("sweep")
        assert first.run_id != second.run_id
        measured = []
        for run in (first, second):
            assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")
            children = await world.store.list_runs(RunFilter(parent=run.run_id))
            measured.append({child.run_id for child in children})
        assert measured[0] == measured[1]
        assert len(measured[0]) == 2

    asyncio.run(story())


@pytest.mark.parametrize(("approve", "ends"), [(True, RunStatus.completed), (False, RunStatus.ready_for_handoff)])
def test_a_second_parent_that_finds_the_child_at_work_wakes_with_the_first(
    world: World, approve: bool, ends: RunStatus
) -> None:
    world.loop(LEAF)
    world.loop(parent("first"))
    world.loop(parent("second"))

    async def story() -> None:
        parents = [await world.run(name) for name in ("first", "second")]
        assert [run.status for run in parents] == [RunStatus.waiting, RunStatus.waiting]
        (leaf,) = await world.store.list_runs(RunFilter(loop_id="leaf"))
        assert leaf.parent == parents[0].run_id
        (asked,) = await world.store.approvals(leaf.run_id)
        await world.store.decide_approval(asked.approval_id, approve, person("owner"), asked.bound_to, "")
        await world.settle()
        for run in parents:
            now = await world.store.get_run(run.run_id)
            assert now.status is ends
            assert (await steps(world, now))["stand"].outputs["outcomes"] == {leaf.run_id: ends.value}

    asyncio.run(story())


def test_a_run_that_asks_for_itself_is_told_so_and_does_not_wait_for_ever(world: World) -> None:
    """Directly, and by way of another: `outer` starts `inner`, and `inner` asks for the run of `outer`."""
    world.loop(
        parent(
            "itself", '{id: child, uses: run.start, with: {loop: itself, subject: "{subject}", max_chain: 3}}'
        ).replace("max_iterations: 2", 'max_iterations: 2\nsubject: "the one"')
    )
    world.loop(parent("outer", '{id: child, uses: run.start, with: {loop: inner, subject: "in"}}'))
    world.loop(parent("inner", '{id: child, uses: run.start, with: {loop: outer, subject: "out", max_chain: 3}}'))

    async def story() -> None:
        for loop_id, subject in (("itself", "the one"), ("outer", "out")):
            await world.run(loop_id, subject=subject)
        assert [run.status for run in await world.store.list_runs(RunFilter())] == [RunStatus.ready_for_handoff] * 3
        for loop_id in ("itself", "inner"):
            (run,) = await world.store.list_runs(RunFilter(loop_id=loop_id))
            failed = (await steps(world, run))["child"]
            assert failed.error_kind == "child_dropped"
            assert "wait for each other" in failed.error

    asyncio.run(story())


def test_more_than_a_thousand_children_are_all_counted(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def many(context: ActionContext, params: Record) -> Result:
        for number in range(1005):
            new = NewRun(
                run_id=f"run_{number:05}", loop_id="leaf", spec_digest="d", spec_text=LEAF, deadline=3600.0,
                subject=Subject(name=f"leaf/{number}"), parent=context.run.run_id,
            )  # fmt: skip
            await world.store.start_run(new)
        for number in range(1002):
            await world.store.ask_cancel(f"run_{number:05}", person("me"), "")
        return Result()

    world.action(ActionDef(name="test.many", summary="Start many.", run=many))
    world.loop(LEAF)
    world.loop(parent("crowd", "{id: child, uses: test.many}"))

    async def story() -> None:
        await world.store.set_control("loop:leaf", True, person("me"), "")
        run = await world.run("crowd")
        (stand,) = [step for step in await world.store.steps(run.run_id, 1) if step.id == "stand"]
        assert (stand.outputs["ended"], stand.outputs["open"]) == (1002, 3)
        assert [item.ref for item in stand.conditions] == ["children.pending"]
        assert len(stand.outputs["outcomes"]) == 1000

    asyncio.run(story())
