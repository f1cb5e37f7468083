"""A person decides before anything of a repair runs that would have more than a test has: the set-up's own build."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, HealStage

from becket.kernel.contract.run import RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.people import person


def repairs_and_changes_the_set_up(tree: Path) -> None:
    writes("calc.py", GOOD)(tree)
    writes("deps.txt", "of the agent\n")(tree)


def staged(folder: Path) -> tuple[HealStage, Path]:
    seen = folder / "seen"
    config = CONFIG + f'setup: {{run: "cat deps.txt >> {seen}; mkdir made", key: [deps.txt]}}\n'
    stage = HealStage(folder, ScriptedAgent([Act(repairs_and_changes_the_set_up)] * 2), config=config)
    stage.world.commit({"deps.txt": "of main\n"}, "dependencies")
    asyncio.run(stage.heal())
    stage.break_it()
    return stage, seen


@pytest.mark.parametrize("yes", [True, False])
def test_no_set_up_is_built_from_an_agents_files_before_a_persons_yes(tmp_path: Path, yes: bool) -> None:
    stage, seen = staged(tmp_path)

    async def story() -> None:
        run = await stage.heal()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("change.asked",)), (run.reason, run.detail)
        (approval,) = await stage.world.store.approvals(run.run_id)
        assert approval.question.startswith("May the set-up be built from the files that this repair changes?")
        assert seen.read_text() == "of main\n"
        await stage.world.store.decide_approval(approval.approval_id, yes, person("ada"), approval.bound_to, "")
        await stage.world.settle()
        run = await stage.world.store.get_run(run.run_id)
        if yes:
            assert run.status is RunStatus.completed, (run.reason, run.detail)
            assert seen.read_text() == "of main\nof the agent\n"
        else:
            assert run.reason == "change.denied"
            assert seen.read_text() == "of main\n"

    asyncio.run(story())
