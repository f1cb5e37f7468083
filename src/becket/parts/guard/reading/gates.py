"""Which programs and targets of the repository the gates' commands run."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SEPARATOR = re.compile(r"^(?:&&|\|\||;|\||&|\(|\)|!|then|do|else|if|while|until|exec|time|env|command|nice|xargs)$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_SHELLS = re.compile(r"^(?:sh|bash|dash|zsh|ksh|source|\.|python[\d.]*|node|ruby|perl|deno|bun|tsx|ts-node)$")
_SCRIPT = re.compile(
    r"\.(?:sh|bash|zsh|ps1|bat|mk)$|(?:^|/)(?:\.?scripts?|\.?ci|tools?|hack|bin|dev|build)/|(?:^|/)[^/.]+$"
)
_TASK_RUNNERS = frozenset(
    {"npm", "pnpm", "yarn", "bun", "make", "gmake", "just", "task", "tox", "nox", "hatch", "poe", "pdm"}
)
_SETTINGS = re.compile(r"\.(?:ini|cfg|conf|toml|ya?ml|jsonc?|xml|mk|properties)$|\.(?:config|conf)\.[cm]?[jt]s$")
_MANIFEST = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini|package\.json|Cargo\.toml|pom\.xml|tsconfig[\w.-]*\.json)$"
)
_MODULE = re.compile(r"^[A-Za-z_]\w*(?:\.\w+)+$|^[a-z_]\w*$")
_OPTIONAL = frozenset({"run", "run-script", "-s", "--silent", "exec", "-q", "--"})


@dataclass(frozen=True, slots=True)
class GatePrograms:
    """What the commands of all gates name: files of the tree, and targets of task runners."""

    files: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()

    @classmethod
    def of(cls, commands: Sequence[str]) -> GatePrograms:
        files: set[str] = set()
        targets: set[str] = set()
        for command in commands:
            _collect_all(command, files, targets)
        return cls(frozenset(files), frozenset(targets))

    def runs(self, path: str) -> bool:
        return path in self.files


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


def _collect_all(command: str, files: set[str], targets: set[str], folder: str = "") -> None:
    for words in _simple_commands(command):
        if words[0] == "cd" and len(words) == 2:
            folder = posixpath.normpath(posixpath.join(folder, words[1]))
        else:
            _collect(words, files, targets, folder)


def _collect(words: list[str], files: set[str], targets: set[str], folder: str) -> None:
    program = words[0]
    files.update(_placed(folder, name) for name in _settings_named(words))
    if program in _TASK_RUNNERS:
        targets.update(
            word for word in words[1:] if not word.startswith("-") and word not in _OPTIONAL and "=" not in word
        )
        return
    if _SHELLS.match(program):
        inner = _inner_command(words)
        if inner is not None:
            _collect_all(inner, files, targets, folder)
            return
        program = next((word for word in words[1:] if not word.startswith("-")), "")
        if words[1:2] == ["-m"]:
            return
    if program.endswith((".sh", ".bash")) or ("/" in program and _SCRIPT.search(program)):
        files.add(_placed(folder, program))


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
