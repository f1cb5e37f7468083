"""What is kept for people is bounded: what a completed run leaves is not kept, and the rest goes in its time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from test_runs import act, loop, tell

from becket.app.serve import retain
from becket.kernel.actions.candidate import GROUP, Candidate, exists
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.people import person
from becket.testing.world import World, run_git

DAY = 86_400.0
LITTER = '{id: edit, run: "echo new > new.txt"}'
RED = '  verify:\n    objective: look\n    verifiers: [{id: look, run: "exit 1", in: scratch}]\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Its clock shows the time of this machine, by which a rescue is dated."""
    world = World(tmp_path)
    world.clock.set(time.time())
    return world


def kept(world: World) -> list[str]:
    return run_git(world.root, ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/becket"]).splitlines()


def days_later(world: World, days: float) -> None:
    world.clock.set(time.time() + days * DAY)
    asyncio.run(retain(world.app))


def handed_over(world: World) -> Run:
    run, _ = tell(world, loop(act(LITTER) + RED))
    assert run.status is RunStatus.ready_for_handoff
    return run


def resolve(world: World, run: Run) -> None:
    async def change() -> None:
        for handoff in await world.store.handoffs(run_id=run.run_id):
            await world.store.change_handoff(handoff.handoff_id, HandoffState.done, person("me"), "done")

    asyncio.run(change())


def test_nothing_is_saved_of_a_run_that_completed(world: World) -> None:
    """Its proof is where it belongs; what lies around is what its tests left."""
    run, _ = tell(world, loop(act(LITTER)))
    assert run.status is RunStatus.completed
    assert not world.app.places.of_run(run.run_id).exists()
    assert kept(world) == []


def test_a_rescue_goes_when_its_time_has_passed_and_nobody_has_it_in_hand(world: World) -> None:
    run = handed_over(world)
    days_later(world, 40)
    assert kept(world) == [f"rescue/{run.run_id}"], "a person still has to look at the run"
    resolve(world, run)
    days_later(world, 29)
    assert kept(world) == [f"rescue/{run.run_id}"]
    days_later(world, 31)
    assert kept(world) == []


def test_how_long_and_how_much_is_said_in_becket_yaml(world: World) -> None:
    world.commit({"becket.yaml": "version: 1\nretention: {rescues: 2d, rescue_file: 3B}\n"})
    run = handed_over(world)
    (saved,) = asyncio.run(world.app.git.candidates().rescued())
    assert [(item.path, item.size) for item in saved.left_out] == [("new.txt", 4)]
    resolve(world, run)
    days_later(world, 3)
    assert kept(world) == []


def test_candidates_of_ended_runs_go_in_their_time_and_crossings_at_once(world: World) -> None:
    run, _ = tell(world, loop(act('{id: say, run: "true", in: scratch}')))
    for name in (f"candidate/{run.run_id}/1-1", f"crossing/{run.run_id}", "candidate/run_forgotten/1-1"):
        run_git(world.root, ["update-ref", f"refs/becket/{name}", "HEAD"])
    asyncio.run(retain(world.app))
    assert kept(world) == [f"candidate/{run.run_id}/1-1"]
    days_later(world, 31)
    assert kept(world) == [f"candidate/{run.run_id}/1-1"], "at one sweep everything ages by a day at most"
    for day in range(32, 64):
        days_later(world, day)
    assert kept(world) == []


async def _lost(context: ActionContext, params: Record) -> Result:
    return Result(conditions=(exists(Candidate(sha="1" * 40, parent="2" * 40, tree="3" * 40)),))


def test_a_candidate_that_is_broken_is_told_in_words(world: World) -> None:
    world.action(ActionDef(name="test.lost", summary="names what is not there", run=_lost, raises=(GROUP,)))
    run, steps = tell(world, loop(act("{id: make, uses: test.lost}\n      - {id: show, uses: candidate.current}")))
    assert run.status is RunStatus.ready_for_handoff
    assert steps["show"].error_kind == "candidate_broken"
    assert "the candidate 111111111111 is broken" in str(steps["show"].error)


def test_a_candidate_that_is_broken_makes_room_for_another(world: World) -> None:
    world.action(ActionDef(name="test.lost", summary="names what is not there", run=_lost, raises=(GROUP,)))
    moved = f'{{id: move, uses: candidate.rebase, with: {{onto: "{"2" * 40}"}}}}'
    run, steps = tell(world, loop(act(f"{{id: make, uses: test.lost}}\n      - {moved}"), stop="candidate.none"))
    assert run.status is RunStatus.completed
    assert "is broken" in steps["move"].note
