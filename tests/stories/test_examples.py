"""The loops that ship as examples are run here as a person would run them: YAML only, no Python."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from becket.kernel.contract.run import Run, RunStatus
from becket.testing.people import person
from becket.testing.world import World

EXAMPLES = Path(__file__).parents[2] / "examples" / "loops"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for example in EXAMPLES.glob("*.yaml"):
        world.write(f".becket/loops/{example.name}", example.read_text())
    world.commit({"docs/a.md": "[good](README.md) [bad](nowhere.md)\n", "src/one.txt": "1\n2\n", "docs/b.md": "b\n"})
    return world


def test_every_example_is_proven_by_lint(world: World) -> None:
    assert {file: found for file, found in world.app.loops.findings().items() if found} == {}


def test_links_finishes_with_the_dead_link_named(world: World) -> None:
    async def story() -> Run:
        run = await world.run("links")
        steps = {step.id: step for step in await world.store.steps(run.run_id)}
        assert steps["dead"].outputs == {"list": "nowhere.md"}
        return run

    run = asyncio.run(story())
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")
    assert "2 links, dead ones: [nowhere.md]" in world.console.getvalue()


def test_release_note_waits_for_an_approval_over_a_restart_and_publishes_once(world: World) -> None:
    async def story() -> None:
        run = await world.run("release-note")
        assert run.status is RunStatus.waiting
        (asked,) = await world.store.approvals(run.run_id, open_only=True)
        await world.restart()
        assert (await world.store.get_run(run.run_id)).status is RunStatus.waiting
        await world.store.decide_approval(asked.approval_id, True, person("owner"), asked.bound_to, "")
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")

    asyncio.run(story())
    (line,) = (world.state.outbox / "notes.jsonl").read_text().splitlines()
    assert "- change" in json.loads(line)["payload"]["text"]


def test_release_note_that_is_denied_ends_at_a_person_and_nothing_is_published(world: World) -> None:
    async def story() -> None:
        run = await world.run("release-note")
        (asked,) = await world.store.approvals(run.run_id, open_only=True)
        await world.store.decide_approval(asked.approval_id, False, person("owner"), asked.bound_to, "no")
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "approval.denied")
        (handoff,) = await world.store.handoffs(run_id=run.run_id)
        assert handoff.evidence["by"] == "owner"

    asyncio.run(story())
    assert not (world.state.outbox / "notes.jsonl").exists()


def test_sweep_starts_one_child_per_folder_and_ends_when_they_have(world: World) -> None:
    async def story() -> None:
        run = await world.run("sweep")
        assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")
        from becket.kernel.contract.store import RunFilter

        children = await world.store.list_runs(RunFilter(parent=run.run_id))
        assert sorted(child.subject.name.rsplit("/", 1)[1] for child in children) == ["docs", "src"]
        assert {child.status for child in children} == {RunStatus.completed}

    asyncio.run(story())
