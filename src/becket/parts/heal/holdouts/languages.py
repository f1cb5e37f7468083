"""In which languages hold-out checks can be written, and how one is run: a table, so that adding one is data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from becket.parts.gates.copies import FRAMEWORKS


@dataclass(frozen=True, slots=True, eq=False)
class CheckLanguage:
    """`run` follows the program; `{file}` is the check, `{root}` the project, `{cache}` a folder that the checks of one
    tree share. `ready` says by its exit code whether this machine can run such checks at all.
    """

    name: str
    endings: tuple[str, ...]  # of source and of checks; the first one is proposed to the agent
    program: str
    hint: str
    run: tuple[str, ...] = ("{file}",)
    ready: tuple[str, ...] = ("--version",)
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 15.0

    @property
    def frameworks(self) -> str:
        return FRAMEWORKS[self.name]


LANGUAGES = (
    CheckLanguage(
        "Python", (".py",), "python3",
        "a Python script; the project's root (and `src`, if there is one) is on the import path; `sys.exit(1)` or an "
        "exception where something is wrong",
        variables={"PYTHONPATH": "{root}:{root}/src"},
    ),
    CheckLanguage(
        "JavaScript", (".mjs", ".js", ".cjs", ".jsx"), "node",
        "a script for node; import the product by its path relative to the folder of the checks, such as "
        "`../src/name.js`; `process.exit(1)` or an exception where something is wrong",
    ),
    CheckLanguage(
        "TypeScript", (".ts", ".mts", ".cts", ".tsx"), "node",
        "a script that node runs by stripping the types (no enums, imports with their endings); import the product by "
        "its path relative to the folder of the checks, such as `../src/name.ts`; `process.exit(1)` where something is "
        "wrong",
        ready=("-e", "process.exit(process.features.typescript ? 0 : 1)"),
    ),
    CheckLanguage(
        "Go", (".go",), "go",
        "a file of `package main` with a `main` function; import the product by its module path; `os.Exit(1)` or a "
        "panic where something is wrong",
        run=("run", "{file}"), ready=("version",), seconds=120.0,
        variables={
            "GOCACHE": "{cache}/build", "GOPATH": "{cache}/path", "GOMODCACHE": "{root}/.gomodcache",
            "GOTOOLCHAIN": "local",
        },
    ),
)  # fmt: skip

_OTHERS = {
    ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".rb": "Ruby", ".php": "PHP", ".cs": "C#", ".swift": "Swift",
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".scala": "Scala", ".ex": "Elixir", ".sh": "shell",
}  # fmt: skip
_LOCAL = (".venv/bin", "venv/bin", "node_modules/.bin")
_BY_ENDING = {ending: language for language in LANGUAGES for ending in language.endings}


def language_of(path: str) -> CheckLanguage | None:
    return _BY_ENDING.get(PurePosixPath(path).suffix)


def spoken(tests: Iterable[str], product: Iterable[str]) -> tuple[tuple[CheckLanguage, ...], str]:
    """The languages of the files with the failing tests, or of most product files; else why there is none."""
    endings = [PurePosixPath(path).suffix for path in tests]
    if not endings:
        counted = Counter(PurePosixPath(path).suffix for path in product)
        known = [ending for ending, _ in counted.most_common() if ending in _BY_ENDING or ending in _OTHERS]
        endings = known[:1]
    found = tuple(dict.fromkeys(_BY_ENDING[ending] for ending in endings if ending in _BY_ENDING))
    named = ", ".join(sorted({_OTHERS.get(ending, f"files that end in {ending!r}") for ending in endings}))
    supported = ", ".join(language.name for language in LANGUAGES)
    return found, "" if found else f"hold-out checks are not supported for {named or 'it'}, only for {supported}"


def program_of(language: CheckLanguage, commands: Iterable[str], root: Path) -> str:
    """The program as the gate names it, or beside one that the gate names; else the set-up's, else the one on PATH."""
    for word in (word for command in commands for word in _words(command) if "$" not in word):
        path = PurePosixPath(word)
        if path.name == language.program or (language.program == "python3" and path.name == "python"):
            return word
        beside = path.with_name(language.program) if path.parent.name == "bin" else None
        if beside is not None and (root / beside).exists():
            return str(beside)
    return next(
        (local for place in _LOCAL if (root / (local := f"{place}/{language.program}")).exists()), language.program
    )


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()
