"""The heal loop and what its agents are like: fallbacks, quotas, logins, limits, and sessions that go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.run import RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes

REPAIRS = Act(writes("calc.py", GOOD))


def broken(folder: Path, *acts: Act) -> tuple[HealStage, ScriptedAgent]:
    agent = ScriptedAgent(acts)
    stage = HealStage(folder, agent)
    asyncio.run(stage.heal())
    stage.break_it()
    return stage, agent


def test_a_session_goes_on_with_the_reasons_of_the_last_try(tmp_path: Path) -> None:
    """The brief is whole again, says that the checkout is fresh, and the tree really is."""
    left = [tuple[str, str]()]

    def looks_and_repairs(tree: Path) -> None:
        left.append((str(tree), (tree / "calc.py").read_text().strip()))
        writes("calc.py", GOOD)(tree)

    wrong = Act(writes("calc.py", BAD + "\n# a remark\n"), session="thread-1")
    stage, agent = broken(tmp_path, wrong, Act(looks_and_repairs, session="thread-1"))
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    before, after = agent.seen
    assert (before.session, after.session) == (None, "thread-1")
    assert (before.workspace, before.call_context.home) == (after.workspace, after.call_context.home)
    assert left[-1] == (str(before.workspace), BAD.strip())
    assert after.brief.startswith("You have worked on this before")
    assert "An earlier try was not proven" in after.brief
    assert "## What fails" in after.brief


def test_quotas_are_waited_for_however_often(tmp_path: Path) -> None:
    """L23: a quota says nothing about the repair; waiting for it is no vain try, and no iteration."""
    quota = Act(hint=AgentOutcome.quota_wait, error="usage limit")
    stage, agent = broken(tmp_path, quota, quota, quota, REPAIRS)

    async def story() -> None:
        run = await stage.heal()
        for gone in (301, 305, 610):  # where nobody says when it is back, each look comes later
            run = await stage.world.store.get_run(run.run_id)
            assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",)), (run.reason, run.detail)
            calls = await stage.world.store.calls(run.run_id)
            assert [call.end and call.end.until for call in calls] == [None] * len(calls)
            await stage.world.pass_time(gone)
        run = await stage.world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert run.counted == 1

    asyncio.run(story())
    assert len(agent.briefs) == 4


def test_an_agent_without_a_login_is_a_persons_business(tmp_path: Path) -> None:
    stage, agent = broken(tmp_path, Act(hint=AgentOutcome.auth_missing, error="not logged in: run `codex login`"))
    bad = stage.main()
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "agent.auth_missing"), run.detail
    assert "codex login" in str(run.detail["reason"])
    assert stage.main() == bad
    assert len(agent.briefs) == 1


def test_work_that_hit_a_limit_is_saved_and_the_next_try_may_repair(tmp_path: Path) -> None:
    """L7: half a repair is no candidate, and is not lost."""
    half = Act(writes("calc.py", GOOD + "\n# half\n"), hint=AgentOutcome.limit_reached, error="60 turns")
    stage, _ = broken(tmp_path, half, REPAIRS)
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    (saved,) = stage.git("for-each-ref", "--format=%(refname)", f"refs/becket/rescue/{run.run_id}*").splitlines()
    assert "# half" in stage.git("show", f"{saved}:calc.py")
    assert "# half" not in stage.git("show", "main:calc.py")


def test_the_fallback_repairs(tmp_path: Path) -> None:
    second = ScriptedAgent([REPAIRS])
    config = CONFIG.replace(
        'agents: {fixer: {driver: command, run: "true"}}',
        'agents: {fixer: {driver: command, run: "true", fallback: [spare]}, spare: {driver: command, run: "true"}}\n'
        "heal: {agent: fixer}",
    )
    first = ScriptedAgent([Act(error="overloaded")])
    stage = HealStage(tmp_path, first, config=config, spare=second)
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert (len(first.briefs), len(second.briefs)) == (1, 1)


CRASHES = Act(ended=False, error="boom in request req_0a1b2c3d", hint=AgentOutcome.crashed)


def test_an_agent_that_fails_the_same_way_twice_is_not_called_again_in_this_run(tmp_path: Path) -> None:
    """Without a change of files it is asked twice, not twelve times; what broke main is undone, and it is said why."""
    same = Act(ended=False, error="boom in request req_9f8e7d6c", hint=AgentOutcome.crashed)
    stage, agent = broken(tmp_path, CRASHES, same)
    run = asyncio.run(stage.heal())
    assert len(agent.briefs) == 2
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), run.detail
    told = asyncio.run(stage.world.store.steps(run.run_id))
    (why,) = {step.note for step in told if step.id == "plan" and step.outputs.get("plan") == "revert"}
    assert why.startswith("the agent failed the same way twice and changed nothing: crashed: boom in request"), why
    assert why.endswith("what broke it is undone instead")


def test_an_agent_that_fails_in_different_ways_is_called_again(tmp_path: Path) -> None:
    killed = Act(ended=False, error="killed by signal 9", hint=AgentOutcome.crashed)
    stage, agent = broken(tmp_path, killed, CRASHES, REPAIRS)
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert len(agent.briefs) == 3


DOWN = Act(ended=True, error="the model's server: 529 overloaded", hint=AgentOutcome.model_error)


def test_a_model_that_is_back_repairs_and_its_outage_was_no_iteration(tmp_path: Path) -> None:
    stage, agent = broken(tmp_path, DOWN, DOWN, REPAIRS)

    async def story() -> None:
        run = await stage.heal()
        for passes, asked in ((29, 1), (2, 2), (80, 2), (20, 3)):
            assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.model_error",)), (run.reason, run.detail)
            await stage.world.pass_time(passes)
            assert len(agent.briefs) == asked
            run = await stage.world.store.get_run(run.run_id)
        assert (run.status, run.counted) == (RunStatus.completed, 1), (run.reason, run.detail)

    asyncio.run(story())


def test_an_outage_of_hours_is_six_calls_and_then_a_persons_by_its_name(tmp_path: Path) -> None:
    """Not "an iteration brought nothing new", and no revert: what broke main is not known to be beyond repair."""
    stage, agent = broken(tmp_path, *([DOWN] * 6))
    bad = stage.main()

    async def story() -> None:
        run = await stage.heal()
        for passes in (31, 95, 385, 1560, 5200):
            assert run.status is RunStatus.waiting, (run.reason, run.detail)
            await stage.world.pass_time(passes)
            run = await stage.world.store.get_run(run.run_id)
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "model_unavailable"), run.detail
        told = run.detail
        assert (told["agent"], told["reason"]) == ("fixer", "the model's server: 529 overloaded")
        assert told["why"].startswith("the model of fixer has not worked for 2h")
        assert told["why"].endswith("; it last said: the model's server: 529 overloaded")
        assert [call["outcome"] for call in told["asked"]] == ["model_error"]

    asyncio.run(story())
    assert len(agent.briefs) == 6
    assert stage.main() == bad


def test_an_agent_that_fails_again_and_changes_something_each_time_is_called_again(tmp_path: Path) -> None:
    tries = [Act(writes("calc.py", f"TRY = {number}\n"), ended=False, error="boom") for number in (1, 2, 3)]
    stage, agent = broken(tmp_path, *tries, REPAIRS)
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert len(agent.briefs) == 4
