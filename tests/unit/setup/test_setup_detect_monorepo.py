"""Several projects in one repository: who is covered by the root, what stands alone, and names that stay apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from becket.kernel.contract.process import Network
from becket.parts.init.detect import Detected

Look = Callable[[Mapping[str, str]], Detected]

MOCHA = json.dumps({"scripts": {"test": "mocha"}})
CRATE = "[package]\nname = 'x'\n"


def module(*folders: str) -> dict[str, str]:
    """Go modules that have tests."""
    return {f"{folder}/{name}": "" for folder in folders for name in ("go.mod", "a_test.go")}


def test_a_nested_module_without_tests_gets_no_gate_and_is_named(look: Look) -> None:
    detected = look({"go.mod": "", "a_test.go": "", "generator/go.mod": "", "generator/main.go": ""})
    assert [step.run for step in detected.fast] == ["go test -json ./..."]
    assert detected.ecosystems[0].notes == ()
    (note,) = detected.notes
    assert note.startswith("generator/go.mod: no tests")


def test_folders_below_the_root_are_found_with_their_own_commands(look: Look) -> None:
    detected = look(
        {
            "api/pyproject.toml": "[project]\nname = 'api'\n[tool.pytest.ini_options]\n",
            "api/tests/test_a.py": "",
            "web/package.json": MOCHA,
            "svc/go.mod": "module svc\n",
            "svc/a_test.go": "",
        }
    )
    assert [(found.folder, found.evidence) for found in detected.ecosystems] == [
        ("api", "api/pyproject.toml"),
        ("svc", "svc/go.mod"),
        ("web", "web/package.json"),
    ]
    assert [(step.name, step.run, step.report) for step in detected.fast] == [
        ("pytest_api", "cd api && python3 -m pytest -q --junitxml=report.xml", "junit:api/report.xml"),
        ("go_test_svc", "cd svc && go test -json ./...", "go"),
        ("npm_test_web", "cd web && npm test", "plain"),
    ]
    assert {"api/tests/**", "svc/**/*_test.go", "web/**/*.test.*"} <= set(detected.test_side)


@pytest.mark.parametrize(
    ("files", "folders"),
    [
        ({"go.mod": "", **module("tool")}, ["", "tool"]),
        (
            {"Cargo.toml": "[workspace]\nmembers = ['a', 'lib-*']\n", "a/Cargo.toml": CRATE, "lib-b/Cargo.toml": CRATE},
            [""],
        ),
        ({"Cargo.toml": "[workspace]\nmembers = ['*']\nexclude = ['a']\n", "a/Cargo.toml": CRATE}, ["", "a"]),
        (
            {"Cargo.toml": CRATE + "[workspace]\n[dependencies]\nb = {path = './b'}\n", "b/Cargo.toml": CRATE},
            [""],
        ),
        ({"Cargo.toml": CRATE, "b/Cargo.toml": CRATE}, ["", "b"]),
        ({"pom.xml": "<module>core</module>", "core/pom.xml": "", "other/pom.xml": ""}, ["", "other"]),
        ({"pom.xml": "<!-- <module>core</module> -->", "core/pom.xml": ""}, ["", "core"]),
        ({"settings.gradle": "include 'a'", "a/build.gradle": ""}, [""]),
        ({"settings.gradle": "", "b/build.gradle": "", "b/settings.gradle": ""}, ["", "b"]),
        ({"build.gradle": "", "a/build.gradle": ""}, ["", "a"]),
        ({"package.json": MOCHA, "web/package.json": MOCHA}, ["", "web"]),
        (
            {"package.json": json.dumps({"scripts": {"test": "x"}, "workspaces": ["web"]}), "web/package.json": MOCHA},
            [""],
        ),
        ({"tests/test_a.py": "", "lib/tests/test_b.py": ""}, [""]),
        ({"tests/test_a.py": "", "tests/requirements.txt": "pytest\n", "tests/pytest.ini": "[pytest]\n"}, [""]),
    ],
)
def test_the_root_covers_only_what_it_really_runs(look: Look, files: Mapping[str, str], folders: list[str]) -> None:
    assert [found.folder for found in look(files).ecosystems] == folders


def test_the_roots_pytest_leaves_out_projects_that_stand_alone(look: Look) -> None:
    files = {"tests/test_a.py": "", "my plugin/setup.py": "", "my plugin/tests/test_b.py": ""}
    assert [step.run for step in look(files).fast] == [
        "python3 -m pytest -q --junitxml=report.xml --ignore='my plugin'",
        "cd 'my plugin' && python3 -m pytest -q --junitxml=report.xml",
    ]


def test_a_root_whose_tests_all_stand_alone_gets_no_empty_step(look: Look) -> None:
    """L11: a step that collects nothing would be red for ever."""
    detected = look({"pyproject.toml": "[tool.ruff]\n", "api/setup.py": "", "api/tests/test_a.py": ""})
    assert [step.name for step in detected.fast] == ["pytest_api"]
    assert [step.name for step in detected.slow] == ["ruff"]


@pytest.mark.parametrize(
    ("files", "run"),
    [
        ({"package.json": json.dumps({"workspaces": ["packages/*"]})}, "npm test --workspaces --if-present"),
        (
            {"package.json": json.dumps({"workspaces": {"packages": ["./packages/*"]}})},
            "npm test --workspaces --if-present",
        ),
        (
            {"package.json": "{}", "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n", "pnpm-lock.yaml": ""},
            "pnpm -r test",
        ),
    ],
)
def test_workspaces_two_folders_down_are_tested_from_the_root(look: Look, files: Mapping[str, str], run: str) -> None:
    assert [step.run for step in look({**files, "packages/a/package.json": MOCHA}).fast] == [run]
    assert look({**files, "packages/a/package.json": "{}"}).fast == ()


def test_a_member_without_a_lock_uses_the_roots(look: Look) -> None:
    detected = look({"package.json": json.dumps({"workspaces": ["web"]}), "yarn.lock": "", "web/package.json": MOCHA})
    assert [step.run for step in detected.fast] == ["cd web && yarn test"]
    assert detected.setup is not None
    assert detected.setup.run == "yarn install --frozen-lockfile"


def test_odd_workspace_patterns_do_no_harm(look: Look) -> None:
    odd = json.dumps({"workspaces": ["../..", "/etc", "", "a**b", "!x", 5]})
    assert look({"package.json": odd}).fast == ()


def test_step_names_stay_unique_whatever_the_folders_are_called(look: Look) -> None:
    detected = look(module("a-b", "a.b", "A b", "ünï", "9lives", "x" * 100))
    names = [step.name for step in (*detected.fast, *detected.slow)]
    assert len(names) == len(set(names)) == 12


def test_two_set_ups_become_one(look: Look) -> None:
    detected = look(
        {
            "requirements.txt": "pytest\n",
            "tests/test_a.py": "",
            "web/package.json": json.dumps({"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "1"}}),
            "web/package-lock.json": "{}",
        }
    )
    assert detected.setup is not None
    assert detected.setup.run == (
        "(python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt) && (cd web && npm ci)"
    )
    assert detected.setup.key == ("requirements.txt", "web/package-lock.json", "web/package.json")
    assert (detected.setup.network, detected.setup.timeout) == (Network.full, 3600)


@pytest.mark.parametrize("name", [".hidden", "node_modules", "vendor", "target", "testdata", "bad\nname"])
def test_folders_that_are_not_the_projects_own(look: Look, name: str) -> None:
    assert look(module(name)).ecosystems == ()


@pytest.mark.parametrize("mark", [".git", "pyvenv.cfg"])
def test_another_repository_or_environment_inside_is_left_alone(look: Look, mark: str) -> None:
    assert look({**module("sub"), f"sub/{mark}": "gitdir: elsewhere\n"}).ecosystems == ()


def test_only_the_first_two_hundred_folders_are_looked_at(look: Look) -> None:
    detected = look(module(*(f"d{number:03}" for number in range(203))))
    assert len(detected.ecosystems) == 200
    assert "first 200" in detected.notes[0]


@pytest.mark.parametrize(
    ("recipe", "runs"),
    [
        ("test:\n\tcd web && npm test\n\t$(MAKE) -C ./web lint\n", ["cd web && npm test"]),
        ("test:\n\t./own-tests\n\tcd web && npm test\n", ["make test", "cd web && npm test"]),
        ("test: unit\n\tcd web && npm test\n", ["make test", "cd web && npm test"]),
        ("test:\n\tcd website && npm test\n", ["make test", "cd web && npm test"]),
    ],
)
def test_a_root_makefile_counts_unless_it_only_enters_found_folders(look: Look, recipe: str, runs: list[str]) -> None:
    assert [step.run for step in look({"Makefile": recipe, "web/package.json": MOCHA}).fast] == runs


def test_makefiles_below_count_only_without_anything_at_the_root(look: Look) -> None:
    below = {"firmware/Makefile": "test:\n\t./run\n", "web/package.json": MOCHA}
    assert [step.run for step in look(below).fast] == ["cd firmware && make test", "cd web && npm test"]
    assert [step.run for step in look({"go.mod": "", **below}).fast] == ["go test -json ./...", "cd web && npm test"]
