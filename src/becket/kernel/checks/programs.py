"""Checks that the programs named in becket.yaml are there (L13)."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from becket.kernel.checks import words
from becket.kernel.checks.configuration import place_of
from becket.kernel.checks.facts import Diagnosis, Exam, Level, MissingTool
from becket.kernel.checks.shell import Program, program_of
from becket.kernel.checks.toolchains import unseen
from becket.kernel.contract.config import Config


def missing_program(
    exam: Exam, config: Config, user: str, command: str, *, may_be_made: bool = False
) -> Iterator[Diagnosis]:
    """`may_be_made`: a set-up runs before it, and may make it, such as .venv/bin/python."""
    where = place_of(exam, command)
    try:
        program = program_of(command)
    except ValueError as error:
        what = words.NOT_SHELL.format(user=user, why=error)
        yield Diagnosis(name="tools", level=Level.error, what=what, mend=words.NOT_SHELL_MEND, where=where)
        return
    if program is None:
        return
    if there(exam, program):
        yield from unseen(exam, config, user, program.word) if "/" not in program.word else ()
        return
    if "/" in program.word and may_be_made:
        return
    what = words.TOOL_MISSING.format(tool=program.word, user=user)
    yield Diagnosis(name="tools", level=Level.error, what=what, mend=mend_of(exam, program), where=where)


def needed(missing: MissingTool) -> Diagnosis:
    """What the proposal of `becket init` needs besides the programs that its commands start."""
    what = words.TOOL_NEEDED.format(tool=missing.tool)
    return Diagnosis(name="tools", level=Level.warn, what=what, mend=missing.mend)


def mend_of(exam: Exam, program: Program) -> str:
    if "/" not in program.word:
        return words.install(program.word, _pinned(exam, program))
    return words.FILE_MEND.format(file=shlex.quote(str(Path(program.folder) / program.word)))


def _pinned(exam: Exam, program: Program) -> str:
    """The version of pnpm that package.json names: another one refuses what was set up with it."""
    if program.word != "pnpm" or exam.facts.root is None:
        return ""
    try:
        told = json.loads((exam.facts.root / program.folder / "package.json").read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    found = re.match(r"pnpm@(\d[\w.-]*)", str(told.get("packageManager")) if isinstance(told, dict) else "")
    return found[1] if found else ""


def there(exam: Exam, program: Program) -> bool:
    if "/" not in program.word:
        return exam.facts.which(program.word) is not None
    path = (exam.facts.root or Path()) / program.folder / program.word
    return path.is_file() and os.access(path, os.X_OK)
