"""Money and tokens of calls that were stopped: whatever nobody told counts as booked, never as nothing (L21, L23)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_programs import fakes, live_as_a_daemon, settings
from becket.app.record.verify import verify_run
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.calls import AgentCall, SettledBy
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.model import Hang, Loop, ScriptedModel, Shell, Tokens
from becket.testing.world import World

LOOP = """
version: 1
loop_id: work
goal: It is good.
trigger: [{manual: {}}]
inputs: {n: {type: string, optional: true, default: "0"}}
subject: "work/{n}"
max_iterations: 1
deadline: 1h
autonomy: propose
budget: {agent_time: 1h}
stop_conditions: [mended.pass]
phases:
  act: {objective: Work., actions: [{id: work, uses: agent.work, with: {agent: fixer, brief: "Make it good."}}]}
  verify: {objective: Look., verifiers: [{id: mended, run: "grep -q good it.txt"}]}
"""
PROGRAMS = ["claude", *(pytest.param(program, marks=pytest.mark.slow) for program in ("codex", "gemini"))]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


def made_world(folder: Path, patch: pytest.MonkeyPatch, agent: dict[str, Any], **more: Any) -> World:
    live_as_a_daemon(patch, folder / "home", fakes(folder / "bin"))
    world = World(folder / "world")
    world.loop(LOOP)
    config = {"version": 1, "sandbox": "none", "agents": {"fixer": agent}, **more}
    world.commit({"becket.yaml": json.dumps(config), "it.txt": "bad\n"})
    return world


async def only_call(world: World, run: Run) -> AgentCall:
    (call,) = await world.store.calls(run.run_id)
    assert call.end is not None
    assert [item.what for item in await verify_run(world.app, run.run_id, rerun=False) if not item.ok] == []
    return call


def unnamed(program: str, model: ScriptedModel) -> dict[str, Any]:
    """The agent with whatever model its program takes by itself: of it no price is known."""
    given = {name: value for name, value in settings(program, model).items() if name != "model"}
    return given | ({"run": "gemini --acp --skip-trust"} if program == "gemini" else {})


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_stopped_call_of_a_model_without_a_price_costs_what_was_booked(
    program: str, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passed its limit of tokens and was stopped before it could tell its cost: the budget of the day is used up."""
    agent = {**unnamed(program, model), "limits": {"tokens": 50_000}}
    world = made_world(tmp_path, monkeypatch, agent, budgets={"day": {"usd": 0.30}})
    model.script(Shell("true", usage=Tokens(input=60_000, output=10)), Loop(Hang()))

    async def story() -> None:
        run = await world.run("work")
        call = await only_call(world, run)
        assert call.end is not None
        assert (call.end.outcome, call.end.by) == (AgentOutcome.limit_reached, SettledBy.booking), call.end
        assert (call.end.usage.usd, call.end.usage.tokens >= 60_000) == (0.30, True)
        again = await world.run("work", inputs={"n": "2"})
        assert (again.status, again.reason) == (RunStatus.ready_for_handoff, "budget_exhausted")

    asyncio.run(story())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_stopped_call_that_told_of_no_tokens_used_all_that_were_booked(
    program: str, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hung at its first request: what its model made of that, nobody told."""
    agent = {**settings(program, model), "limits": {"time": "3s"}}
    prices = {agent["model"]: {"input": 1, "output": 5}}
    world = made_world(tmp_path, monkeypatch, agent, budgets={"day": {"usd": 2, "tokens": 5000}}, prices=prices)
    model.script(Loop(Hang()))

    async def story() -> None:
        run = await world.run("work")
        call = await only_call(world, run)
        assert call.end is not None
        assert (call.end.outcome, call.end.by) == (AgentOutcome.limit_reached, SettledBy.booking), call.end
        assert (call.end.usage.tokens, call.end.usage.usd) == (5000, 2.0)
        (step,) = [step for step in await world.store.steps(run.run_id) if step.id == "work"]
        (told,) = step.outputs["calls"]
        assert (told["tokens"], told["usd"]) == (None, None), "nobody told: that is not 0"

    asyncio.run(story())
