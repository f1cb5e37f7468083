"""Red from the beginning is a question to a person, not a repair."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.kernel.contract.run import Run, Status
from becket.testing.agent import Act, ScriptedAgent, writes

REPAIRS = Act(writes("calc.py", GOOD))
TRUSTING = CONFIG + "guard: {promote: powerful}\n"


def red_from_the_beginning(folder: Path, *acts: Act) -> HealStage:
    """One commit whose tests fail; the one before has no tests at all."""
    stage = HealStage(folder, ScriptedAgent(acts), config=TRUSTING)
    stage.git("update-ref", "-d", "HEAD")
    stage.world.commit({"calc.py": BAD}, "everything at once")
    return stage


def by_hand(stage: HealStage, **inputs: object) -> Run:
    return asyncio.run(stage.world.run("heal", inputs=inputs))


def test_no_agent_is_called_for_a_step_that_was_never_green_until_a_person_says_so(tmp_path: Path) -> None:
    stage = red_from_the_beginning(tmp_path, REPAIRS)
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (Status.ready_for_handoff, "never_green"), run.detail
    assert "fast/unit was never green here" in run.detail["why"]
    assert any("test_add" in name for name in run.detail["failing"])
    assert "becket gates try fast/unit" in str(run.detail["next"])
    assert isinstance(stage.agent, ScriptedAgent)
    assert stage.agent.briefs == []
    again = by_hand(stage, repair_never_green=True)
    assert again.status is Status.completed, (again.reason, again.detail)


def test_a_green_parent_that_nobody_ever_ran_is_found_and_names_the_culprit(tmp_path: Path) -> None:
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]), config=TRUSTING)
    bad = stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is Status.completed, (run.reason, run.detail)
    found = next(step for step in asyncio.run(stage.world.store.steps(run.run_id)) if step.id == "blame")
    assert (found.outputs["sha"], found.outputs["runs"]) == (bad, 0)


def test_a_green_that_was_tried_by_hand_counts(tmp_path: Path) -> None:
    """However far back it lies: the records are asked before anything is run."""
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]), config=TRUSTING)
    asyncio.run(stage.world.run("trial", inputs={"at": stage.green}))
    stage.break_it()
    for number in range(4):
        stage.world.commit({f"note{number}.txt": "x\n"}, "something else")
    run = asyncio.run(stage.heal())
    assert run.status is Status.completed, (run.reason, run.detail)
    ever = next(step for step in asyncio.run(stage.world.store.steps(run.run_id)) if step.id == "ever")
    assert (ever.outputs["green"], ever.outputs["tried"]) == (stage.green, [])


def test_a_green_of_another_command_under_the_same_name_does_not_count(tmp_path: Path) -> None:
    """Whoever tries `true` as `unit` has not seen the tests pass."""
    stage = red_from_the_beginning(tmp_path)
    committed = (stage.world.root / "becket.yaml").read_text()
    stage.world.write("becket.yaml", re.sub(r'run: "[^"]*pytest[^"]*", rerun.*', 'run: "true"}', committed))
    tried = asyncio.run(stage.world.run("trial", inputs={"at": stage.main()}))
    assert tried.status is Status.completed, (tried.reason, tried.detail)
    stage.world.write("becket.yaml", committed)
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (Status.ready_for_handoff, "never_green"), run.detail
