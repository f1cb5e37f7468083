"""The test side of a commit, for people who ask: without a run, without a state, and without becket.yaml."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from becket.app.project import FILE
from becket.app.sections import config_model, load_config
from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.git import Git
from becket.kernel.git.repository import discover
from becket.parts.guard.actions.side import find_side
from becket.parts.guard.reading.side import SideReason, TestSide, test_side_of
from becket.parts.guard.section import TEST_SIDE

FEW = 3  # files of one folder that are listed by name


class SideFile(Record):
    path: str
    reason: SideReason


class SideSeen(Record):
    """`declares`: the commit's becket.yaml has a `test_side`; else the globs are the usual ones."""

    commit: str
    declares: bool
    globs: tuple[str, ...]
    total: int
    files: tuple[SideFile, ...]
    folders: tuple[str, ...]  # a new file there would belong to the tests too


async def look(folder: Path, at: str | None = None) -> SideSeen:
    """At a commit, by its own becket.yaml where it has one."""
    git = discover(folder)
    commit = await git.resolve(at or "HEAD")
    if commit is None:
        raise UsageError(f"--at {at}: there is no such commit" if at else "there is no commit yet; make one first")
    config = await _config(git, commit)
    side = await find_side(git, commit, config)
    return SideSeen(
        commit=commit,
        declares=bool(config.section(TEST_SIDE)),
        globs=test_side_of(config).globs,
        total=len(await git.listing(commit)),
        files=tuple(SideFile(path=path, reason=side.found[path]) for path in sorted(side.found)),
        folders=outermost(side),
    )


def outermost(side: TestSide) -> tuple[str, ...]:
    return tuple(sorted(folder for folder in side.folders if not side.folder_of(folder)))


def rows_for(paths: Sequence[str], most: int) -> list[tuple[str, int]]:
    """Files, and folders with their number of files: as deep as fits into so many rows, else the shallowest."""
    rows = _rows(paths, 20)
    for depth in (3, 2, 1):
        if len(rows) > most:
            rows = _rows(paths, depth)
    return rows


def _rows(paths: Sequence[str], depth: int) -> list[tuple[str, int]]:
    together: dict[str, list[str]] = {}
    for path in paths:
        together.setdefault("/".join(path.split("/")[:-1][:depth]), []).append(path)
    rows: list[tuple[str, int]] = []
    for folder, files in together.items():
        rows += [(f"{folder}/", len(files))] if folder and len(files) > FEW else [(path, 1) for path in files]
    return rows


async def _config(git: Git, commit: str) -> Config:
    text = await git.read_bytes(commit, FILE)
    if text is None:
        return config_model()(version=1)
    return load_config(text, f"{FILE} of {commit[:12]}", os.environ)
