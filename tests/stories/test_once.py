"""One call by hand: `becket agent run` starts the loop `once`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.kernel.contract.agent import Agent, AgentOutcome
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World, run_git

CONFIG = """
version: 1
sandbox: {use: none, without: [files, processes, network]}
agents:
  fixer: {driver: command, run: "true", fallback: [second]}
  second: {driver: command, run: "true"}
"""
ASKED = "Make it good, and leave {curly} braces alone."


class OnceStage:
    def __init__(self, folder: Path, *acts: Act, **others: Agent) -> None:
        self.agent = ScriptedAgent(acts)
        self.world = World(folder, agents={"fixer": self.agent, **others})
        self.base = self.world.commit({"becket.yaml": CONFIG, "it.txt": "bad\n"})

    async def call(self, **more: str) -> Run:
        inputs = {"agent": "fixer", "brief": ASKED, "base": self.base, **more}
        return await self.world.run("once", inputs=inputs)

    async def outputs(self, run: Run) -> dict[str, dict[str, object]]:
        return {step.id: dict(step.outputs) for step in await self.world.store.steps(run.run_id) if step.outputs}

    def git(self, *arguments: str) -> str:
        return run_git(self.world.root, arguments)


def test_a_change_is_kept_as_a_commit_and_a_patch_and_moves_no_branch(tmp_path: Path) -> None:
    """L7, L18: the person's tree and every branch stay as they were."""
    stage = OnceStage(tmp_path, Act(writes("it.txt", "good\n"), said="done"))

    async def story() -> None:
        heads = stage.git("for-each-ref", "refs/heads")
        run = await stage.call()
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        result = (await stage.outputs(run))["result"]
        assert (result["outcome"], result["said"]) == ("changed", "done")
        kept = stage.git("for-each-ref", "--format=%(objectname)", f"refs/becket/candidate/{run.run_id}")
        assert kept == result["sha"]
        assert stage.git("rev-parse", f"{kept}^") == stage.base
        assert "+good" in stage.world.app.artifacts.read(str(result["patch"])).decode()
        assert stage.git("for-each-ref", "refs/heads") == heads
        assert (stage.world.root / "it.txt").read_text() == "bad\n"

    asyncio.run(story())


def test_the_brief_is_the_persons_own_words(tmp_path: Path) -> None:
    """They are the task: neither fenced nor read as a template."""
    stage = OnceStage(tmp_path, Act())
    asyncio.run(stage.call())
    (brief,) = stage.agent.briefs
    assert ASKED in brief
    assert stage.base[:12] in brief


def test_the_call_is_about_the_commit_that_was_named(tmp_path: Path) -> None:
    stage = OnceStage(tmp_path, Act(lambda tree: writes("seen.txt", (tree / "it.txt").read_text())(tree)))
    stage.world.commit({"it.txt": "newer\n"})

    async def story() -> None:
        run = await stage.call()
        result = (await stage.outputs(run))["result"]
        assert stage.git("show", f"{result['sha']}:seen.txt") == "bad"

    asyncio.run(story())


def test_nothing_done_is_a_result(tmp_path: Path) -> None:
    """L20: said as it is, whatever the agent claims."""
    stage = OnceStage(tmp_path, Act(said="All done."))

    async def story() -> None:
        run = await stage.call()
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        result = (await stage.outputs(run))["result"]
        assert (result["outcome"], result["sha"], result["patch"]) == ("nothing_done", "", "")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (Act(ended=False, error="it was killed"), "agent.crashed"),
        (Act(error="500"), "agent.model_error"),
        (Act(hint=AgentOutcome.refused, error="it declined"), "agent.refused"),
        (Act(hint=AgentOutcome.limit_reached, error="60 turns"), "agent.limit_reached"),
        (Act(hint=AgentOutcome.auth_missing, error="no login"), "agent.auth_missing"),
    ],
)
def test_any_other_outcome_is_the_reason_of_the_handoff(tmp_path: Path, act: Act, reason: str) -> None:
    stage = OnceStage(tmp_path, act, second=ScriptedAgent([act]))
    run = asyncio.run(stage.call())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, reason), run.detail
    assert len(stage.agent.briefs) == 1, "it is one call"


def test_what_a_stopped_agent_made_is_saved(tmp_path: Path) -> None:
    """L7."""
    stage = OnceStage(tmp_path, Act(writes("it.txt", "half\n"), hint=AgentOutcome.limit_reached, error="60 turns"))
    run = asyncio.run(stage.call())
    (saved,) = stage.git("for-each-ref", "--format=%(refname)", f"refs/becket/rescue/{run.run_id}*").splitlines()
    assert stage.git("show", f"{saved}:it.txt") == "half"


def test_a_quota_is_waited_for(tmp_path: Path) -> None:
    """L23."""
    out = Act(hint=AgentOutcome.quota_wait, error="usage limit")
    stage = OnceStage(tmp_path, out, Act(writes("it.txt", "good\n")), second=ScriptedAgent([out]))

    async def story() -> None:
        run = await stage.call()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",))
        await stage.world.pass_time(301)
        assert (await stage.world.store.get_run(run.run_id)).status is RunStatus.completed

    asyncio.run(story())


@pytest.mark.parametrize("wrong", [{"base": "0" * 40}, {"brief": "  "}, {"agent": "nobody"}])
def test_what_cannot_be_done_is_said(tmp_path: Path, wrong: dict[str, str]) -> None:
    stage = OnceStage(tmp_path)
    run = asyncio.run(stage.call(**wrong))
    assert run.status in (RunStatus.ready_for_handoff, RunStatus.failed)
    assert run.detail["errors"]


def test_a_base_is_a_full_commit_hash(tmp_path: Path) -> None:
    stage = OnceStage(tmp_path)
    with pytest.raises(UsageError, match="not a full commit hash"):
        asyncio.run(stage.call(base="main"))
