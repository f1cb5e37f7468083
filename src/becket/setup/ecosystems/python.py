"""Python projects: pytest as the test step, ruff and mypy where they are configured, a lock file as set-up."""

from __future__ import annotations

import configparser
import posixpath
import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from typing import Any, Literal

from becket.contract.config import GateStep, SetupConfig
from becket.contract.process import Network
from becket.setup import words
from becket.setup.ecosystem import TEST_TIMEOUT, Ecosystem, Folder, Missing, Tools, Unreadable, missing_tools

_MARKERS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "setup.py")
_REQUIREMENTS = (
    "requirements*.lock",
    "requirements*.txt",
    "*-requirements.txt",
    "requirements/*.lock",
    "requirements/*.txt",
    "tests/requirements*.txt",
)
_PARTS = frozenset({"tests", "test", "docs", "doc"})  # with requirements of their own, yet part of the project
_TEST_FILES = ("test_*.py", "*_test.py")
_ITSELF = re.compile(r"^\s*(-e|--editable)[\s=]|^\s*\.(\[|/|\s|$)", re.MULTILINE)
_VENV = ".venv/bin/python"


@dataclass(frozen=True)
class _Project:
    folder: Folder

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        return self.folder.toml("pyproject.toml")

    def tool(self, *path: str) -> Any:
        """A value below [tool] of pyproject.toml, or None."""
        return _dig(self.pyproject, "tool", *path)

    def ini(self, file: str, section: str) -> dict[str, str] | None:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(self.folder.text(file))
        except configparser.Error as error:
            why = str(error).splitlines()[0]
            raise Unreadable(words.CANNOT_READ.format(file=self.folder.below(file), why=why)) from error
        return dict(parser[section]) if parser.has_section(section) else None

    @cached_property
    def pytest_options(self) -> dict[str, Any] | None:
        """pytest's own configuration, wherever it lives; None if there is none."""
        for file in ("pytest.ini", ".pytest.ini"):
            if self.folder.has(file):
                return self.ini(file, "pytest") or {}
        for place in (("pytest", "ini_options"), ("pytest",)):
            if isinstance(options := self.tool(*place), dict):
                return options
        found = self.ini("tox.ini", "pytest")
        return found if found is not None else self.ini("setup.cfg", "tool:pytest")

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        names = [name for pattern in _REQUIREMENTS for name in self.folder.names(pattern)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def mentions(self) -> frozenset[str]:
        """Which of the tools we know the project's files name at all."""
        files = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "Pipfile", "uv.lock", "poetry.lock")
        text = "\n".join(self.folder.text(name) for name in (*files, *self.requirements))
        return frozenset(name for name in ("pytest", "ruff", "mypy") if re.search(rf"(?<![\w.-]){name}(?![\w-])", text))

    @cached_property
    def has_tests(self) -> bool:
        return self.folder.contains(*_TEST_FILES)

    @cached_property
    def runner(self) -> Literal["pytest", "django"] | None:
        """What runs the tests. pytest runs those written for unittest too, except where Django must be set up first."""
        if self.pytest_options is not None or "pytest" in self.mentions:
            return "pytest"
        if self.folder.has("manage.py"):
            return "django"
        return "pytest" if self.has_tests else None


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    project = _Project(folder)
    evidence = _evidence(project)
    if evidence is None:
        return None
    runner = project.runner
    setup, notes = _setup(project) if runner else (None, ())
    python = _VENV if setup else "python3"
    fast = (_test_step(project, python),) if runner else ()
    slow, needed = _slow_steps(project, python)
    missing = list(missing_tools(tools, "python3", *needed, *_setup_tools(setup)))
    if runner == "pytest" and setup is None and tools.has("python3") and not tools.python_has("pytest"):
        missing.append(Missing(tool="pytest", mend=words.install("pytest")))
    if not project.has_tests:
        notes = (*notes, words.NO_TESTS_YET if fast else words.NO_TESTS.format(kind="Python"))
    return Ecosystem(
        name="python",
        folder=folder.name,
        evidence=folder.below(evidence),
        fast=fast,
        slow=slow,
        test_side=_test_side(project),
        setup=setup,
        missing=tuple(missing),
        notes=notes,
    )


def covers(root: Folder, sub: Folder) -> bool:
    """Does a test run at the root test the folder too? A project of its own has its own needs."""
    del root
    own = _Project(sub)
    stands_alone = (
        own.pytest_options is not None
        or own.requirements
        or sub.has("setup.py")
        or "project" in own.pyproject
        or own.tool("poetry") is not None
    )
    return not stands_alone or sub.name in _PARTS


def without_folders(found: Ecosystem, root: Folder, folders: Collection[str]) -> Ecosystem:
    """The root's steps without the folders that are tested by themselves; no test step if it has no other tests."""
    if not any(_is_test(name) and name.partition("/")[0] not in folders for name in root.files()):
        return found.model_copy(update={"fast": (), "notes": ()})
    ignored = "".join(f" --ignore={shlex.quote(name)}" for name in folders)
    fast = tuple(
        step.model_copy(update={"run": step.run + ignored}) if "-m pytest" in step.run else step for step in found.fast
    )
    return found.model_copy(update={"fast": fast})


def _evidence(project: _Project) -> str | None:
    """The file that says so. An ini file that only configures other tools is no evidence."""
    folder = project.folder
    for name in _MARKERS:
        if folder.has(name) and (name not in ("tox.ini", "setup.cfg") or project.mentions or project.has_tests):
            return name
    if project.requirements:
        return project.requirements[0]
    for name in folder.files():
        if re.fullmatch(r"(tests?/(.*/)?)?(test_[^/]*|[^/]*_test)\.py", name):
            return name
    return None


def _test_step(project: _Project, python: str) -> GateStep:
    folder = project.folder
    if project.runner == "django":
        run = folder.command(f"{python} manage.py test")
        return GateStep(name=folder.step_name("django_test"), run=run, timeout=TEST_TIMEOUT)
    call = f"{_python_path(project)}{python} -m pytest -q --junitxml=report.xml"
    return GateStep(
        name=folder.step_name("pytest"),
        run=folder.command(call),
        report=f"junit:{folder.below('report.xml')}",
        rerun=folder.command(f"{call} {{tests}}"),
        timeout=TEST_TIMEOUT,
        min_tests=1,
    )


def _python_path(project: _Project) -> str:
    """A src layout is not importable from a clean tree: the project itself is never installed into the set-up."""
    configured = "pythonpath" in (project.pytest_options or {})
    in_src = project.folder.has_folder("src") and project.folder.names("src/*/__init__.py")
    return "PYTHONPATH=src " if in_src and not configured else ""


def _slow_steps(project: _Project, python: str) -> tuple[tuple[GateStep, ...], tuple[str, ...]]:
    """Steps, and the programs they need on PATH."""
    folder, steps, programs = project.folder, [], []
    ruff = folder.has("ruff.toml") or folder.has(".ruff.toml") or project.tool("ruff") is not None
    for name, configured, arguments in (("ruff", ruff, "check ."), ("mypy", *_mypy(project))):
        if not configured:
            continue
        in_setup = python == _VENV and name in project.mentions
        run = f"{python} -m {name} {arguments}" if in_setup else f"{name} {arguments}"
        steps.append(GateStep(name=folder.step_name(name), run=folder.command(run.strip()), timeout=TEST_TIMEOUT))
        if not in_setup:
            programs.append(name)
    return tuple(steps), tuple(programs)


def _mypy(project: _Project) -> tuple[bool, str]:
    """Is it configured, and does it need to be told what to check?"""
    options = project.tool("mypy")
    for file in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        if options is None and project.folder.has(file):
            options = project.ini(file, "mypy")
    if not isinstance(options, dict):
        return False, ""
    return True, "" if options.keys() & {"files", "packages", "modules"} else "."


def _setup(project: _Project) -> tuple[SetupConfig | None, tuple[str, ...]]:
    """Set-up from the best lock there is. It never installs the project itself: that would prove another tree."""
    folder = project.folder
    if folder.has("uv.lock"):
        # A Python that uv fetched would lie in a home that is gone afterwards.
        run = "UV_PYTHON_DOWNLOADS=never uv sync --frozen --no-install-workspace" + _uv_extras(project)
        return _set_up(folder, run, ("uv.lock", "pyproject.toml", *_uv_members(project))), ()
    if folder.has("poetry.lock"):
        run = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-root --no-interaction" + _poetry_extras(project)
        return _set_up(folder, run, ("poetry.lock", "pyproject.toml")), ()
    if project.requirements:
        return _from_requirements(project)
    if _dig(project.pyproject, "project", "dependencies"):
        return None, (words.NO_LOCK.format(file=folder.below("pyproject.toml"), command="uv lock"),)
    return None, ()


def _from_requirements(project: _Project) -> tuple[SetupConfig | None, tuple[str, ...]]:
    folder = project.folder
    wanted = tuple(name for name in project.requirements if "doc" not in name)
    chosen = tuple(name for name in wanted if name.endswith(".lock")) or wanted
    itself = tuple(name for name in chosen if _ITSELF.search(folder.text(name)))
    usable = tuple(name for name in chosen if name not in itself)
    notes = tuple(words.INSTALLS_ITSELF.format(file=folder.below(name)) for name in itself)
    if not usable:
        return None, notes
    text = "\n".join(map(folder.text, usable))
    arguments = "".join(f" -r {shlex.quote(name)}" for name in usable)
    if project.runner == "pytest" and not re.search(r"^pytest\b(?!-)", text, re.MULTILINE):
        # pip refuses to mix requirements with and without hashes.
        hashed = "--hash=" in text
        notes = (*notes, words.PYTEST_ABSENT if hashed else words.PYTEST_UNPINNED.format(file=folder.below(usable[0])))
        arguments += "" if hashed else " pytest"
    key = dict.fromkeys((*usable, *(name for file in usable for name in _included(folder, file))))
    return _set_up(folder, f"python3 -m venv .venv && {_VENV} -m pip install{arguments}", tuple(key)), notes


def _included(folder: Folder, file: str) -> list[str]:
    """Files that a requirements file pulls in by `-r` or `-c`."""
    found = re.findall(r"^\s*(?:-r|-c|--requirement|--constraint)[\s=]+(\S+)", folder.text(file), re.MULTILINE)
    return [posixpath.normpath(posixpath.join(posixpath.dirname(file), name)) for name in found]


def _set_up(folder: Folder, run: str, key: tuple[str, ...]) -> SetupConfig:
    return SetupConfig(
        run=folder.command(run),
        key=tuple(folder.below(name) for name in key if folder.has(name)),
        network=Network.full,
    )


def _setup_tools(setup: SetupConfig | None) -> tuple[str, ...]:
    return tuple(name for name in ("uv", "poetry") if setup and re.search(rf"(^|\s){name} ", setup.run))


def _uv_extras(project: _Project) -> str:
    groups = _holding_pytest(_dig(project.pyproject, "dependency-groups"))
    extras = _holding_pytest(_dig(project.pyproject, "project", "optional-dependencies"))
    if "dev" in groups or (not groups and not extras):
        return ""
    return f" --group {groups[0]}" if groups else f" --extra {extras[0]}"


def _uv_members(project: _Project) -> list[str]:
    patterns = project.tool("uv", "workspace", "members")
    members = [str(pattern) for pattern in patterns] if isinstance(patterns, list) else []
    return [name for member in members for name in project.folder.names(f"{member.strip('/')}/pyproject.toml")]


def _poetry_extras(project: _Project) -> str:
    groups = project.tool("poetry", "group")
    for name, group in groups.items() if isinstance(groups, dict) else ():
        if isinstance(group, dict) and group.get("optional") and "pytest" in (group.get("dependencies") or {}):
            return f" --with {name}"
    extras = _holding_pytest(_dig(project.pyproject, "project", "optional-dependencies"))
    return f" --extras {extras[0]}" if extras else ""


def _holding_pytest(groups: Any) -> list[str]:
    if not isinstance(groups, dict):
        return []
    return [
        name
        for name, wanted in groups.items()
        if re.fullmatch(r"[\w.-]+", name)
        and any(isinstance(item, str) and re.match(r"pytest\b", item) for item in (wanted or ()))
    ]


def _test_side(project: _Project) -> tuple[str, ...]:
    folder = project.folder
    folders = tuple(f"{name}/**" for name in ("tests", "test") if folder.has_folder(name))
    settings = tuple(name for name in ("pytest.ini", ".pytest.ini", "tox.ini") if folder.has(name))
    patterns = (*folders, "conftest.py", "**/conftest.py", "test_*.py", "**/test_*.py", "**/*_test.py", *settings)
    return tuple(folder.glob(pattern) for pattern in patterns)


def _is_test(path: str) -> bool:
    return any(fnmatch(path.rpartition("/")[2], pattern) for pattern in _TEST_FILES)


def _dig(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
