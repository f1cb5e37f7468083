"""Runs that wait for their turn: what others settled meanwhile is not looked at once more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from heal_stage import GOOD, HealStage

from becket.kernel.contract.action import ActionContext, Result
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.reasons import ALREADY_SO
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.parts.heal.actions.heal import SettleParams
from becket.parts.promote.actions.promote import PromoteParams
from becket.testing.agent import Act, ScriptedAgent, writes


async def seen(stage: HealStage, old: str, new: str) -> Run:
    """The daemon sees the branch move, while nobody waits for it; the run that it starts."""
    await stage.world.app.triggers.branch_moved(RefMoved(branch="main", old=old, new=new))
    (run, *_) = await stage.world.store.list_runs(RunFilter(statuses=(RunStatus.queued,)))
    return run


def test_a_queued_commit_that_an_earlier_run_proved_is_not_worked_on(tmp_path: Path) -> None:
    """Of two commits the second repairs the first, and the run about the first follows the branch to it."""
    queued: list[asyncio.Task[Run]] = []

    def somebody_is_faster(tree: Path) -> None:
        writes("calc.py", GOOD + "\n# ours\n")(tree)
        bad = stage.main()
        better = stage.world.commit({"calc.py": GOOD}, "put it right")
        queued.append(asyncio.get_running_loop().create_task(seen(stage, bad, better)))

    agent = ScriptedAgent([Act(somebody_is_faster)])
    stage = HealStage(tmp_path, agent)

    async def story() -> None:
        await stage.heal()
        stage.break_it()
        first = await stage.heal()
        second = await stage.world.store.get_run((await queued[0]).run_id)
        assert first.status is RunStatus.completed, (first.reason, first.detail)
        assert second.subject.name == f"main@{stage.main()}"
        assert (second.status, second.reason) == (RunStatus.cancelled, ALREADY_SO)
        assert second.detail == {"fact": "proven", "by_run": first.run_id}
        assert await stage.world.store.steps(second.run_id) == ()

    asyncio.run(story())
    assert len(agent.briefs) == 1


def promoted(folder: Path, *, settles: bool) -> tuple[HealStage, list[Run]]:
    """A repair whose promotion is seen at once; `settles`: the run that made it then says that it is proven."""
    stage = HealStage(folder, ScriptedAgent([Act(writes("calc.py", GOOD))]))
    movers: list[str] = []
    actions = stage.world.app.registry.actions
    promote, settle = actions["promote.run"], actions["heal.settle"]

    async def watched(context: ActionContext, params: PromoteParams) -> Result:
        done = await promote.run(context, params)
        movers.append(context.run.run_id)
        assert await stage.world.store.recorded_by("proven", f"main@{params.new}") is None
        await told(stage)
        return done

    async def at_last(context: ActionContext, params: SettleParams) -> Result:
        if context.run.run_id in movers and not settles:
            raise ActionFailed("nobody says anything")
        return await settle.run(context, params)

    async def story() -> list[Run]:
        await stage.heal()
        stage.break_it()
        await told(stage)
        await stage.world.settle()
        assert stage.git("show", "main:calc.py") == GOOD.strip()
        await stage.world.restart()
        await stage.world.app.triggers.sweep()
        await stage.world.settle()
        return list(await stage.world.store.list_runs(RunFilter(oldest_first=True)))

    stage.world.action(replace(promote, run=watched), replace(settle, run=at_last))
    return stage, asyncio.run(story())


async def told(stage: HealStage) -> None:
    await stage.world.app.triggers.branch_moved(RefMoved(branch="main", old=None, new=stage.main()))


def test_a_commit_is_proven_once_main_is_there_and_starts_no_run(tmp_path: Path) -> None:
    """L8: main is seen to move before anybody has said that it is proven; who moved it has the word."""
    stage, (_, repair) = promoted(tmp_path, settles=True)
    assert repair.status is RunStatus.completed, (repair.reason, repair.detail)
    proven = stage.world.store.recorded_by("proven", f"main@{stage.main()}")
    assert asyncio.run(proven) == repair.run_id


def test_a_move_about_which_nobody_says_anything_is_looked_at(tmp_path: Path) -> None:
    stage, (_, repair, looked) = promoted(tmp_path, settles=False)
    assert (repair.status, looked.subject.name) == (RunStatus.ready_for_handoff, f"main@{stage.main()}")
