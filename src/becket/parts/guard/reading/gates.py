"""Which programs and targets of the repository the gates' commands run."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from becket.parts.guard.reading.task_runners import RUNNERS, obeyed_by

_SEPARATOR = re.compile(r"^(?:&&|\|\||;|\||&|\(|\)|!|then|do|else|if|while|until|exec|time|env|command|nice|xargs)$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_SHELLS = re.compile(r"^(?:sh|bash|dash|zsh|ksh|source|\.|python[\d.]*|node|ruby|perl|deno|bun|tsx|ts-node)$")
_SHELL = re.compile(r"^(?:\w*sh|source|\.)$")
_SAYS_GATE = re.compile(r"(?:^|/)(?:run|ci|checks?|tests?|gate|verify|build|tasks?|make|lint)(?:[_-][\w-]*)?\.\w+$")
"""A program of the product that a gate tries is no part of the gate; one with such a name is."""
_SCRIPT = re.compile(
    r"\.(?:sh|bash|zsh|ps1|bat|mk)$|(?:^|/)(?:\.?scripts?|\.?ci|tools?|hack|bin|dev|build)/|(?:^|/)[^/.]+$"
)
_SETTINGS = re.compile(r"\.(?:ini|cfg|conf|toml|ya?ml|jsonc?|xml|mk|properties)$|\.(?:config|conf)\.[cm]?[jt]s$")
_MANIFEST = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini|package\.json|Cargo\.toml|pom\.xml|tsconfig[\w.-]*\.json)$"
)
_MODULE = re.compile(r"^[A-Za-z_]\w*(?:\.\w+)+$|^[a-z_]\w*$")
_OPTIONAL = frozenset({"run", "run-script", "-s", "--silent", "exec", "-q", "--"})
_LAUNCHES = {"bundle": ("exec",), "uv": ("run",), "poetry": ("run",), "pipenv": ("run",), "npx": (), "uvx": ()}
_ELSEWHERE = frozenset({"-C", "--directory", "--prefix", "--cwd", "--dir"})
"""Words before a command, and options that name the folder it works in."""


@dataclass(frozen=True, slots=True)
class GatePrograms:
    """What the commands of all gates name: files of the tree, targets of task runners, and the files that say what
    these targets do, each with the runner that obeys it.
    """

    files: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    obeyed: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, commands: Sequence[str]) -> GatePrograms:
        found = _Named(set(), set(), set())
        for command in commands:
            _collect_all(command, found)
        return cls(frozenset(found.files), frozenset(found.targets), frozenset(found.obeyed))

    def runs(self, path: str) -> bool:
        return path in self.files

    def runners_of(self, path: str) -> tuple[str, ...]:
        """Who reads in this file what to do."""
        return tuple(sorted(runner for name, runner in self.obeyed if name == path))


@dataclass(frozen=True, slots=True)
class _Named:
    files: set[str]
    targets: set[str]
    obeyed: set[tuple[str, str]]


def _simple_commands(command: str) -> list[list[str]]:
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = command.split()
    found: list[list[str]] = [[]]
    for word in words:
        if _SEPARATOR.match(word):
            found.append([])
        elif found[-1] or not _ASSIGNMENT.match(word):
            found[-1].append(word)
    return [words for words in found if words]


def _collect_all(command: str, found: _Named, folder: str = "") -> None:
    for words in _simple_commands(command):
        if words[0] == "cd" and len(words) == 2:
            folder = posixpath.normpath(posixpath.join(folder, words[1]))
        else:
            _collect(_launched(words), found, folder)


def _launched(words: list[str]) -> list[str]:
    """`bundle exec rake` and `python -m tox` are what they start."""
    program = posixpath.basename(words[0])
    if program in _LAUNCHES:
        rest = words[1:]
        while rest and (rest[0].startswith("-") or rest[0] in _LAUNCHES[program]):
            rest = rest[1:]
        return _launched(rest) if rest else words
    if program.startswith("python") and words[1:2] == ["-m"] and words[2:3] and words[2] in RUNNERS:
        return words[2:]
    return words


def _collect(words: list[str], found: _Named, folder: str) -> None:
    program = posixpath.basename(words[0])
    found.files.update(_placed(folder, name) for name in _settings_named(words))
    if program in RUNNERS:
        _collect_runner(program, words, found, folder)
        return
    if not _SHELLS.match(program):
        program = words[0]
        if program.endswith((".sh", ".bash")) or ("/" in program and _SCRIPT.search(program)):
            found.files.add(_placed(folder, program))
        return
    inner = _inner_command(words)
    if inner is not None:
        _collect_all(inner, found, folder)
    elif "-m" not in words[1:3]:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        if (
            (script and _SHELL.match(program))
            or ("/" in script and _SCRIPT.search(script))
            or _SAYS_GATE.search(script)
        ):
            found.files.add(_placed(folder, script))


def _collect_runner(program: str, words: list[str], found: _Named, folder: str) -> None:
    for before, word in pairwise(words):
        if before in _ELSEWHERE:
            folder = posixpath.join(folder, word)
        elif before in ("-f", "--file", "--makefile", "--rakefile", "-c"):
            found.obeyed.add((_placed(folder, word), program))
    found.obeyed.update((_placed(folder, name), program) for name in obeyed_by(program))
    found.targets.update(
        word for word in words[1:] if not word.startswith("-") and word not in _OPTIONAL and "=" not in word
    )


def _placed(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name))


def _settings_named(words: list[str]) -> Iterator[str]:
    """Files of settings that a command is given, and plugins by their module's name."""
    for before, word in pairwise(words):
        value = word.partition("=")[2] if word.startswith("-") else word
        if _SETTINGS.search(value) and not _MANIFEST.search(value):
            yield value
        elif before == "-p" and _MODULE.match(word):
            yield f"{word.replace('.', '/')}.py"


def _inner_command(words: list[str]) -> str | None:
    """`sh -c '...'` runs what it is given."""
    for position, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word) and position + 1 < len(words):
            return words[position + 1]
    return None
