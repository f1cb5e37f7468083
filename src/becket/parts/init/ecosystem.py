"""What detection speaks in: a folder read with care, the tools of the machine, and one finding per ecosystem."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pydantic import Field

from becket.kernel.checks import words
from becket.kernel.checks.facts import MissingTool
from becket.kernel.contract.base import Record
from becket.parts.gates.section import GateStep, SetupConfig

BIGGEST_FILE = 2_000_000
MOST_ENTRIES = 5_000
SKIPPED = frozenset(
    [
        "node_modules",
        "fuzz",
        "vendor",
        "third_party",
        "venv",
        "env",
        "target",
        "build",
        "dist",
        "out",
        "__pycache__",
        "site-packages",
        "testdata",
        "fixtures",
    ]
)
TEST_TIMEOUT = 600.0
BUILT = ".becket-built"
"""Where a step builds the project itself, from this commit: nothing of the project's own is written over."""


class Ecosystem(Record):
    """One kind of project found in one folder, and what it proposes for becket.yaml."""

    name: str
    folder: str  # below the root; empty for the root itself
    evidence: str
    fast: tuple[GateStep, ...] = ()
    slow: tuple[GateStep, ...] = ()
    test_side: tuple[str, ...] = ()
    setup: SetupConfig | None = None
    missing: tuple[MissingTool, ...] = ()
    notes: tuple[str, ...] = ()
    comments: dict[str, str] = Field(default_factory=dict)  # by a step's command: what becket.yaml says above it


class UnreadableProject(Exception):
    """What decides about the proposal cannot be understood or is not there; the message is the note for the person."""


class Tools:
    """What is installed, by a PATH. The project's own environment is left out: a proof starts from a clean tree."""

    def __init__(self, path: str | None = None) -> None:
        self._path = os.environ.get("PATH", os.defpath) if path is None else path

    def has(self, program: str) -> bool:
        return shutil.which(program, path=self._path) is not None

    def python_has(self, module: str) -> bool:
        """Can the python3 that a gate would run import this? `-I` leaves out user folders, as a sandbox does."""
        python = shutil.which("python3", path=self._path)
        if python is None:
            return False
        probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        try:
            end = subprocess.run(
                [python, "-I", "-c", probe],
                env={"PATH": self._path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return end.returncode == 0


class Folder:
    """The root or one folder below it. Reads only regular files inside the root, and only so much of them.

    Where `files` names those that a checkout has, there are no others.
    """

    def __init__(self, root: Path, name: str = "", files: frozenset[str] | None = None) -> None:
        self.root = root
        self.name = name
        self.listed = files
        self.path = root / name if name else root

    def has(self, name: str) -> bool:
        path = self.path / name
        try:
            real, root = path.resolve(), self.root.resolve()
            return path.is_file() and real.is_relative_to(root) and self._lists(real.relative_to(root).as_posix())
        except OSError:
            return False

    def _lists(self, file: str) -> bool:
        return self.listed is None or file in self.listed

    def at(self, name: str = "") -> Folder:
        """Another folder of the same root."""
        return Folder(self.root, name, self.listed)

    def has_folder(self, name: str) -> bool:
        path = self.path / name
        try:
            return path.is_dir() and not path.is_symlink() and self._has_listed_in(name)
        except OSError:
            return False

    def _has_listed_in(self, name: str) -> bool:
        inside = f"{self.below(name)}/"
        return self.listed is None or any(file.startswith(inside) for file in self.listed)

    def text(self, name: str) -> str:
        """The file's text; empty if it is not there."""
        if not self.has(name):
            return ""
        try:
            with (self.path / name).open("rb") as file:
                return file.read(BIGGEST_FILE).decode("utf-8-sig", errors="replace")
        except OSError as error:
            raise UnreadableProject(words.CANNOT_READ.format(file=self.below(name), why=error.strerror)) from error

    def toml(self, name: str) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text(name))
        except tomllib.TOMLDecodeError as error:
            raise UnreadableProject(words.CANNOT_READ.format(file=self.below(name), why=error)) from error

    def json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise UnreadableProject(words.CANNOT_READ.format(file=self.below(name), why=error)) from error
        if not isinstance(value, dict):
            raise UnreadableProject(words.CANNOT_READ.format(file=self.below(name), why=words.NOT_AN_OBJECT))
        return value

    def names(self, pattern: str) -> tuple[str, ...]:
        """Regular files directly here, or one folder down if the pattern says so."""
        try:
            found = [path.relative_to(self.path).as_posix() for path in self.path.glob(pattern)]
        except (ValueError, NotImplementedError):  # no pattern at all, or one that leads out
            return ()
        return tuple(sorted(name for name in found if self.has(name)))

    def files(self) -> Iterator[str]:
        """Relative paths of files at any depth, without what tools generate; only so many entries are looked at."""
        seen = 0
        for here, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not skipped(name))
            for name in sorted(names):
                if self._lists((file := Path(here) / name).relative_to(self.root).as_posix()):
                    yield file.relative_to(self.path).as_posix()
            seen += len(folders) + len(names)
            if seen > MOST_ENTRIES:
                return

    def named(self, *patterns: str) -> Iterator[str]:
        """The files, at any depth, whose name matches."""
        return (name for name in self.files() if any(fnmatch(name.rpartition("/")[2], one) for one in patterns))

    def below(self, name: str) -> str:
        """A path as seen from the root."""
        return f"{self.name}/{name}" if self.name else name

    def glob(self, pattern: str) -> str:
        return f"{glob.escape(self.name)}/{pattern}" if self.name else pattern

    def command(self, text: str) -> str:
        return f"cd {shlex.quote(self.name)} && {text}" if self.name else text

    def step_name(self, base: str) -> str:
        """A gate step's name: letters, digits and _ only, 40 characters leave room for a number."""
        slug = re.sub(r"[^a-z0-9]+", "_", f"{base}_{self.name}".lower()).strip("_")
        return slug[:40].rstrip("_")


def skipped(name: str) -> bool:
    return name.startswith(".") or name in SKIPPED


def missing_tools(tools: Tools, *programs: str) -> tuple[MissingTool, ...]:
    """Those not on PATH, each with the command that mends it."""
    return tuple(MissingTool(tool=name, mend=words.install(name)) for name in programs if not tools.has(name))
