"""Task runners that gates call, the files in which these read what to do, and the part of a file that they obey."""

from __future__ import annotations

import configparser
import json
import posixpath
import tomllib
from collections.abc import Callable

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_SCRIPTS = ("package.json",)
RUNNERS: dict[str, tuple[str, ...]] = {
    "make": _MAKEFILES,
    "gmake": _MAKEFILES,
    "npm": _SCRIPTS,
    "pnpm": _SCRIPTS,
    "yarn": _SCRIPTS,
    "bun": _SCRIPTS,
    "composer": ("composer.json",),
    "rake": ("rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml", "tox.toml"),
    "nox": ("noxfile.py",),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "hatch": ("pyproject.toml", "hatch.toml"),
    "poe": ("pyproject.toml", "poe_tasks.toml"),
    "pdm": ("pyproject.toml",),
}


def obeyed_by(runner: str) -> tuple[str, ...]:
    return RUNNERS[runner]


def obeys_otherwise(runner: str, path: str, old: bytes, new: bytes) -> bool:
    """Does the runner read other orders in it now? What cannot be read is taken for changed."""
    part = _PARTS.get(posixpath.basename(path))
    if part is None:
        return old != new
    try:
        return part(runner, old) != part(runner, new)
    except (ValueError, TypeError, AttributeError, RecursionError, configparser.Error):
        return True


def _scripts(runner: str, content: bytes) -> object:
    return json.loads(content).get("scripts")


def _tool(runner: str, content: bytes) -> object:
    return tomllib.loads(content.decode()).get("tool", {}).get(runner)


def _sections(runner: str, content: bytes) -> object:
    read = configparser.RawConfigParser()
    read.read_string(content.decode())
    return {name: dict(read[name]) for name in read.sections() if name.startswith(("tox", "testenv"))}


_PARTS: dict[str, Callable[[str, bytes], object]] = {
    "package.json": _scripts,
    "composer.json": _scripts,
    "pyproject.toml": _tool,
    "setup.cfg": _sections,
}
"""Files that say much else; all others are whole what a runner obeys."""
