"""Repairs that rewrite what tests stand on, where `test_side` does not name it: asked about, while honest ones pass."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from heal_stage import PYTEST

from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World, run_git

CONFIG = """
version: 1
autonomy: merge
gates:
  fast:
    - {STEP, timeout: 60s}
test_side: TEST_SIDE
sandbox: {use: none, without: [files, processes, network]}
agents: {fixer: {driver: command, run: "true"}}
"""
JUNIT = f'name: unit, run: "{PYTEST} -q -p no:cacheprovider --junitxml=report.xml CASES", report: "junit:report.xml"'
PROGRAM = "def {name}(a, b):\n    return {body}\n"
CASE = """
import pytest

from load_testdata import load
from programs.{name} import {name}


@pytest.mark.parametrize("given, expected", load("{name}"))
def test_{name}(given, expected):
    assert {name}(*given) == expected
"""
LOADER = """
import json
from pathlib import Path


def load(name):
    path = Path(__file__).parent / ".." / f"json_testcases/{name}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]
"""
NAMES = {f"plus_{n}": f"a + b + {n}" for n in range(40)}


@dataclass(frozen=True)
class Place:
    """A repository that was green until `code` got `wrong` instead of `right`."""

    files: Mapping[str, str]
    step: str
    code: str
    right: str
    wrong: str
    test_side: str = "[]"
    tool: str = "git"


PROGRAMS = Place(
    files={
        **{f"programs/{name}.py": PROGRAM.format(name=name, body=body) for name, body in NAMES.items()},
        **{f"python_testcases/test_{name}.py": CASE.format(name=name) for name in NAMES},
        **{f"json_testcases/plus_{n}.json": f"[[2, 3], {5 + n}]\n[[0, 0], {n}]\n" for n in range(40)},
        "programs/__init__.py": "",
        "python_testcases/load_testdata.py": LOADER,
        "conftest.py": "",
    },
    step=JUNIT.replace("CASES", "python_testcases/test_plus_7.py python_testcases/test_plus_8.py"),
    code="programs/plus_7.py",
    right="a + b + 7",
    wrong="a - b + 7",
    test_side='["python_testcases/test_*.py"]',
)
ROOT = Place(
    tool="node",
    files={
        "package.json": '{"name": "slug", "version": "1.0.0"}\n',
        "index.js": "exports.slug = (text) => text.toLowerCase();\n",
        "test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "const { slug } = require('./index.js');\nconst { rows } = require('./test-rows.js');\n"
        "test('makes small letters', () => rows.forEach(([a, b]) => assert.strictEqual(slug(a), b)));\n",
        "test-rows.js": "exports.rows = [['A', 'a']];\n",
    },
    step='name: unit, run: "node --test --test-reporter=tap test.js", report: tap',
    code="index.js",
    right="toLowerCase",
    wrong="toUpperCase",
    test_side='["test/**"]',
)
MAKE = Place(
    tool="make",
    files={
        "Makefile": "check:\n\tpython3 app.py 2 3 > out.txt\n\tdiff out.txt expected.txt\n\tsh verify.sh\n",
        "app.py": "import sys\n\n\ndef plus(a, b):\n    return int(a) + int(b)\n\n\nprint(plus(*sys.argv[1:]))\n",
        "expected.txt": "5\n",
        "verify.sh": 'test "$(python3 app.py 1 1)" = 2 || exit 1\n',
        ".gitignore": "out.txt\n",
    },
    step='name: all, run: "make check"',
    code="app.py",
    right="int(a) + int(b)",
    wrong="int(a) - int(b)",
)
PACKAGE = Place(
    files={
        "shop/__init__.py": "",
        "shop/cart.py": "def total(prices):\n    return sum(prices)\n",
        "shop/tests.py": "import unittest\n\nfrom shop.cart import total\nfrom shop.test_prices import PRICES\n\n\n"
        "class TestCart(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total(PRICES), 6)\n",
        "shop/test_prices.py": "PRICES = [1, 2, 3]\n",
    },
    step=JUNIT.replace("CASES", "shop/tests.py"),
    code="shop/cart.py",
    right="sum(prices)",
    wrong="max(prices)",
    test_side='["tests/**"]',
)


def healed(folder: Path, place: Place, repair: Mapping[str, str]) -> tuple[World, str, Run]:
    """The world after a repair that writes these files, and where main was before it."""
    assert shutil.which(place.tool), f"this story needs {place.tool}; `make test-slow` installs it"
    acts = [Act(lambda tree: [writes(path, text)(tree) for path, text in repair.items()])]
    world = World(folder, agents={"fixer": ScriptedAgent(acts * 4)})
    config = CONFIG.replace("STEP", place.step).replace("TEST_SIDE", place.test_side)
    ignored = place.files.get(".gitignore", "") + "__pycache__/\n*.pyc\nreport.xml\n"
    world.commit({**place.files, "becket.yaml": config, ".gitignore": ignored}, "all is well")
    asyncio.run(world.run("heal"))
    assert place.right in place.files[place.code]
    broken = place.files[place.code].replace(place.right, place.wrong)
    bad = world.commit({place.code: broken}, "make it faster")
    return world, bad, asyncio.run(world.run("heal"))


def main_of(world: World) -> str:
    return run_git(world.root, ["rev-parse", "refs/heads/main"])


def refused(world: World, run: Run) -> set[tuple[str, str]]:
    """Rules and paths of what the guard said last."""
    steps = asyncio.run(world.store.steps(run.run_id))
    told = [item for step in steps for item in step.conditions if item.name in ("test_change_asked", "guard_refused")]
    return {(each["rule"], each["path"]) for each in told[-1].evidence["refusals"]} if told else set()


@pytest.mark.parametrize(
    ("place", "repair", "rule"),
    [
        (PROGRAMS, {"json_testcases/plus_7.json": "[[2, 3], 6]\n[[0, 0], 7]\n"}, "test-support-changed"),
        (
            PROGRAMS,
            {
                "python_testcases/load_testdata.py": LOADER.replace(
                    "read_text().splitlines()", "read_text().split()[:0]"
                )
            },
            "test-support-changed",
        ),
        pytest.param(
            *(ROOT, {"test-rows.js": "exports.rows = [['A', 'A']];\n"}, "test-support-changed"), marks=pytest.mark.slow
        ),
        (PACKAGE, {"shop/test_prices.py": "PRICES = [6]\n"}, "test-support-changed"),
        (PACKAGE, {"shop/tests.py": PACKAGE.files["shop/tests.py"].replace("6)", "3)")}, "test-changed"),
    ],
    ids=["data", "loader", "rows", "prices", "tests.py"],
)
def test_what_only_tests_use_is_not_repaired_without_a_person(
    tmp_path: Path, place: Place, repair: dict[str, str], rule: str
) -> None:
    """L21: rewriting the rows that tests read is rewriting the tests, whatever `test_side` names."""
    world, bad, run = healed(tmp_path, place, repair)
    assert main_of(world) == bad
    assert refused(world, run) == {(rule, path) for path in repair}
    assert run.status is RunStatus.waiting


@pytest.mark.parametrize("path", ["expected.txt", "verify.sh"])
def test_what_a_makefile_gate_compares_with_is_not_repaired_without_a_person(tmp_path: Path, path: str) -> None:
    repair = {"expected.txt": "-1\n"} if path == "expected.txt" else {"verify.sh": "exit 0\n", "expected.txt": "-1\n"}
    world, bad, run = healed(tmp_path, MAKE, repair)
    assert main_of(world) == bad
    assert path in {where for _, where in refused(world, run)}


@pytest.mark.parametrize(
    "place",
    [PROGRAMS, pytest.param(ROOT, marks=pytest.mark.slow), MAKE, PACKAGE],
    ids=["programs", "root", "make", "package"],
)
def test_an_honest_repair_beside_them_is_promoted(tmp_path: Path, place: Place) -> None:
    world, bad, run = healed(tmp_path, place, {place.code: place.files[place.code]})
    assert run.status is RunStatus.completed, (run.reason, run.detail, refused(world, run))
    assert run_git(world.root, ["rev-parse", "main^"]) == bad


def test_the_crossing_puts_back_what_was_found(tmp_path: Path) -> None:
    """A new row beside the tests cannot help a repair that needs it."""
    wrong = PROGRAMS.files["programs/plus_7.py"].replace("a + b + 7", "12 if a else 7")
    world, bad, run = healed(tmp_path, PROGRAMS, {"programs/plus_7.py": wrong, "json_testcases/more.json": "[]\n"})
    tried = run_git(world.root, ["for-each-ref", "--format=%(refname)", "refs/becket/crossing/"]).splitlines()
    assert tried, (main_of(world) == bad, run.reason)
    assert "json_testcases/more.json" not in run_git(world.root, ["ls-tree", "-r", "--name-only", tried[0]])


def test_where_no_failing_test_can_be_tied_to_a_file_the_repair_is_proposed(tmp_path: Path) -> None:
    """The titles are put together at run time: nobody can tell which file decided."""
    harness = (
        "import sys\nfrom app import add\nwords = ['one', 'plus', 'one']\nright = add(1, 1) == 2\n"
        "print('1..1')\nprint('ok' if right else 'not ok', 1, '-', ' '.join(words))\nsys.exit(not right)\n"
    )
    place = Place(
        files={"app.py": "def add(a, b):\n    return a + b\n", "run_all.py": harness},
        step='name: unit, run: "python3 run_all.py", report: tap',
        code="app.py",
        right="a + b",
        wrong="a - b",
    )
    world, bad, run = healed(tmp_path, place, {place.code: place.files[place.code]})
    assert main_of(world) == bad
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready")
    assert "no failing test can be tied to a file" in str(run.detail)
