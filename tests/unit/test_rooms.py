"""Who may import whom, room by room; and no folder is outside of these rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from becket.app.parts import load

SOURCE = Path(__file__).parents[2] / "src" / "becket"

LEVELS = {"kernel": 0, "app": 1, "cli": 2}
"""Each may import what is below it, and knows no part by name: parts come by their entry points."""

SOFT_CAP, HARD_CAP = 400, 600


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "migrations" not in path.parts)


def room_of(name: Sequence[str]) -> str:
    """kernel, app, cli, testing, or the part."""
    if name[0] != "parts":
        return name[0] if len(name) > 1 or name[0] in (*LEVELS, "testing") else ""
    return ".".join(name[:2])


def own_name(path: Path) -> tuple[str, ...]:
    return path.relative_to(SOURCE).with_suffix("").parts


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports_of(path: Path) -> set[tuple[str, ...]]:
    """Every `becket.*` module that a file names, at any depth."""
    found: set[tuple[str, ...]] = set()
    for node in nodes_of(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"becket.{each.name}" for each in node.names] if node.module == "becket" else [node.module]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1, f"{path}: a relative import that leaves its folder"
        found |= {tuple(name.split(".")) for name in names if name.split(".")[0] == "becket" and "." in name}
    return found


def not_allowed(own: tuple[str, ...], imports: set[tuple[str, ...]]) -> Iterator[str]:
    """The imports that a module may not have, each with the reason."""
    room = room_of(own)
    if room in ("", "testing"):
        return
    for name in imports:
        other = room_of(name[1:])
        if other in (room, ""):
            continue
        said = f"{'.'.join(own)} may not import {'.'.join(name)}"
        if room in LEVELS:
            if other not in LEVELS:
                yield f"{said}: parts come by their entry points"
            elif LEVELS[other] >= LEVELS[room]:
                yield said
        elif other in LEVELS:
            if other == "cli" and "verbs" not in own:
                yield f"{said}: only verbs speak to the command line"
        elif other.removeprefix("parts.") not in load(f"becket.{room}.part:PART").needs:
            yield f"{said}: {room}/part.py does not need it"


def test_a_module_imports_only_what_its_room_may() -> None:
    assert len(modules()) > 500
    assert [said for path in modules() for said in not_allowed(own_name(path), imports_of(path))] == []


@pytest.mark.parametrize(
    ("module", "imported", "why"),
    [
        ("kernel.engine.walk", "app.desk", "may not import"),
        ("app.desk", "parts.heal.way", "parts come by their entry points"),
        ("parts.heal.way", "cli.output", "only verbs speak to the command line"),
        ("parts.gates.checks", "parts.heal.way", "parts/gates/part.py does not need it"),
        ("parts.gates.checks", "testing.world", "does not need it"),
    ],
)
def test_an_import_that_crosses_a_wall_is_found(module: str, imported: str, why: str) -> None:
    found = list(not_allowed(tuple(module.split(".")), {("becket", *imported.split("."))}))
    assert len(found) == 1
    assert why.replace("parts/gates", "parts.gates") in found[0]


@pytest.mark.parametrize("line", ["from becket import app", "import becket.app", "from becket.app import compose"])
def test_every_way_to_import_a_room_is_seen(line: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"def late():\n    {line}\n")
    assert [room_of(name[1:]) for name in imports_of(path)] == ["app"]


def test_nothing_but_tests_imports_testing() -> None:
    users = [own_name(path) for path in modules() if any(name[1] == "testing" for name in imports_of(path))]
    assert [name for name in users if room_of(name) != "testing"] == []


def test_only_the_door_mints_permits() -> None:
    callers = [path.relative_to(SOURCE).as_posix() for path in modules() if "door_mint" in path.read_text()]
    assert callers == ["kernel/contract/effect.py", "kernel/engine/door.py"]


def test_there_is_no_room_for_leftovers() -> None:
    assert [path for path in modules() if path.stem in {"utils", "util", "helpers", "misc", "common"}] == []


def test_files_stay_small() -> None:
    lines = {path.relative_to(SOURCE).as_posix(): len(path.read_text().splitlines()) for path in modules()}
    assert {name: count for name, count in lines.items() if count > HARD_CAP} == {}
    over = [name for name, count in lines.items() if count > SOFT_CAP]
    assert len(over) <= len(lines) // 20, f"too many files beyond {SOFT_CAP} lines: {over}"


def test_most_functions_fit_a_glance() -> None:
    """The ninetieth percentile of function lengths is under 35 lines."""
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in modules()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert lengths[int(len(lengths) * 0.9)] < 35


WALK = re.compile(r"^\| (\d+) \| `([^`]+)` \| (?:`(\w+)`)? ?\| ", re.MULTILINE)


def test_the_walk_of_a_heal_run_is_short_and_all_there() -> None:
    steps = WALK.findall((SOURCE.parents[1] / "docs" / "design.md").read_text())
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert 30 < len(steps) <= 45
    for _, file, function in steps:
        text = (SOURCE / file).read_text()
        assert not function or f"def {function}(" in text, f"{file} has no {function}"
