"""Python projects: pytest as the test step, ruff and mypy where they are configured, a lock file as set-up."""

from __future__ import annotations

import configparser
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from becket.kernel.checks import words
from becket.kernel.checks.facts import MissingTool
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.ecosystem import BUILT, TEST_TIMEOUT, Ecosystem, Folder, Tools, UnreadableProject, missing_tools
from becket.parts.init.ecosystems.python_needs import Needs, arguments, flat, holding_pytest, named, needs_of
from becket.parts.init.ecosystems.python_tests import has_own_tests, has_tests, is_test, patterns, test_side

_MARKERS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "setup.py")
_REQUIREMENTS = (
    "requirements*.lock",
    "requirements*.txt",
    "*-requirements.txt",
    "*.requirements.txt",
    "*_requirements.txt",
    "requirements/*.lock",
    "requirements/*.txt",
    "tests/requirements*.txt",
)
_PARTS = frozenset({"tests", "test", "docs", "doc"})  # with requirements of their own, yet part of the project
_FOR_TESTS = re.compile(r"test|dev|ci\b", re.IGNORECASE)
_RUNTIME = re.compile(r"(^|/)(requirements|base|main|prod|production|runtime|install|common)\.(txt|lock)$")
_ITSELF = re.compile(r"^\s*(-e|--editable)[\s=]|^\s*\.(\[|/|\s|$)", re.MULTILINE)
_VENV = ".venv/bin/python"
_MAKE_VENV = f"python3 -m venv .venv && {_VENV} -m pip install"


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
        parser = self._parsed(file)
        return dict(parser[section]) if parser.has_section(section) else None

    def _parsed(self, file: str) -> configparser.ConfigParser:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(self.folder.text(file))
        except configparser.Error as error:
            why = str(error).splitlines()[0]
            raise UnreadableProject(words.CANNOT_READ.format(file=self.folder.below(file), why=why)) from error
        return parser

    @cached_property
    def needs(self) -> Needs:
        return needs_of(self.folder, self.pyproject, {name: self._parsed(name) for name in ("setup.cfg", "tox.ini")})

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
        return has_tests(self.folder, self.pytest_options)

    @cached_property
    def runner(self) -> Literal["pytest", "django"] | None:
        """What runs the tests. pytest runs those written for unittest too, except where Django must be set up first."""
        if self.pytest_options is not None or "pytest" in self.mentions:
            return "pytest"
        if self.folder.has("manage.py"):
            return "django"
        return "pytest" if has_own_tests(self.folder, self._named_as_tests) else None

    @property
    def _named_as_tests(self) -> Iterator[str]:
        wanted = patterns(self.pytest_options)
        return (name for name in self.folder.files() if is_test(name, wanted))


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    project = _Project(folder)
    evidence = _evidence(project)
    if evidence is None:
        return None
    runner = project.runner
    without = runner == "pytest" and tools.has("python3") and not tools.python_has("pytest")
    setup, notes = _setup(project, without) if runner else (None, ())
    python = _VENV if setup else "python3"
    fast = (_test_step(project, python, setup),) if runner else ()
    slow = _slow_steps(project, python, setup, tools)
    missing = list(missing_tools(tools, "python3", *_setup_tools(setup)))
    if without and setup is None:
        missing.append(MissingTool(tool="pytest", mend=words.install("pytest")))
    if not project.has_tests:
        notes = (*notes, words.NO_TESTS_YET if fast else words.NO_TESTS.format(kind="Python"))
    return Ecosystem(
        name="python",
        folder=folder.name,
        evidence=folder.below(evidence),
        fast=fast,
        slow=slow,
        test_side=test_side(folder, project.pytest_options),
        setup=setup,
        missing=tuple(missing),
        notes=notes,
        comments={step.run: words.BUILT_HERE.format(folder=BUILT) for step in fast if f"--target {BUILT}" in step.run},
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
    tests = patterns(_Project(root).pytest_options)
    if not any(is_test(name, tests) and name.partition("/")[0] not in folders for name in root.files()):
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
        named = re.fullmatch(r"(tests?/(.*/)?)?(test_[^/]*|[^/]*_test)\.py", name)
        if named and has_own_tests(folder, (name,)):
            return name
    return None


def _test_step(project: _Project, python: str, setup: SetupConfig | None) -> GateStep:
    folder = project.folder
    if project.runner == "django":
        run = folder.command(f"{python} manage.py test")
        return GateStep(name=folder.step_name("django_test"), run=run, timeout=TEST_TIMEOUT)
    built = setup is not None and bool(project.needs.build)
    before = f"{_build(setup, python)} && " if setup is not None and built else ""
    call = f"{before}{_python_path(project, built)}{python} -m pytest -q --junitxml=report.xml"
    return GateStep(
        name=folder.step_name("pytest"),
        run=folder.command(call),
        report=f"junit:{folder.below('report.xml')}",
        rerun=folder.command(f"{call} {{tests}}"),
        timeout=TEST_TIMEOUT,
        min_tests=1,
    )


def _python_path(project: _Project, built: bool) -> str:
    """A src layout is not importable from a clean tree: the project itself is never installed into the set-up.

    The sources come before what was built of them: a traceback names the file that a person edits.
    """
    configured = "pythonpath" in (project.pytest_options or {})
    in_src = project.folder.has_folder("src") and project.folder.names("src/*/__init__.py")
    places = [*(["src"] if in_src and not configured else []), *([BUILT] if built else [])]
    return f"PYTHONPATH={':'.join(places)} " if places else ""


def _build(setup: SetupConfig, python: str) -> str:
    """The project itself, from this very tree and without a network, beside the set-up that holds its build tools."""
    installer = (
        f"uv pip install --python {python}" if re.search(r"(^|\s)uv ", setup.run) else f"{python} -m pip install"
    )
    offline = "--offline" if installer.startswith("uv") else "--upgrade --no-index --disable-pip-version-check"
    version = "SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 "  # a checkout need not have the tags
    return f"{version}{installer} -q {offline} --no-deps --no-build-isolation --target {BUILT} ."


def _slow_steps(project: _Project, python: str, setup: SetupConfig | None, tools: Tools) -> tuple[GateStep, ...]:
    """Checks that the project configures and that can run: by its set-up, or where there is none, on PATH."""
    folder, steps = project.folder, []
    ruff = folder.has("ruff.toml") or folder.has(".ruff.toml") or project.tool("ruff") is not None
    for name, configured, told in (("ruff", ruff, "check ."), ("mypy", *_mypy(project))):
        if not configured:
            continue
        if setup is not None and not _installs(project, setup, name):
            continue
        if setup is None and not tools.has(name):
            continue
        run = f"{python} -m {name} {told}" if setup is not None else f"{name} {told}"
        steps.append(GateStep(name=folder.step_name(name), run=folder.command(run.strip()), timeout=TEST_TIMEOUT))
    return tuple(steps)


def _installs(project: _Project, setup: SetupConfig, name: str) -> bool:
    """Does the set-up bring this program? By what it installs, not by what the project's files mention somewhere."""
    files = [
        line for file in project.requirements if file in setup.run for line in project.folder.text(file).split("\n")
    ]
    groups = _dig(project.pyproject, "dependency-groups") or {}
    chosen = re.findall(r"--group (\S+)", setup.run) + (["dev"] if "uv sync" in setup.run else [])
    listed = [item for group in chosen for item in flat(groups, group)]
    poetry = project.tool("poetry", "group", "dev", "dependencies") or project.tool("poetry", "dev-dependencies") or {}
    plain = shlex.split(setup.run) if "pip install" in setup.run else []
    return named([*files, *listed, *plain], name) or ("poetry install" in setup.run and name in poetry)


def _mypy(project: _Project) -> tuple[bool, str]:
    """Is it configured, and does it need to be told what to check?"""
    options = project.tool("mypy")
    for file in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        if options is None and project.folder.has(file):
            options = project.ini(file, "mypy")
    if not isinstance(options, dict):
        return False, ""
    return True, "" if options.keys() & {"files", "packages", "modules"} else "."


def _setup(project: _Project, without_pytest: bool) -> tuple[SetupConfig | None, tuple[str, ...]]:
    """Set-up from the best lock there is, else from what the project's files list.

    It never installs the project itself: that would prove another tree.
    """
    folder, build = project.folder, arguments(project.needs.build)
    if folder.has("uv.lock"):
        # A Python that uv fetched would lie in a home that is gone afterwards.
        run = "UV_PYTHON_DOWNLOADS=never uv sync --frozen --no-install-workspace" + _uv_extras(project)
        run += f" && uv pip install{build}" if build else ""
        return _set_up(folder, run, ("uv.lock", "pyproject.toml", *_uv_members(project))), ()
    if folder.has("poetry.lock"):
        run = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-root --no-interaction" + _poetry_extras(project)
        run += f" && {_VENV} -m ensurepip -q && {_VENV} -m pip install{build}" if build else ""
        return _set_up(folder, run, ("poetry.lock", "pyproject.toml")), ()
    if project.requirements:
        return _from_requirements(project)
    return _from_lists(project, without_pytest)


def _from_lists(project: _Project, without_pytest: bool) -> tuple[SetupConfig | None, tuple[str, ...]]:
    """What the project's files list, copied into the command: there is no lock that a tool could read."""
    folder, needs = project.folder, project.needs
    if project.tool("poetry", "dependencies") and not needs.runtime:
        return None, (words.NO_LOCK.format(file=folder.below("pyproject.toml"), command="poetry lock"),)
    if not needs.files or not (needs.all or without_pytest):
        return None, ()
    wanted = needs.all if named(needs.all, "pytest") or project.runner != "pytest" else (*needs.all, "pytest")
    notes = (words.COPIED.format(file=folder.below(needs.files[0])),) if needs.all else ()
    return _set_up(folder, f"{_MAKE_VENV}{arguments(wanted)}", needs.files), notes


def _chosen(project: _Project) -> tuple[str, ...]:
    """Locks before lists; where some files are for tests, those and what is needed at run time, if that has pytest."""
    wanted = tuple(name for name in project.requirements if "doc" not in name)
    wanted = tuple(name for name in wanted if name.endswith(".lock")) or wanted
    for pattern in ("test", _FOR_TESTS):
        narrow = tuple(name for name in wanted if re.search(pattern, name) or _RUNTIME.search(name))
        text = "\n".join(map(project.folder.text, narrow))
        if re.search(r"^pytest\b(?!-)", text, re.MULTILINE):
            return narrow
    return wanted


def _from_requirements(project: _Project) -> tuple[SetupConfig | None, tuple[str, ...]]:
    folder = project.folder
    chosen = _chosen(project)
    itself = tuple(name for name in chosen if _ITSELF.search(folder.text(name)))
    usable = tuple(name for name in chosen if name not in itself)
    notes = tuple(words.INSTALLS_ITSELF.format(file=folder.below(name)) for name in itself)
    if not usable:
        return None, notes
    text = "\n".join(map(folder.text, usable))
    given = "".join(f" -r {shlex.quote(name)}" for name in usable)
    for_tests = () if "--hash=" in text or any(map(_FOR_TESTS.search, usable)) else project.needs.tests
    absent = not re.search(r"^pytest\b(?!-)", text, re.MULTILINE) and not named(for_tests, "pytest")
    if project.runner == "pytest" and absent:
        # pip refuses to mix requirements with and without hashes.
        hashed = "--hash=" in text
        notes = (*notes, words.PYTEST_ABSENT if hashed else words.PYTEST_UNPINNED.format(file=folder.below(usable[0])))
        given += "" if hashed else " pytest"
    more = [] if "--hash=" in text else [*project.needs.runtime, *for_tests, *project.needs.build]
    given += arguments(item for item in more if not named(text.split("\n"), _package(item)))
    usable += tuple(project.needs.files) if more else ()
    key = dict.fromkeys((*usable, *(name for file in usable for name in _included(folder, file))))
    return _set_up(folder, f"{_MAKE_VENV}{given}", tuple(key)), notes


def _package(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return found[0].lower() if found else ""


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
    groups = holding_pytest(_dig(project.pyproject, "dependency-groups"))
    extras = holding_pytest(_dig(project.pyproject, "project", "optional-dependencies"))
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
    extras = holding_pytest(_dig(project.pyproject, "project", "optional-dependencies"))
    return f" --extras {extras[0]}" if extras else ""


def _dig(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
