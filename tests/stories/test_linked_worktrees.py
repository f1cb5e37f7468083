"""A worktree that `git worktree add` made, beside the first one: one repository, one state, two test trees."""

from __future__ import annotations

import asyncio
from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.app.state import find_state
from becket.kernel.contract.git import TreeHealth
from becket.kernel.contract.run import RunStatus
from becket.kernel.git.repository import discover
from becket.kernel.git.workspace import health
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World, run_git

ON_FEATURE = CONFIG.replace("AUTONOMY", "merge").replace("version: 1\n", "version: 1\nbranch: feature\n")


def test_a_linked_worktree_is_healed_beside_the_first_one(tmp_path: Path) -> None:
    """Its branch is moved in that very work tree; the first one and its test tree stay as they are."""
    agent = ScriptedAgent([Act(writes("calc.py", GOOD))])
    stage = HealStage(tmp_path, agent)
    assert asyncio.run(stage.heal()).status is RunStatus.completed
    linked = tmp_path / "beside" / "repo"
    stage.git("worktree", "add", "--quiet", "-b", "feature", str(linked))
    world = World(tmp_path / "beside", agents={"fixer": agent})
    broken = world.commit({"becket.yaml": ON_FEATURE, "calc.py": BAD}, "break it here")
    run = asyncio.run(world.run("heal"))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert (linked / "calc.py").read_text() == GOOD
    assert run_git(linked, ["rev-parse", "HEAD^"]) == broken
    assert run_git(linked, ["status", "--porcelain"]) == ""
    assert stage.main() == stage.green
    assert (linked / ".worktrees/base/calc.py").exists()
    assert asyncio.run(stage.heal()).status is RunStatus.completed


def test_a_test_tree_is_still_known_after_its_worktree_was_moved(tmp_path: Path) -> None:
    world = World(tmp_path)
    run_git(world.root, ["worktree", "add", "--quiet", "-b", "feature", str(tmp_path / "old.1")])
    opened(tmp_path / "old.1")
    run_git(world.root, ["worktree", "move", str(tmp_path / "old.1"), str(tmp_path / "new")])
    assert health(*find_state(tmp_path / "new").resident) is TreeHealth.good
    assert opened(tmp_path / "new") == tmp_path / "new/.worktrees/base"


def opened(root: Path) -> Path:
    folder, tree = find_state(root).resident
    return asyncio.run(discover(root).open_workspace(folder, "HEAD", tree)).tree
