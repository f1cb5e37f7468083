"""Red from the beginning is a question to a person, not a repair."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.app.record.report.collect import read_report
from becket.kernel.contract.run import Run, RunStatus
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
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "never_green"), run.detail
    assert "fast/unit was never green here" in run.detail["why"]
    assert any("test_add" in name for name in run.detail["failing"])
    assert "becket gates try fast/unit" in str(run.detail["next"])
    assert isinstance(stage.agent, ScriptedAgent)
    assert stage.agent.briefs == []
    again = by_hand(stage, repair_never_green=True)
    assert again.status is RunStatus.completed, (again.reason, again.detail)


def test_a_green_parent_that_nobody_ever_ran_is_found_and_names_the_culprit(tmp_path: Path) -> None:
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]), config=TRUSTING)
    bad = stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
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
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    ever = next(step for step in asyncio.run(stage.world.store.steps(run.run_id)) if step.id == "ever")
    assert (ever.outputs["green"], ever.outputs["tried"]) == (stage.green, [])


def test_a_green_of_another_command_under_the_same_name_does_not_count(tmp_path: Path) -> None:
    """Whoever tries `true` as `unit` has not seen the tests pass."""
    stage = red_from_the_beginning(tmp_path)
    committed = (stage.world.root / "becket.yaml").read_text()
    stage.world.write("becket.yaml", re.sub(r'run: "[^"]*pytest[^"]*", rerun.*', 'run: "true"}', committed))
    tried = asyncio.run(stage.world.run("trial", inputs={"at": stage.main()}))
    assert tried.status is RunStatus.completed, (tried.reason, tried.detail)
    stage.world.write("becket.yaml", committed)
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "never_green"), run.detail


def test_a_green_that_only_a_trial_outside_of_the_branch_saw_still_names_the_culprit(tmp_path: Path) -> None:
    """`becket init` tries HEAD with becket.yaml as it stands, which is no commit of the branch."""
    stage = HealStage(tmp_path, ScriptedAgent([Act()] * 4), config=TRUSTING)
    tried = stage.git("commit-tree", "-p", stage.green, "-m", "as it stands", f"{stage.green}^{{tree}}")
    asyncio.run(stage.world.run("trial", inputs={"at": tried}))
    bad = stage.break_it()
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), (run.reason, run.detail)
    blame = next(step for step in asyncio.run(stage.world.store.steps(run.run_id)) if step.id == "blame")
    assert blame.outputs["sha"] == bad


def test_who_reads_that_the_agent_gave_up_reads_why_nothing_was_undone(tmp_path: Path) -> None:
    stage = red_from_the_beginning(tmp_path, *[Act()] * 4)
    run = by_hand(stage, repair_never_green=True)
    assert run.reason == "agent_gave_up", run.detail
    why = "the agent changed nothing any more; nothing was undone: no earlier commit is known to be green"
    assert run.detail["why"] == why


def test_an_undoing_that_was_not_proven_is_not_told_as_done(tmp_path: Path) -> None:
    stage = HealStage(tmp_path, ScriptedAgent([Act()] * 4), config=TRUSTING)
    asyncio.run(stage.heal())
    bad = stage.break_it()
    stage.world.commit({"calc.py": BAD.replace("left - right", "left * right")}, "another way to be wrong")
    run = asyncio.run(stage.heal())
    assert run.reason == "agent_gave_up", run.detail
    assert run.detail["why"].startswith(
        f"the agent changed nothing any more; nothing was undone: {bad[:12]} cannot be undone: "
    )
    report = asyncio.run(read_report(stage.world.app, run.run_id))
    assert report.end is not None
    told = [report.end.headline, *report.end.lines]
    assert len([line for line in told if "nothing was undone" in line]) == 1
    assert not [line for line in told if "is undone instead" in line or "its change was not proven" in line]
