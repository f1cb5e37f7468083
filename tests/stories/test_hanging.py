"""Steps of gates that do not end in time, or print without end: what they cost is bounded, and it is said."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from heal_stage import CONFIG, GOOD, HealStage

from becket.kernel.contract.action import KEPT
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes

HURRIED = CONFIG.replace("timeout: 60s", "timeout: 4s")
HANGS = GOOD.replace("return left + right", "while True:\n        left = right")
PRINTS = GOOD.replace("return left + right", "while True:\n        __import__('os').write(1, b'y\\n' * 8192)")


def executions(stage: HealStage, run: Run, step: str) -> list[str]:
    """Which executions of the gate's step a step of the loop made, by the logs that are kept of them."""
    kept = asyncio.run(stage.world.store.artifacts(run.run_id))
    return [each.name.rpartition("-")[2].removesuffix(".log") for each in kept if each.name.startswith(f"{step}-fast-")]


def test_a_hanging_candidate_costs_one_time_limit(tmp_path: Path) -> None:
    agent = ScriptedAgent([Act(writes("calc.py", HANGS)), Act(writes("calc.py", GOOD))])
    stage = HealStage(tmp_path, agent, config=HURRIED)
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert executions(stage, run, "cross") == ["first", "first", "alone"]  # of the first candidate; of the second
    assert "the step did not end within 4 s" in agent.briefs[1]


def test_a_hanging_base_is_looked_at_twice(tmp_path: Path) -> None:
    stage = HealStage(tmp_path, ScriptedAgent([Act(writes("calc.py", GOOD))]), config=HURRIED)
    stage.world.commit({"calc.py": HANGS}, "make add wait")
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert executions(stage, run, "base_fast") == ["first", "again1"]


def test_a_candidate_whose_test_prints_without_end_is_red_at_its_time_limit(tmp_path: Path) -> None:
    why_unenforceable = HURRIED.replace(
        " -p no:cacheprovider", " -s -p no:cacheprovider"
    )  # else pytest holds what tests print
    agent = ScriptedAgent([Act(writes("calc.py", PRINTS)), Act(writes("calc.py", GOOD))])
    stage = HealStage(tmp_path, agent, config=why_unenforceable + "guard: {promote: powerful}\n")
    stage.break_it()
    began = time.monotonic()
    run = asyncio.run(stage.heal())
    assert time.monotonic() - began < 40  # it is 4 s, twice a few for reading 16 MB, and six honest gates
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert executions(stage, run, "cross") == ["first", "first", "alone"]
    assert "the step did not end within 4 s" in agent.briefs[1]
    assert (
        max(each.size for each in asyncio.run(stage.world.store.artifacts(run.run_id))) < KEPT + 200
    )  # the line that tells of the rest


def test_a_report_in_an_output_that_is_not_kept_whole_is_never_green(tmp_path: Path) -> None:
    """A failed test may have stood where the middle is missing."""
    tap = "yes '# a remark that says nothing at all, and that rather often' | head -c 17000000; echo ok 1; echo 1..1"
    gate = f'- {{name: unit, run: "{tap}", report: tap}}'
    config = "\n".join(gate.rjust(len(gate) + 4) if "name: unit" in line else line for line in CONFIG.splitlines())
    stage = HealStage(tmp_path, config=config)
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.ready_for_handoff, (run.reason, run.detail)
    notes = [str(step.outputs) for step in asyncio.run(stage.world.store.steps(run.run_id)) if step.id == "base_fast"]
    assert "'color': 'red'" in notes[0], notes
