"""A Makefile with a `test` or `check` target: the fallback for everything else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from becket.kernel.checks import words
from becket.kernel.checks.shell import cannot_fail
from becket.parts.gates.section import GateStep
from becket.parts.init.ecosystem import TEST_TIMEOUT, Ecosystem, Folder, Tools, missing_tools

_TARGETS = ("test", "check")
_FILES = ("GNUmakefile", "makefile", "Makefile")  # the order in which make looks
_RULE = re.compile(r"^(?P<targets>[^\s#:=][^#:=]*?)\s*::?(?![:=])(?P<needs>[^;#]*)(?:;(?P<inline>.*))?$")


@dataclass(frozen=True)
class _Target:
    name: str
    needs: str
    recipe: tuple[str, ...]


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    name = next((name for name in _FILES if folder.has(name)), None)
    target = _test_target(folder.text(name)) if name else None
    if name is None or target is None:
        return None
    if not target.needs and all(_toothless(line) for line in target.recipe):
        note = words.CANNOT_FAIL.format(what=f"`{target.name}` of {folder.below(name)}", command=target.recipe[0])
        return Ecosystem(name="make", folder=folder.name, evidence=folder.below(name), notes=(note,))
    run = folder.command(f"make {target.name}")
    step = GateStep(name=folder.step_name(f"make_{target.name}"), run=run, timeout=TEST_TIMEOUT)
    folders = tuple(f"{name}/**" for name in ("tests", "test") if folder.has_folder(name))
    return Ecosystem(
        name="make",
        folder=folder.name,
        evidence=folder.below(name),
        fast=(step,),
        test_side=tuple(folder.glob(pattern) for pattern in folders),
        missing=missing_tools(tools, "make"),
    )


def only_delegates(folder: Folder, found: Iterable[str]) -> bool:
    """Does `make test` do nothing but enter folders whose own tests were found? Then it would test them twice."""
    name = next((name for name in _FILES if folder.has(name)), None)
    target = _test_target(folder.text(name)) if name else None
    if target is None or target.needs or not target.recipe:
        return False
    names = "|".join(re.escape(name) for name in found)
    enters = re.compile(rf"(cd|-C|--directory)[\s=]*(\./)?({names})(?![\w.-])")
    return bool(names) and all(enters.search(line) for line in target.recipe)


def _toothless(line: str) -> bool:
    """Make ignores the exit code of a line that begins with a hyphen."""
    marks = re.match(r"[@+\-\s]*", line)
    return bool(marks and "-" in marks[0]) or cannot_fail(line.lstrip("@+- \t"))


def _test_target(text: str) -> _Target | None:
    return next((found for name in _TARGETS if (found := _target(text, name)) is not None), None)


def _target(text: str, name: str) -> _Target | None:
    """The rule of this name, if it does anything: prerequisites or a recipe."""
    needs, recipe, inside = "", [], False
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            if inside and line.strip():
                recipe.append(line.strip())
            continue
        rule = _RULE.match(line)
        if rule is None:
            inside = inside and (not line.strip() or line.lstrip().startswith("#"))
            continue
        inside = name in rule["targets"].split()
        if inside and "=" not in rule["needs"]:  # `test: NAME = value` only sets a variable
            needs = f"{needs} {rule['needs'].strip()}".strip()
            recipe += [rule["inline"].strip()] if rule["inline"] and rule["inline"].strip() else []
    return _Target(name, needs, tuple(recipe)) if needs or recipe else None
