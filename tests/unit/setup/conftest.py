"""Real folders and real PATHs for the setup room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from becket.parts.init.detect import Detected, detect
from becket.parts.init.ecosystem import Tools

EVERY_TOOL = [
    "python3",
    "uv",
    "poetry",
    "ruff",
    "mypy",
    "go",
    "cargo",
    "node",
    "npm",
    "pnpm",
    "yarn",
    "mvn",
    "java",
    "gradle",
    "make",
]

MakeTree = Callable[[Mapping[str, str]], Path]
MakeTools = Callable[..., Tools]


@pytest.fixture
def tree(tmp_path: Path) -> MakeTree:
    """Write files, given as path -> text, into a fresh folder."""

    def make(files: Mapping[str, str]) -> Path:
        root = tmp_path / "repo"
        root.mkdir(exist_ok=True)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return make


@pytest.fixture
def tools(tmp_path: Path) -> MakeTools:
    """A PATH with these programs and no others. Every one of them ends with exit code 0, or 1 if it is to fail."""

    def make(*names: str, failing: tuple[str, ...] = ()) -> Tools:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text(f"#!/bin/sh\nexit {int(name in failing)}\n")
            (folder / name).chmod(0o755)
        return Tools(str(folder))

    return make


@pytest.fixture
def look(tree: MakeTree, tools: MakeTools) -> Callable[[Mapping[str, str]], Detected]:
    """Detect in a folder with these files, on a machine that has every tool."""

    def run(files: Mapping[str, str]) -> Detected:
        return detect(tree(files), tools(*EVERY_TOOL))

    return run
