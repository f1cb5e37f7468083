"""Files that a tool or an import would take in the place of the real thing, or load before it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from becket.contract.guard import Change, GuardRule, Refusal
from becket.verifiers.guard import words
from becket.verifiers.guard.paths import refused
from becket.verifiers.guard.side import TestSide

_LOADED_BY_ITSELF = re.compile(r"(?:^|/)(?:sitecustomize|usercustomize)(?:\.py|/__init__\.py)$|\.pth$|\.egg-link$")
# What tests check with, or against: a new module of such a name is none of the project's own.
_TEST_TOOLS = frozenset(
    {"pytest", "_pytest", "py", "pluggy", "iniconfig", "unittest", "doctest", "nose", "nose2", "hypothesis", "mock"}
    | {"numpy", "pandas", "scipy", "torch", "responses", "freezegun", "requests", "httpx", "django", "flask", "attr"}
    | {"coverage", "tox", "xdist", "pytest_asyncio", "pytest_cov", "pytest_mock", "pytest_timeout", "pytest_django"}
)
_HARMLESS = frozenset({"test", "tests", "this", "antigravity", "idlelib", "turtledemo", "__main__", "__future__"})
_OTHERS = re.compile(
    r"(?:^|/)node_modules/|(?:^|/)src/main/java/org/(?:junit|testng|assertj|mockito|hamcrest)/"
    r"|(?:^|/)vendor/(?:github\.com/(?:stretchr/testify|google/go-cmp|onsi)/|gotest\.tools/)"
)


def judge_shadows(change: Change, side: TestSide) -> Iterator[Refusal]:
    own = _own_modules(change.base_paths)
    present = change.base_paths | {file.path for file in change.files if file.in_candidate}
    for file in change.files:
        path = file.path
        if not file.in_candidate:
            continue
        if _LOADED_BY_ITSELF.search(path):
            yield refused(GuardRule.shadow_module, path, words.LOADED_BY_ITSELF)
        elif _OTHERS.search(path):
            yield refused(GuardRule.shadow_module, path, words.SHADOWS_TOOL)
        elif path not in change.base_paths and (name := _imported_as(path, present, side)):
            tool = name in _TEST_TOOLS or (name in sys.stdlib_module_names and name not in _HARMLESS)
            beside_tests = side.holds(path) and not path.startswith(("src/", "lib/"))
            if tool or (beside_tests and name in own):
                yield refused(GuardRule.shadow_module, path, words.shadows(name))


def _imported_as(path: str, present: frozenset[str], side: TestSide) -> str | None:
    """The module name by which this file would be found first, if its folder is where imports are looked up."""
    folder, _, file = path.rpartition("/")
    if file == "__init__.py" and folder:
        folder, _, name = folder.rpartition("/")
    elif file.endswith((".py", ".so", ".pyd")):
        name = file.partition(".")[0]
    else:
        return None
    if folder in {"", "src", "lib"}:
        return name
    inside_package = f"{folder}/__init__.py" in present
    return name if side.holds(path) and not inside_package else None


def _own_modules(paths: frozenset[str]) -> set[str]:
    """What the repository itself can be imported as."""
    found = set()
    for path in paths:
        parts = path.removeprefix("src/").removeprefix("lib/").split("/")
        if len(parts) == 1 and parts[0].endswith(".py"):
            found.add(parts[0].removesuffix(".py"))
        elif len(parts) == 2 and parts[1] == "__init__.py":
            found.add(parts[0])
    return found - {"tests", "test", "conftest", "setup", "__init__"}
