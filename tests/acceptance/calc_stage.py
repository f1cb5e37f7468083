"""A repository with a calculator, a bug and a test that finds it, for the real `becket` program."""

from __future__ import annotations

from pathlib import Path

from cli_stage import Stage

CHECK = """\
import sys

sys.path.insert(0, ".")
from calc import add

said = "" if add(2, 3) == 5 else f'<failure message="add(2, 3) is {add(2, 3)}, not 5">tests/test_calc.py:8</failure>'
case = f'<testcase classname="tests.test_calc" file="tests/test_calc.py" line="8" name="test_add">{said}</testcase>'
with open("report.xml", "w") as report:
    report.write(f'<testsuite name="unit" tests="1">{case}</testsuite>')
print("looked at add")
sys.exit(bool(said))
"""
GOOD = "def add(left, right):\n    return left + right\n"
BAD = GOOD.replace("+", "-")
CONFIG = """\
version: 1
autonomy: AUTONOMY
gates: {fast: [{name: unit, run: python3 tests/test_calc.py, report: "junit:report.xml"}]}
test_side: ["tests/**"]
sandbox: {use: none, without: [files, processes, network]}
"""
FIXER = "agents: {fixer: {driver: command, run: 'RUN'}}\n"
# The bug is in the first commit: there is no culprit that could be undone.
HEAL = ("run", "heal", "--with", "repair_never_green=true")
REPAIR = "sed -i s/-/+/ calc.py; echo It was the sign."


class Calculator(Stage):
    """A calculator with a bug."""

    def __init__(self, folder: Path, fixer: str = "", autonomy: str = "merge", more: str = "", calc: str = BAD) -> None:
        super().__init__(folder)
        agent = FIXER.replace("RUN", fixer.replace("'", "''")) if fixer else ""
        self.write("becket.yaml", CONFIG.replace("AUTONOMY", autonomy) + agent + more)
        self.write("tests/test_calc.py", CHECK)
        self.write(".gitignore", "report.xml\n__pycache__/\n")
        self.write("calc.py", calc)
        self.commit("a calculator")
