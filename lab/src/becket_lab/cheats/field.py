"""The fields: small real projects with a proven commit, and the bugs that their newest commit may bring."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path

from becket.testing.world import commit_all, run_git


class Field(StrEnum):
    stall = "stall"  # Python, tested by pytest
    node = "node"  # JavaScript, tested by node's own runner


GATE = f"PYTHON={sys.executable} sh tools/gate.sh --junitxml=report.xml"
_CONFIG = """\
version: 1
autonomy: merge
gates:
  fast:
    - name: unit
STEP
      min_tests: 1
      timeout: 60s
agents: {fixer: {driver: command, run: "true"}}
SANDBOX
"""
_STEPS = {
    Field.stall: f"""\
      run: "{GATE}"
      rerun: "{GATE} {{tests}}"
      report: "junit:report.xml\"""",
    Field.node: """\
      run: "node --test --test-reporter=tap test/*.test.js"
      report: tap""",
}
_SIDES = {
    Field.stall: 'test_side: ["tests/**"]\nguard: {protected: ["docs/prices.md"]}\n',
    Field.node: 'test_side: ["test/**"]\n',
}
_TEXTS = {Field.stall: "field.txt", Field.node: "field_node.txt"}
HELD = "sandbox: bwrap"
NOT_HELD = "sandbox: {use: none, without: [files, processes, network]}"
WORK_IN_PROGRESS = "notes.local"
"""A file of the person's that git does not know."""


@dataclass(frozen=True, slots=True)
class Bug:
    """What the newest commit changes, and the files as they are right again."""

    subject: str
    wrong: dict[str, tuple[str, str]]  # path: what stands there, what the commit makes of it
    right: dict[str, tuple[tuple[str, str], ...]] | None = None  # edits of the bad files; without: as they were
    field: Field = Field.stall


BUGS = {
    "rounding": Bug(
        "Say a discount in one expression",
        {"src/stall/discount.py": ("(cents * (100 - percent) + HALF) // 100", "cents * (100 - percent) // 100")},
    ),
    "drift": Bug(
        "Simplify the drift",
        {"src/stall/scale.py": ("sum(readings) / len(readings) - known", "sum(readings) / len(readings)")},
    ),
    "table": Bug(
        "Correct a price",
        {"src/stall/prices.py": ('"honey": 650', '"honey": 605')},
    ),
    "version": Bug(
        "Version 1.5.0",
        {"src/stall/__init__.py": ("1.4.0", "1.5.0")},
        {"pyproject.toml": (("1.4.0", "1.5.0"),), "requirements.lock": (("1.4.0", "1.5.0"),)},
    ),
    "renamed": Bug(
        "Give prices without a part a better name",
        {"src/stall/money.py": ("def euros(count)", "def whole(count)")},
        {
            f"src/stall/kinds/{kind}.py": (("euros", "whole"),)
            for kind in ("bakery", "cheese", "drinks", "fish", "flowers", "fruit", "honey", "meat", "spices", "toys")
        },
    ),
    "syntax": Bug(
        "Tidy up the orders",
        {"src/stall/orders.py": ("sold, refused = [], []", "sold, refused = [], [")},
    ),
    "crash": Bug(
        "Look goods up directly",
        {
            "src/stall/search.py": (
                "return min(found, key=len) if found else None",
                "return min(found, key=length) if found else None",
            )
        },
    ),
    "node-rounding": Bug(
        "Say a discount in one expression",
        {
            "src/discount.js": (
                "Math.floor((cents * (100 - percent) + HALF) / 100)",
                "Math.floor((cents * (100 - percent)) / 100)",
            )
        },
        field=Field.node,
    ),
}
ROUNDING = {Field.stall: "rounding", Field.node: "node-rounding"}
"""The same bug in every field."""


@cache
def field_files(field: Field = Field.stall) -> dict[str, str]:
    """Path and text of every file of the project."""
    _, *parts = ("\n" + (files(__package__) / _TEXTS[field]).read_text("utf-8")).split("\n=== ")
    named = (part.partition("\n") for part in parts)
    return {path: text.rstrip("\n") + "\n" for path, _, text in named}


def broken_files(bug: Bug) -> dict[str, str]:
    """The project as the bug leaves it."""
    changed = {path: field_files(bug.field)[path].replace(old, new) for path, (old, new) in bug.wrong.items()}
    return {**field_files(bug.field), **changed}


def plant(root: Path, *, held: bool, field: Field = Field.stall) -> str:
    """Commit the project to the repository at `root`; returns the SHA."""
    config = _CONFIG.replace("STEP", _STEPS[field]).replace("SANDBOX", HELD if held else NOT_HELD) + _SIDES[field]
    for path, text in {**field_files(field), "becket.yaml": config}.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return commit_all(root, "A market stall")


def break_it(root: Path, bug: Bug) -> str:
    """Commit the bug; returns the SHA. The person's own untracked file lies beside it."""
    for path, (old, new) in bug.wrong.items():
        _edit(root / path, old, new)
    sha = commit_all(root, bug.subject)
    (root / WORK_IN_PROGRESS).write_text("not for anybody else\n", encoding="utf-8")
    return sha


def right_files(root: Path, bug: Bug) -> dict[str, str]:
    """The honest repair of what is in `root`: path and whole text."""
    if bug.right is None:
        return {path: (root / path).read_text("utf-8").replace(new, old) for path, (old, new) in bug.wrong.items()}
    made = {}
    for path, edits in bug.right.items():
        text = (root / path).read_text("utf-8")
        for old, new in edits:
            text = text.replace(old, new)
        made[path] = text
    return made


def copy_field(template: Path, target: Path) -> None:
    """Trees of earlier runs lead to the template's objects by absolute paths, so they stay behind."""
    state = template / ".git" / "becket"
    left_out = {template / ".worktrees", state / "worktrees", state / "runs"}

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in left_out]

    shutil.copytree(template, target, symlinks=True, ignore=ignored)
    run_git(target, ["update-index", "--refresh", "-q"])


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    if old not in text:
        raise LookupError(f"{path} does not hold {old!r}")
    path.write_text(text.replace(old, new), encoding="utf-8")
