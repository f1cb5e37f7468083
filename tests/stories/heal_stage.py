"""A small real project with a real bug, for the stories of the heal loop."""

from __future__ import annotations

import sys
from pathlib import Path

from becket.kernel.contract.agent import Agent
from becket.kernel.contract.run import Run
from becket.testing.world import World, run_git

PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest"  # ours would double the time of each gate
GATE = f"{PYTEST} -q -p no:cacheprovider --junitxml=report.xml"
RERUN = f"{GATE} {{tests}}"

CONFIG = f"""
version: 1
autonomy: AUTONOMY
gates:
  fast:
    - {{name: unit, run: "{GATE}", rerun: "{RERUN}", report: "junit:report.xml", min_tests: 1, timeout: 60s}}
test_side: ["tests/**", "conftest.py"]
sandbox: {{use: none, without: [files, processes, network]}}
agents: {{fixer: {{driver: command, run: "true"}}}}
"""

GOOD = """
def add(left, right):
    return left + right


def mean(values):
    return sum(values) / len(values) if values else 0.0
"""
BAD = GOOD.replace("left + right", "left - right")
TESTS = """
from calc import add, mean


def test_add():
    assert add(2, 3) == 5


def test_add_nothing():
    assert add(0, 0) == 0


def test_mean():
    assert mean([1, 2, 3]) == 2
"""


class HealStage:
    """One repository whose main was green once and got a bug; `world` does the rest."""

    def __init__(
        self, folder: Path, agent: Agent | None = None, *, autonomy: str = "merge", config: str = "", **others: Agent
    ) -> None:
        self.agent = agent
        self.world = World(folder, agents=None if agent is None else {"fixer": agent, **others})
        text = (config or CONFIG).replace("AUTONOMY", autonomy)
        if agent is None:
            text = text.replace('agents: {fixer: {driver: command, run: "true"}}\n', "")
        self.green = self.world.commit(
            {
                "becket.yaml": text,
                "calc.py": GOOD,
                "tests/test_calc.py": TESTS,
                "conftest.py": "",
                ".gitignore": "__pycache__/\n*.pyc\nreport.xml\n",
            },
            "a calculator",
        )

    def break_it(self) -> str:
        return self.world.commit({"calc.py": BAD}, "make add faster")

    async def heal(self) -> Run:
        return await self.world.run("heal")

    def main(self) -> str:
        return run_git(self.world.root, ["rev-parse", "refs/heads/main"])

    def git(self, *arguments: str) -> str:
        return run_git(self.world.root, arguments)
