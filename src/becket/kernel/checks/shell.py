"""What a shell command says about itself, read without running it: which program it starts, whether it can fail."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

_OPERATOR = re.compile(r"[();<>|&]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TRIVIAL = frozenset({"echo", "printf", "true", ":"})
_SWALLOWS = frozenset({"tee", "cat", "tail", "head", "true"})
_PREFIXES = frozenset({"exec", "env", "time", "nice", "command", "nohup"})
_BUILTINS = frozenset(
    [
        "set",
        "export",
        "unset",
        "umask",
        "ulimit",
        "trap",
        "eval",
        "echo",
        "printf",
        "true",
        "false",
        ":",
        ".",
        "source",
        "test",
        "[",
        "exit",
        "wait",
    ]
)
_KEYWORDS = frozenset(["if", "for", "while", "until", "case", "then", "do", "else", "{", "!", "function"])


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command of a shell text, and the operator before it."""

    before: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What a command starts first, and the folder it does so in."""

    folder: str
    word: str
    arguments: tuple[str, ...] = field(default=(), compare=False)


def simple_commands(text: str) -> list[SimpleCommand]:
    """The text in pieces. Raises ValueError for an unclosed quote."""
    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[SimpleCommand] = []
    before, words, skip = "", [], False
    for token in lexer:
        if not _OPERATOR.fullmatch(token):
            words += [] if skip else [token]
            skip = False
        elif "<" in token or ">" in token:
            skip = True
            if words and words[-1].isdigit():  # the file descriptor of `2>`
                words.pop()
        else:
            found += [SimpleCommand(before, tuple(words))] if words else []
            before, words = token, []
    return [*found, SimpleCommand(before, tuple(words))] if words else found


def cannot_fail(text: str, *, stops_at_error: bool = True) -> bool:
    """Is exit code 0 certain whatever the tests say? (L11) `stops_at_error`: the shell runs with -e."""
    try:
        commands = simple_commands(text)
    except ValueError:
        return False
    if not commands:
        return True
    last = commands[-1]
    if all(_trivial(command) for command in commands) or re.search(r"(?<!&)&\s*$", text):
        return True
    if last.before in ("|", "|&") and last.words[0] in _SWALLOWS:
        return "pipefail" not in text
    return _trivial(last) and (last.before == "||" or (last.before == ";" and not stops_at_error))


def program_of(text: str, *, home_too: bool = False) -> Program | None:
    """The first program on PATH or in the tree that the text starts; None if that cannot be told without running it.

    `home_too`: also one below HOME, written with `~/`.
    """
    folder = ""
    for command in simple_commands(text):
        words = _without_prefix(list(command.words))
        if not words or words[0] in _BUILTINS:
            continue
        if words[0] == "cd":
            if len(words) != 2 or "$" in words[1]:
                return None
            folder = f"{folder}/{words[1]}" if folder and not words[1].startswith("/") else words[1]
            continue
        word = words[0].removeprefix("~/") if home_too else words[0]
        unknown = words[0] in _KEYWORDS or re.search(r"[$`*{}~]", word)
        return None if unknown else Program(folder, words[0], tuple(words[1:]))
    return None


def _without_prefix(words: list[str]) -> list[str]:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES):
        # An option of a prefix may take a value; guessing wrong would name a program that is none.
        if words[0] in _PREFIXES and len(words) > 1 and words[1].startswith("-"):
            return []
        words = words[1:]
    return words


def _trivial(command: SimpleCommand) -> bool:
    return command.words[0] in _TRIVIAL or command.words == ("exit", "0")
