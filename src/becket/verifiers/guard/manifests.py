"""Manifests: their test sections are refused, their dependency tables, versions and metadata are not."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from becket.contract.base import Json, canonical
from becket.contract.guard import ChangedFile, ChangeStatus, GuardRule, Refusal
from becket.verifiers.guard import words
from becket.verifiers.guard.builds import (
    LOADS_FIRST,
    gradle_facts,
    make_facts,
    maven_facts,
    members,
    task_facts,
    vite_facts,
    workspace_facts,
)
from becket.verifiers.guard.facts import Fact, Facts
from becket.verifiers.guard.gates import GatePrograms
from becket.verifiers.guard.paths import refused

_LARGEST = 2_000_000
_RUNNER = GuardRule.test_runner_config
_CHECKER = GuardRule.check_config
_SCRIPT = re.compile(
    r"^(?:pre|post)?(?:test|tests|check|lint|ci|verify|coverage|typecheck|types|e2e|unit)(?:[:\-_.].*)?$"
)
_LIFECYCLE = frozenset({"preinstall", "install", "postinstall", "prepare", "prepublish", "prepublishOnly", "prepack"})
_NODE_RUNNERS = frozenset(
    {"jest", "mocha", "ava", "vitest", "tap", "jasmine", "karma", "cypress", "playwright", "wdio"}
)
_NODE_CHECKERS = frozenset({"eslintConfig", "eslintIgnore", "xo", "standard", "stylelint"})
_NODE_HOOKS = frozenset({"husky", "lint-staged", "simple-git-hooks", "pre-commit", "gitHooks"})
_DEPENDENCIES = re.compile(r"(?:dependencies|overrides|resolutions)$", re.IGNORECASE)
_TOOL = re.compile(
    r"^(?:pytest(?:[-_].*)?|pluggy|iniconfig|_pytest|unittest2|nose2?|hypothesis|coverage|tox|nox|mock"
    r"|(?:@jest|@vitest|@playwright|@testing-library)/.*|jest(?:-.*)?|vitest|mocha|chai|ava|tape|tap|jasmine.*|karma.*|expect|sinon"
    r"|github\.com/(?:stretchr/testify|google/go-cmp|onsi/.*)|gotest\.tools.*)$",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"^(?:file:|link:|portal:|git|https?:|\.{0,2}/)|@\s*(?:file|git|https?|\.)")
_PY_TASKS = (("tox",), ("hatch", "envs"), ("pdm", "scripts"), ("poe",), ("taskipy",), ("rye", "scripts"), ("nox",))
_PY_CHECKERS = ("coverage", "ruff", "mypy", "pyright", "basedpyright", "pylint", "flake8", "bandit", "ty")
_PY_COMMANDS = re.compile(
    r"^(?:py\.?test|python[\d.]*|tox|nox|ruff|mypy|pyright|pylint|flake8|coverage|make|sh|bash|node|npm)$"
)
_SOURCES = re.compile(r"^\s*(?:-i|-f|--(?:extra-)?index-url|--find-links|--trusted-host|--no-index)\b")
_BY_PLACE = re.compile(r"^\s*(?:(?:-e|--editable)[\s=]|\.{0,2}/|file:|git\+|https?:)")
_RIVALS = (("GNUmakefile", "makefile", "Makefile"), ("justfile", "Justfile", ".justfile"))
_STRICTNESS = re.compile(r"^(?:strict|no|skip|check|allow|exact|use[A-Z]|suppress|exclude|include|files$|references$)")


@dataclass(frozen=True, slots=True)
class _Kind:
    names: re.Pattern[str]
    read: Callable[[str, GatePrograms], Facts]
    when_added: bool  # does a new one change how tests are run that were there before?


def judge_manifest(file: ChangedFile, programs: GatePrograms, base_paths: frozenset[str]) -> Iterator[Refusal]:
    kind = _kind_of(file.path) or _kind_of(file.old_path)
    if file.path not in base_paths and _read_instead(file.path, base_paths):
        yield refused(_RUNNER, file.path, words.READ_INSTEAD)
        return
    if kind is None or file.same or max(file.old_size, file.new_size) > _LARGEST:
        return
    if file.status is ChangeStatus.added and not kind.when_added:
        return
    new_text = file.new().decode("utf-8", "replace")
    try:
        old = kind.read(file.old().decode("utf-8", "replace"), programs) if file.in_base else {}
        new = kind.read(new_text, programs) if file.in_candidate else {}
    except (ValueError, TypeError, AttributeError, RecursionError, configparser.Error):
        if file.status is not ChangeStatus.added:
            yield refused(_RUNNER, file.path, words.MANIFEST_UNREADABLE)
        return
    for label in dict.fromkeys((*old, *new)):
        before, after = old.get(label), new.get(label)
        if before != after and not (before is None and after is not None and after.may_come):
            rule = (after or before or Fact(_RUNNER, None)).rule
            yield refused(rule, file.path, words.section_changed(label), _line_of(label, new_text))


def _read_instead(path: str, base_paths: frozenset[str]) -> bool:
    """Would `make` or `just` take this new file in the place of one that is there?"""
    folder, slash, name = path.rpartition("/")
    rivals = next((names for names in _RIVALS if name in names), ())
    return any(f"{folder}{slash}{rival}" in base_paths for rival in rivals)


def _kind_of(path: str) -> _Kind | None:
    name = path.rpartition("/")[2]
    return next((kind for kind in _KINDS if kind.names.match(name)), None)


def _line_of(label: str, text: str) -> int:
    word = label.rpartition(".")[2].rpartition(":")[2].strip('[]"')
    for number, line in enumerate(text.splitlines(), 1):
        if word and word in line:
            return number
    return 0


def _node(text: str, programs: GatePrograms) -> Facts:
    document = json.loads(text)
    facts: Facts = {}
    for name, command in _table(document.get("scripts")).items():
        if _SCRIPT.match(name) or name in programs.targets:
            facts[f"scripts.{name}"] = Fact(_RUNNER, command)
        elif name in _LIFECYCLE:
            facts[f"scripts.{name}"] = Fact(GuardRule.hooks, command)
    for keys, rule in ((_NODE_RUNNERS, _RUNNER), (_NODE_CHECKERS, _CHECKER), (_NODE_HOOKS, GuardRule.hooks)):
        facts |= {key: Fact(rule, canonical(document[key])) for key in sorted(keys) if key in document}
    for section, table in document.items():
        if _DEPENDENCIES.search(section):
            facts |= _borrowed(section, _table(table))
    spaces = document.get("workspaces")
    listed = spaces if isinstance(spaces, list) else _table(spaces).get("packages")
    return facts | members("workspaces", listed)


def _table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _borrowed(section: str, table: dict[str, Json]) -> Facts:
    """Test tools that come from a folder, a repository or an address instead of the registry."""
    found: Facts = {}
    for name, source in table.items():
        text = source if isinstance(source, str) else " ".join(f"{key}:" for key in _table(source))
        if _TOOL.match(name) and (_ELSEWHERE.search(text) or re.search(r"\b(?:path|git|url):", text)):
            found[f"{section}.{name}"] = Fact(_RUNNER, canonical(source))
    return found


def _pyproject(text: str, programs: GatePrograms) -> Facts:
    document = tomllib.loads(text)
    tools = _table(document.get("tool"))
    facts: Facts = {}
    if "pytest" in tools:
        facts["tool.pytest"] = Fact(_RUNNER, canonical(tools["pytest"]))
    for place in _PY_TASKS:
        value: Json = tools
        for key in place:
            value = _table(value).get(key)
        if value is not None:
            facts[".".join(("tool", *place))] = Fact(_RUNNER, canonical(_without_dependencies(value)))
    for name in _PY_CHECKERS:
        if name in tools:
            facts[f"tool.{name}"] = Fact(_CHECKER, canonical(tools[name]))
    project = _table(document.get("project"))
    plugins = _table(project.get("entry-points")).get("pytest11")
    facts |= _commands("project.scripts", _table(project.get("scripts")))
    facts |= _commands("tool.poetry.scripts", _table(_table(tools.get("poetry")).get("scripts")))
    plugins = plugins or _table(_table(tools.get("poetry")).get("plugins")).get("pytest11")
    if plugins is not None:
        facts["entry-points.pytest11"] = Fact(_RUNNER, canonical(plugins))
    return facts | _python_sources(document, project, tools)


def _python_sources(document: Json, project: dict[str, Json], tools: dict[str, Json]) -> Facts:
    lists = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    lists += _table(document.get("dependency-groups")).values()
    facts: Facts = {}
    for requirement in (entry for listed in lists if isinstance(listed, list) for entry in listed):
        facts |= _requirement(str(requirement))
    facts |= _borrowed("tool.uv.sources", _table(_table(tools.get("uv")).get("sources")))
    poetry = _table(tools.get("poetry"))
    groups = [poetry, *_table(poetry.get("group")).values()]
    for group in groups:
        for section, table in _table(group).items():
            if _DEPENDENCIES.search(section):
                facts |= _borrowed(f"tool.poetry.{section}", _table(table))
    return facts


def _commands(section: str, table: dict[str, Json]) -> Facts:
    """Programs that installing the project puts in the place of a tool."""
    return {
        f"{section}.{name}": Fact(_RUNNER, canonical(run)) for name, run in table.items() if _PY_COMMANDS.match(name)
    }


def _requirement(line: str) -> Facts:
    if _SOURCES.match(line):
        return {" ".join(line.split()): Fact(_RUNNER, line.strip())}
    if _BY_PLACE.match(line):
        parts = re.split(r"[/@#=&\s]+", line.strip())
        return {f"requirement {line.strip()}": Fact(_RUNNER, line.strip())} if any(map(_TOOL.match, parts)) else {}
    name = re.match(r"\s*([A-Za-z0-9_.-]+)", line)
    if name and _TOOL.match(name[1]) and re.search(r"@|\bfile:", line):
        return {f"requirement.{name[1]}": Fact(_RUNNER, line.strip())}
    return {}


def _without_dependencies(value: Json) -> Json:
    if isinstance(value, dict):
        kept = {
            key: inner for key, inner in value.items() if "dependencies" not in key and key not in {"deps", "features"}
        }
        return {key: _without_dependencies(inner) for key, inner in kept.items()}
    return [_without_dependencies(inner) for inner in value] if isinstance(value, list) else value


def _ini(text: str, programs: GatePrograms) -> Facts:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    facts: Facts = {}
    for section in parser.sections():
        entries = {key: value for key, value in parser[section].items() if key not in {"deps", "extras"}}
        if re.match(r"^(?:pytest|tool:pytest|tox|testenv.*|nosetests|aliases|green|unittest)$", section):
            facts[f"[{section}]"] = Fact(_RUNNER, canonical(entries))
        elif re.match(r"^(?:coverage:|flake8|mypy.*|pylint.*|pycodestyle|pydocstyle|bandit)", section):
            facts[f"[{section}]"] = Fact(_CHECKER, canonical(entries))
        elif section == "options.entry_points":
            facts |= _entry_points(entries)
    return facts


def _entry_points(entries: dict[str, str]) -> Facts:
    facts: Facts = {"pytest11": Fact(_RUNNER, entries["pytest11"])} if "pytest11" in entries else {}
    pairs = (line.partition("=") for line in entries.get("console_scripts", "").splitlines())
    return facts | _commands("console_scripts", {name.strip(): run.strip() for name, _, run in pairs})


def _lines_with(pattern: str) -> Callable[[str, GatePrograms], Facts]:
    wanted = re.compile(pattern)

    def read(text: str, programs: GatePrograms) -> Facts:
        found = sorted(line.strip() for line in text.splitlines() if wanted.search(line))
        return {found[0].split()[0]: Fact(_RUNNER, "\n".join(found))} if found else {}

    return read


def _requirements(text: str, programs: GatePrograms) -> Facts:
    facts: Facts = {}
    for line in text.splitlines():
        facts |= _requirement(line)
    return facts


def _cargo(text: str, programs: GatePrograms) -> Facts:
    document = tomllib.loads(text)
    counts = ("profile", "test", "bench", "patch")
    facts: Facts = {key: Fact(_RUNNER, canonical(document[key])) for key in counts if key in document}
    for place in ("lib", "package"):
        table = _table(document.get(place))
        kept = {key: table[key] for key in ("test", "doctest", "harness", "autotests", "autobenches") if key in table}
        if kept:
            facts[f"{place}.{next(iter(kept))}"] = Fact(_RUNNER, canonical(kept))
    if "lints" in document:
        facts["lints"] = Fact(_CHECKER, canonical(document["lints"]))
    workspace = _table(document.get("workspace"))
    if "exclude" in workspace:
        facts["workspace.exclude"] = Fact(_RUNNER, canonical(workspace["exclude"]))
    return facts | members("workspace.members", workspace.get("members"))


def _typescript(text: str, programs: GatePrograms) -> Facts:
    bare = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*[\s\S]*?\*/', lambda match: match[1] or "", text)
    document = json.loads(re.sub(r",(\s*[}\]])", r"\1", bare))
    options = _table(document.get("compilerOptions"))
    entries = {**options, **{key: value for key, value in document.items() if key != "compilerOptions"}}
    return {key: Fact(_CHECKER, canonical(value)) for key, value in entries.items() if _STRICTNESS.match(key)}


_VARIABLES = rf"\b{LOADS_FIRST}\s*="
_KINDS = (
    _Kind(re.compile(r"^package\.json$"), _node, when_added=False),
    _Kind(re.compile(r"^pyproject\.toml$"), _pyproject, when_added=True),
    _Kind(re.compile(r"^(?:tox\.ini|setup\.cfg)$"), _ini, when_added=True),
    _Kind(re.compile(r"^setup\.py$"), _lines_with(r"pytest11|test_suite|tests_require|cmdclass"), when_added=True),
    _Kind(re.compile(r"^.*requirements.*\.(?:txt|in)$"), _requirements, when_added=True),
    _Kind(re.compile(r"^Cargo\.toml$"), _cargo, when_added=False),
    _Kind(
        re.compile(r"^go\.(?:mod|work)$"),
        _lines_with(r"testify.*=>|go-cmp.*=>|onsi/.*=>|gotest\.tools.*=>"),
        when_added=True,
    ),
    _Kind(re.compile(r"^pom\.xml$"), maven_facts, when_added=False),
    _Kind(re.compile(r"^(?:build|settings)\.gradle(?:\.kts)?$|^gradle\.properties$"), gradle_facts, when_added=False),
    _Kind(re.compile(r"^(?:GNU)?[Mm]akefile$|^.*\.mk$|^\.?[Jj]ustfile$"), make_facts, when_added=False),
    _Kind(re.compile(r"^[Tt]askfile\.ya?ml$"), task_facts, when_added=False),
    _Kind(re.compile(r"^pnpm-workspace\.yaml$"), workspace_facts, when_added=False),
    _Kind(re.compile(r"^vite\.config\.[cm]?[jt]s$"), vite_facts, when_added=False),
    _Kind(re.compile(r"^tsconfig[\w.-]*\.json$|^deno\.jsonc?$"), _typescript, when_added=False),
    _Kind(re.compile(r"^\.env(?:\..*|rc)?$"), _lines_with(_VARIABLES), when_added=True),
)
