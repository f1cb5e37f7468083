"""Build files without a format of data: Make, just, Task, Maven, Gradle. Read coarsely, compared by what they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.contract.base import Json, canonical
from becket.contract.guard import GuardRule
from becket.verifiers.guard.facts import Fact, Facts
from becket.verifiers.guard.gates import GatePrograms

_RUNNER = GuardRule.test_runner_config
_TARGET = re.compile(r"^(?P<names>[\w./%-]+(?:[ \t]+[\w./%-]+)*)[ \t]*::?(?!=)[ \t]*(?P<needs>[^#\n]*)")
_VARIABLE = re.compile(r"^(?:export[ \t]+|override[ \t]+)*(?P<name>[\w.-]+)[ \t]*(?:[:?+!]?:?=)[ \t]*(?P<value>.*)$")
_USED = re.compile(r"\$[({]([\w.-]+)[)}]|\{\{\s*([\w-]+)\s*\}\}")
_TESTING = re.compile(r"^(?:test|tests|check|checks|lint|ci|verify|unit|coverage|typecheck)(?:[-_./:].*)?$")


LOADS_FIRST = (
    r"(?:PYTEST_\w+|PYTHON(?:STARTUP|PATH|HOME|OPTIMIZE|WARNINGS)|NODE_OPTIONS|GOFLAGS|RUSTFLAGS|JAVA_TOOL_OPTIONS)"
)
"""Variables that change a test run from outside."""

_GLOBAL = re.compile(rf"^(?:{LOADS_FIRST}|SHELL|\.SHELLFLAGS|MAKEFLAGS|GNUMAKEFLAGS|PATH|\.DEFAULT_GOAL)$")
_GLOBAL_TARGETS = frozenset({".IGNORE", ".DEFAULT", ".ONESHELL", ".POSIX", ".EXPORT_ALL_VARIABLES"})
_INCLUDE = re.compile(r"^(?:-include|sinclude|include|import|mod)\s+\S.*$", re.MULTILINE)


def make_facts(text: str, programs: GatePrograms) -> Facts:
    """Targets that test, with all they lead to and the variables they use."""
    targets, variables = _makefile(text)
    facts: Facts = {}
    for name in [name for name in targets if _TESTING.match(name) or name in programs.targets]:
        reached = _reached(name, targets)
        run = "\n".join(f"{part}:{targets[part]}" for part in reached)
        used = {match[1] or match[2] for match in _USED.finditer(run)}
        values = {variable: value for variable, value in sorted(variables.items()) if variable in used}
        facts[f"target:{name}"] = Fact(_RUNNER, canonical([run, values]))
    everywhere = {name: value for name, value in variables.items() if _GLOBAL.match(name)}
    everywhere |= {name: run for name, run in targets.items() if name in _GLOBAL_TARGETS}
    everywhere |= {line: line for line in map(str.strip, _INCLUDE.findall(text))}
    return facts | {name: Fact(_RUNNER, value) for name, value in everywhere.items()}


def _makefile(text: str) -> tuple[dict[str, str], dict[str, str]]:
    targets: dict[str, str] = {}
    variables: dict[str, str] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith(("\t", "  ")) and current:
            step = line.split(" #")[0].strip()
            for name in current if step and not step.startswith("#") else []:
                targets[name] += f"\n{' '.join(step.split())}"
        elif variable := _VARIABLE.match(line):
            variables[variable["name"]] = " ".join(variable["value"].split("#")[0].split())
        elif target := _TARGET.match(line):
            current = target["names"].split()
            for name in current:
                targets[name] = targets.get(name, "") + " " + " ".join(target["needs"].split())
        elif line.strip() and not line.startswith("#"):
            current = []
    return targets, variables


def _reached(name: str, targets: dict[str, str]) -> list[str]:
    found: list[str] = []
    waiting = [name]
    while waiting:
        target = waiting.pop()
        if target in found or target not in targets:
            continue
        found.append(target)
        waiting.extend(targets[target].split("\n")[0].split())
        waiting.extend(re.findall(r"\$[({]MAKE[)}]\s+([\w-]+)", targets[target]))
    return sorted(found)


def members(label: str, listed: Json) -> Facts:
    """One fact for each, so that one more is told from one less."""
    names = [str(name) for name in listed] if isinstance(listed, list) else []
    return {f"{label}: {name}": Fact(_RUNNER, name, may_come=not name.startswith("!")) for name in names}


def workspace_facts(text: str, programs: GatePrograms) -> Facts:
    document = _yaml(text)
    return members("packages", document.get("packages")) if isinstance(document, dict) else {}


def _yaml(text: str) -> Json:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_VITE_TEST = re.compile(r"\btest\s*:\s*\{")


def vite_facts(text: str, programs: GatePrograms) -> Facts:
    """Vitest's settings stand among those of the build."""
    found = ["".join(block.split()) for block in _blocks(_SLASH_COMMENT.sub("", text), _VITE_TEST)]
    return {"test": Fact(_RUNNER, canonical(found))} if found else {}


def task_facts(text: str, programs: GatePrograms) -> Facts:
    document = _yaml(text)
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, dict):
        return {}
    wanted = {
        str(name): task for name, task in tasks.items() if _TESTING.match(str(name)) or str(name) in programs.targets
    }
    return {f"tasks.{name}": Fact(_RUNNER, canonical(task)) for name, task in wanted.items()}


_XML_COMMENT = re.compile(r"<!--[\s\S]*?-->")
_MAVEN_LEFT_OUT = re.compile(r"<dependencies>[\s\S]*?</dependencies>|<version>[^<]*</version>")
_MAVEN_PROPERTY = re.compile(
    r"<(?P<name>[\w.-]*(?:skip|[tT]est|surefire|failsafe|argLine|groups)[\w.-]*)>(?P<value>[^<]*)</"
)
_MAVEN_SECTION = re.compile(r"<(?P<name>build|profiles|parent)>(?P<body>[\s\S]*?)</(?P=name)>")


def maven_facts(text: str, programs: GatePrograms) -> Facts:
    """Plugins, profiles and modules count; versions and dependencies do not."""
    bare = _MAVEN_LEFT_OUT.sub("", _XML_COMMENT.sub("", text))
    facts: Facts = {}
    for section in _MAVEN_SECTION.finditer(bare):
        label = section["name"]
        joined = "".join(section["body"].split())
        facts[label] = Fact(_RUNNER, joined + (facts[label].value if label in facts else ""))
    facts |= members("modules", re.findall(r"<module>\s*([^<]*?)\s*</module>", bare))
    properties = re.search(r"<properties>([\s\S]*?)</properties>", bare)
    for found in _MAVEN_PROPERTY.finditer(properties[1] if properties else ""):
        if not found["name"].endswith(".version"):
            facts[f"properties.{found['name']}"] = Fact(_RUNNER, found["value"].strip())
    return facts


_SLASH_COMMENT = re.compile(r"(?<!:)//[^\n]*|(?<![\"'*/])/\*[\s\S]*?\*/")
_GRADLE_BLOCK = re.compile(
    r"(?P<head>(?:\b|\.)(?:test|testing|check|tasks|gradle|allprojects|subprojects|androidTest|testOptions|exclude\w*)\b[^\n{}]*)\{"
)
_GRADLE_LINE = re.compile(
    r"\b(?:ignoreFailures|onlyIf|enabled\s*=|isEnabled|excludeTestsMatching|useJUnit\w*|failOnNoDiscoveredTests"
    r"|skipTests|taskGraph|org\.gradle\.jvmargs|maxParallelForks|filter\b)"
)


_GRADLE_INCLUDE = re.compile(r"^\s*include(?:Build|Flat)?\b[ \t(][^\n{]*", re.MULTILINE)


def gradle_facts(text: str, programs: GatePrograms) -> Facts:
    """Blocks about tests and tasks, and lines that can switch them off, wherever they stand."""
    bare = _SLASH_COMMENT.sub("", text)
    facts: Facts = {}
    for block in _blocks(bare, _GRADLE_BLOCK):
        label = block.split("{")[0].strip(" .")
        facts[label] = Fact(_RUNNER, " ".join(block.split()) + (facts[label].value if label in facts else ""))
    lines = sorted(" ".join(line.split()) for line in bare.splitlines() if _GRADLE_LINE.search(line))
    if lines:
        facts[_first_word(lines[0])] = Fact(_RUNNER, "\n".join(lines))
    included = [name for line in _GRADLE_INCLUDE.findall(bare) for name in re.findall(r"[\"']([^\"']+)[\"']", line)]
    return facts | members("include", included)


def _first_word(line: str) -> str:
    found = re.search(r"\w+", line)
    return found[0] if found else line


def _blocks(text: str, opening: re.Pattern[str]) -> Iterator[str]:
    position = 0
    while found := opening.search(text, position):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        yield text[found.start() : end]
        position = end
