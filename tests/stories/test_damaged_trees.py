"""A gate step that wrecks its tree, in every sandbox there is: its own commit is judged by what git outside sees, and
the next commit of the same repository as if nothing had been.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from becket.kernel.contract.run import Run, RunStatus
from becket.testing.world import World

PROGRAM = Path(__file__).parents[1] / "contracts" / "tree_damages.py"
CONFIG = """
version: 1
gates:
  fast:
    - {{name: check, run: "sh check.sh", timeout: 60s}}
sandbox: {{use: {use}, without: [files, processes, network]}}
"""
SETUP = """
setup: {run: "sh setup.sh", key: [setup.sh, damages.py]}
"""
LOOP = f"""
version: 1
loop_id: wreck
goal: Its own folders are wrecked.
trigger: [manual: {{}}]
subject: "wreck/{{seed}}"
inputs: {{seed: {{type: integer}}}}
max_iterations: 1
deadline: 10m
stop_conditions: [done, seen.pass]
phases:
  act:
    objective: Wreck them.
    actions:
      - {{id: scratch, run: '{sys.executable} {PROGRAM} "{{seed}}"', in: scratch}}
      - {{id: tree, run: '{sys.executable} {PROGRAM} "{{seed}}"', raises: {{"0": done}}}}
  verify:
    objective: Nothing to doubt.
    verifiers: [{{id: seen, run: "true", in: scratch}}]
"""


def _damages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tree_damages", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DAMAGES = _damages()


class Wrecked:
    """One repository whose commits wreck their tree, or do not."""

    def __init__(self, folder: Path, sandbox: str, more: str = "") -> None:
        self.world = World(folder)
        files = {"app.py": "x = 1\n", "src/lib.py": "y = 1\n", "damages.py": PROGRAM.read_text(), "setup.sh": "true\n"}
        self.world.commit({"becket.yaml": CONFIG.format(use=sandbox) + more, **files, "check.sh": "true\n"}, "first")

    def judged(self, check: str) -> tuple[Run, bool]:
        """How the run about a commit with this check ended, and whether the commit was proven."""
        sha = self.world.commit({"check.sh": check}, check.strip())
        run = asyncio.run(self.world.run("heal"))
        return run, asyncio.run(self.world.store.recorded_by("proven", f"main@{sha}")) == run.run_id

    def wreck(self, seed: int) -> None:
        names = DAMAGES.chosen(seed)
        run, proven = self.judged(f"{sys.executable} damages.py {seed}\n")
        voided = any(DAMAGES.DEEDS[name] in DAMAGES.VOIDING for name in names)
        assert not (voided and proven), names
        assert run.status in (RunStatus.completed, RunStatus.ready_for_handoff), (names, run.reason, run.detail)
        run, proven = self.judged(f"true after {seed}\n")
        assert (run.status, proven) == (RunStatus.completed, True), (names, run.reason, run.detail)


def test_a_step_that_removes_its_git_stops_nothing_after_it(tmp_path: Path) -> None:
    place = Wrecked(tmp_path, "none")
    for name in ("git_removed", "root_emptied"):
        place.wreck(list(DAMAGES.DEEDS).index(name))


@pytest.mark.slow
@pytest.mark.parametrize(("sandbox", "seeds"), [("bwrap", range(100, 107)), ("landlock", range(200, 205))])
def test_no_damage_stops_what_comes_after_it(tmp_path: Path, sandbox: str, seeds: range) -> None:
    """Two to four damages at once; each of them alone is in the suite of the git port."""
    place = Wrecked(tmp_path, sandbox)
    for seed in seeds:
        place.wreck(seed)


@pytest.mark.slow
def test_a_set_up_that_wrecks_its_folder_stops_no_later_one(tmp_path: Path) -> None:
    place = Wrecked(tmp_path, "bwrap", SETUP)
    for name in ("folders_closed", "deep_path", "pipes_that_git_reads", "root_emptied"):
        seed = list(DAMAGES.DEEDS).index(name)
        place.world.commit({"setup.sh": f"mkdir out; touch out/x; {sys.executable} damages.py {seed}\n"}, name)
        place.judged(f"true during {seed}\n")
        place.world.commit({"setup.sh": f"mkdir out; touch out/{seed}\n"}, "mended")
        run, proven = place.judged(f"true after {seed}\n")
        assert (run.status, proven) == (RunStatus.completed, True), (name, run.reason, run.detail)


@pytest.mark.parametrize("name", ["deep_path", "upper_git", "folders_closed", "pipes_that_git_reads", "root_closed"])
def test_the_folder_of_an_ended_run_is_gone_whatever_it_did_there(tmp_path: Path, name: str) -> None:
    place = Wrecked(tmp_path, "none")
    place.world.loop(LOOP)
    run = asyncio.run(place.world.run("wreck", inputs={"seed": list(DAMAGES.DEEDS).index(name)}))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert not place.world.app.places.of_run(run.run_id).exists()
