"""Find out what a repository is made of, at its root and one folder down, and what its gates should run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from becket.kernel.checks import words
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.ecosystem import Ecosystem, Folder, Tools, UnreadableProject, skipped
from becket.parts.init.ecosystems import cargo, go, jvm, make, native, node, python, ruby

MOST_FOLDERS = 200
MOST_SEEN = 5
_BUILDS = ("Makefile", "makefile", "GNUmakefile", "Rakefile", "package.json", "setup.py", "pyproject.toml", "build.xml",
           "CMakeLists.txt", "meson.build", "configure.ac", "composer.json", "mix.exs", "Package.swift")  # fmt: skip
_LIKE_TESTS = ("test_*.*", "*_test.*", "*.test.*", "*_spec.*", "*.spec.*", "*Test.*", "*Tests.*")


class Detected(Record):
    """Everything found, the root's findings first. `notes` are about files that belong to no finding."""

    ecosystems: tuple[Ecosystem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fast(self) -> tuple[GateStep, ...]:
        return tuple(step for found in self.ecosystems for step in found.fast)

    @property
    def slow(self) -> tuple[GateStep, ...]:
        return tuple(step for found in self.ecosystems for step in found.slow)

    @property
    def test_side(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pattern for found in self.ecosystems for pattern in found.test_side))

    @property
    def setup(self) -> SetupConfig | None:
        """One set-up for all: becket.yaml has room for one."""
        wanted = {found.setup.run: found.setup for found in self.ecosystems if found.setup}
        if len(wanted) < 2:
            return next(iter(wanted.values()), None)
        full = any(setup.network is Network.full for setup in wanted.values())
        return SetupConfig(
            run=" && ".join(f"({run})" for run in wanted),
            key=tuple(dict.fromkeys(name for setup in wanted.values() for name in setup.key)),
            network=Network.full if full else Network.none,
            timeout=sum(setup.timeout for setup in wanted.values()),
        )


_Propose = Callable[[Folder, Tools], Ecosystem | None]


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one ecosystem is found, and whether a run at the root tests a folder below it too."""

    propose: _Propose
    covers: Callable[[Folder, Folder], bool]


_KINDS = {
    "python": _Kind(python.propose, python.covers),
    "go": _Kind(go.propose, go.covers),
    "cargo": _Kind(cargo.propose, cargo.covers),
    "node": _Kind(node.propose, node.covers),
    "maven": _Kind(jvm.propose_maven, jvm.covers_maven),
    "gradle": _Kind(jvm.propose_gradle, jvm.covers_gradle),
    "ruby": _Kind(ruby.propose, ruby.covers),
}


def _by_build(folder: Folder, tools: Tools) -> Ecosystem | None:
    """A build that tells its tests by name, else a Makefile."""
    return native.propose(folder, tools) or make.propose(folder, tools)


def detect(root: Path, tools: Tools | None = None, files: frozenset[str] | None = None) -> Detected:
    """Look at the root and at most 200 folders below it. Reads files; runs nothing of the project.

    With `files`, those that a checkout has, nothing else counts.
    """
    if not root.is_dir():
        raise UsageError(words.NO_FOLDER.format(path=root))
    return _Look(Folder(root, files=files), tools or Tools()).all()


@dataclass
class _Look:
    top: Folder
    tools: Tools
    notes: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)  # kinds whose files at the root cannot be read

    def all(self) -> Detected:
        top = self.top
        at_root = self._kinds(top)
        below = [
            (kind, found)
            for sub in self._folders()
            for kind, found in self._kinds(sub).items()
            if found.fast and not self._covered(kind, at_root, top, sub)
        ]
        alone = [found.folder for kind, found in below if kind == "python"]
        if alone and "python" in at_root:
            at_root["python"] = python.without_folders(at_root["python"], top, alone)
        found = self._with_builds(top, list(at_root.values()), [found for _, found in below])
        if not any(one.fast for one in found) and (seen := _seen(top)):
            self.notes.append(words.SEEN.format(names=", ".join(seen)))
        return Detected(ecosystems=_named_apart(found), notes=tuple(self.notes))

    def _kinds(self, folder: Folder) -> dict[str, Ecosystem]:
        found = {name: self._attempt(name, kind.propose, folder) for name, kind in _KINDS.items()}
        return {name: ecosystem for name, ecosystem in found.items() if ecosystem is not None}

    def _attempt(self, name: str, propose: _Propose, folder: Folder) -> Ecosystem | None:
        try:
            return propose(folder, self.tools)
        except UnreadableProject as error:
            self.notes.append(str(error))
            self.broken |= set() if folder.name else {name}
            return None

    def _covered(self, kind: str, at_root: dict[str, Ecosystem], top: Folder, sub: Folder) -> bool:
        """Also where the root's own file is broken: what belongs to the root is no project of its own."""
        if kind in at_root and not at_root[kind].fast:
            return False
        try:
            return (kind in at_root or kind in self.broken) and _KINDS[kind].covers(top, sub)
        except UnreadableProject:
            return False

    def _with_builds(self, top: Folder, at_root: list[Ecosystem], below: list[Ecosystem]) -> list[Ecosystem]:
        """Builds and Makefiles count where nothing better speaks for a folder."""
        if any(found.fast for found in at_root):
            return [*at_root, *below]
        names = [found.folder for found in below]
        others = [sub for sub in self._folders() if sub.name not in names]
        fallback = self._attempt("build", _by_build, top)
        if fallback is None or fallback.name == "make":  # any other builds its own folders
            below += [found for sub in others if (found := self._attempt("build", _by_build, sub)) and found.fast]
            below.sort(key=lambda found: found.folder)
        if fallback is None or make.only_delegates(top, names):
            return [*at_root, *below]
        return [fallback, *(found for found in at_root if found.slow or not fallback.fast), *below]

    def _folders(self) -> list[Folder]:
        """The folders to look at. Another repository inside this one is not part of its trees."""
        try:
            paths = sorted(self.top.path.iterdir())
        except OSError as error:
            raise UsageError(words.CANNOT_LIST.format(path=self.top.path, why=error.strerror)) from error
        names = [
            path.name
            for path in paths
            if path.name.isprintable()
            and not skipped(path.name)
            and path.is_dir()
            and not path.is_symlink()
            and not os.path.lexists(path / ".git")
            and not os.path.lexists(path / "pyvenv.cfg")
        ]
        if len(names) > MOST_FOLDERS and (note := words.TOO_MANY_FOLDERS.format(most=MOST_FOLDERS)) not in self.notes:
            self.notes.append(note)
        return [self.top.at(name) for name in names[:MOST_FOLDERS]]


def _seen(top: Folder) -> list[str]:
    """What a person would take for tests or a build, of which no command could be told."""
    builds = [name for name in _BUILDS if top.has(name)]
    return [*builds, *islice(top.named(*_LIKE_TESTS), MOST_SEEN)]


def _named_apart(ecosystems: Iterable[Ecosystem]) -> tuple[Ecosystem, ...]:
    """Step names are unique over all gates: a person names a step by its name alone."""
    taken: set[str] = set()

    def apart(step: GateStep) -> GateStep:
        name, number = step.name, 2
        while name in taken:
            name, number = f"{step.name}_{number}", number + 1
        taken.add(name)
        return step if name == step.name else step.model_copy(update={"name": name})

    return tuple(
        found.model_copy(update={"fast": tuple(map(apart, found.fast)), "slow": tuple(map(apart, found.slow))})
        for found in ecosystems
    )
