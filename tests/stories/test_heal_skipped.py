"""A file that did not load is repaired when its tests run, or only skip as they did when it was last proven."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, HealStage
from rich.console import Console

from becket.app.record.report.collect import read_report
from becket.cli.ending import print_ending
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes

SKIPS = """
import os
import unittest

import calc


@unittest.skipUnless("SLOW_CALC" in os.environ, "slow")
class TestSlow(unittest.TestCase):
    def test_many(self):
        assert calc.mean(range(10**6)) > 0
"""
RUNS = """
import pytest

import calc

pytestmark = pytest.mark.skipif(not hasattr(calc, "median"), reason="no median")


def test_median():
    assert calc.median([3, 1, 2]) == 2
"""
MEDIAN = GOOD + "\n\ndef median(values):\n    return sorted(values)[len(values) // 2]\n"
BROKEN = "\n\ndef broken(:\n"
TRUSTING = CONFIG + "guard: {promote: powerful}\n"


def stage_with(folder: Path, calc: str, extra: str, *acts: Act) -> HealStage:
    stage = HealStage(folder, ScriptedAgent(acts), config=TRUSTING)
    stage.world.commit({"calc.py": calc, "tests/test_extra.py": extra}, "more tests")
    return stage


def broken(stage: HealStage, calc: str) -> Run:
    stage.world.commit({"calc.py": calc + BROKEN}, "begin a function")
    return asyncio.run(stage.heal())


def against(stage: HealStage, run: Run) -> str:
    steps = asyncio.run(stage.world.store.steps(run.run_id))
    found = [item.evidence for step in steps for item in step.conditions if item.ref == "candidate.not_crossed"]
    return "\n".join(str(text) for evidence in found for text in evidence["against"])


def test_a_syntax_error_is_healed_though_one_test_file_only_skips(tmp_path: Path) -> None:
    """L21: it skipped the same tests when it was last proven, so that the repair switches nothing off."""
    stage = stage_with(tmp_path, GOOD, SKIPS, Act(writes("calc.py", GOOD)))
    asyncio.run(stage.heal())
    run = broken(stage, GOOD)
    assert run.status is RunStatus.completed, (run.reason, run.detail, against(stage, run))
    assert stage.git("show", "main:calc.py") == GOOD.strip()


def test_a_repair_that_makes_a_file_skip_whose_tests_ran_is_not_proven_and_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """L21: without the function that it tests, the file loads again, and skips."""
    cheat = Act(writes("calc.py", GOOD))
    stage = stage_with(tmp_path, MEDIAN, RUNS, cheat, cheat)
    asyncio.run(stage.heal())
    run = broken(stage, MEDIAN)
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_progress"), (run.reason, run.detail)
    assert "on the last proven commit tests/test_extra.py::test_median ran" in against(stage, run)
    print_ending(Console(width=200), asyncio.run(read_report(stage.world.app, run.run_id)))
    told = capsys.readouterr().out
    assert "which is not proven:\n  calc.py\n" in told
    assert "-def broken(:" in told
    assert told.endswith(f"Next: becket runs show {run.run_id} --all\n")


def test_where_nothing_was_proven_a_file_that_only_skips_proves_nothing(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, GOOD + BROKEN, SKIPS, *[Act(writes("calc.py", GOOD))] * 2)
    run = asyncio.run(stage.world.run("heal", inputs={"repair_never_green": True}))
    assert run.status is RunStatus.ready_for_handoff, (run.reason, run.detail)
    said = "tests/test_extra.py did not load on the parent, and on the child it only skips: whether its tests ran"
    assert said in against(stage, run)
