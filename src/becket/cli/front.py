"""The front desk: global options, the list of verbs, and what an error looks like. Imports only what a verb needs."""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from becket import __version__
from becket.app.own_tools import leave_path
from becket.cli import words
from becket.cli.verbs import CORE_BY_NAME, all_verbs, find_verb
from becket.kernel.contract.errors import BecketError, InvalidDocument, PartFailed, UsageError
from becket.kernel.contract.part import SECTIONS, Verb

if TYPE_CHECKING:
    from typer import Typer

DEBUG = "BECKET_DEBUG"
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line, taken apart as far as the verb."""

    verb: str | None
    rest: tuple[str, ...]
    folder: str | None = None
    debug: bool = False
    help: bool = False
    version: bool = False


def run(arguments: Sequence[str]) -> int:
    """Do what the command line says; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a mark must not end a run
    debug = bool(os.environ.get(DEBUG)) or "--debug" in arguments
    try:
        code = _answer(read(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BecketError as error:
        if debug:
            _traceback()
        _complain(error, as_json="--json" in arguments)
        return error.exit_code
    except KeyboardInterrupt:
        print(words.INTERRUPTED, file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if debug:
            _traceback()
        print(words.machine(error) if _is_of_the_machine(error) else words.bug(error), file=sys.stderr)
        return 1


def _is_of_the_machine(error: Exception) -> bool:
    """A file that cannot be written or read for a reason that no code of ours can mend."""
    return isinstance(error, OSError) and error.filename is not None and error.errno in words.MACHINE


def read(arguments: Sequence[str]) -> CommandLine:
    """Global options come before the verb, as with git."""
    folders: list[str] = []
    debug = False
    left = list(arguments)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option == "-C":
            if not left:
                raise UsageError(words.NO_FOLDER_GIVEN)
            folders.append(left.pop(0))
        elif option == "--debug":
            debug = True
        elif option in ("-h", "--help"):
            return CommandLine(None, tuple(left), help=True)
        elif option in ("-V", "--version"):
            return CommandLine(None, tuple(left), version=True)
        else:
            raise UsageError(words.unknown_option(option))
    folder = str(Path(*folders)) if folders else None
    if left and left[0] == "help":
        left = [*left[1:2], "--help"] if len(left) > 1 else []
        return CommandLine(left[0] if left else None, tuple(left[1:]), folder, debug, help=not left)
    return CommandLine(left[0] if left else None, tuple(left[1:]), folder, debug)


def _answer(call: CommandLine) -> int:
    if call.version:
        print(f"becket {__version__}")
        return 0
    if call.help:
        print(overview())
        return 0
    if call.verb is None:
        print(overview(), file=sys.stderr)
        return 2
    verb = find_verb(call.verb)
    if verb is None:
        known = [verb.name for verb in all_verbs()]
        raise UsageError(words.unknown_verb(call.verb, difflib.get_close_matches(call.verb, known, 1)))
    if call.folder is not None:
        _go_to(call.folder)
    leave_path(os.environ, _here())
    return _perform(verb, call.rest)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(words.FOLDER_GONE) from None


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise UsageError(words.cannot_go(folder, error.strerror or str(error))) from None


def _perform(verb: Verb, rest: Sequence[str]) -> int:
    if empty := _empty_option(rest):
        raise UsageError(words.empty_option(empty))
    if verb.quick and set(rest) <= {"--json"}:
        _find(verb.quick)(as_json=bool(rest))
        return 0
    try:
        program = typer_of(verb)
    except Exception as error:
        if _is_own(verb, error):
            raise
        raise UsageError(words.verb_failed(verb.name, verb.target, error)) from error
    try:
        program(args=list(rest), prog_name=f"becket {verb.name}")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except Exception as error:
        if _is_own(verb, error):
            raise
        raise PartFailed(words.verb_failed(verb.name, verb.target, error)) from error
    return 0


def _is_own(verb: Verb, error: Exception) -> bool:
    """Whether it is told as it stands; what a stranger's verb fails with is told as that part's own fault."""
    of_becket = verb.name in CORE_BY_NAME or verb.target.startswith("becket.")
    return of_becket or isinstance(error, BecketError | BrokenPipeError) or _is_of_the_machine(error)


def _empty_option(rest: Sequence[str]) -> str | None:
    """The first option that is given without a value, as by a variable that is not set; only a remark may be empty."""
    given = [(rest[at - 1], word) for at, word in enumerate(rest) if at and rest[at - 1].startswith("-")]
    given += [(word[:-1], "") for word in rest if word.startswith("--") and word.find("=") == len(word) - 1]
    return next((option for option, value in given if not value and option not in words.REMARKS), None)


def typer_of(verb: Verb) -> Typer:
    """The verb's own small program: a group as it stands, a single command wrapped."""
    import typer

    from becket.cli.shape import PLAIN

    target = _find(verb.target)
    if isinstance(target, typer.Typer):
        return target
    alone = typer.Typer(**PLAIN)
    alone.command(verb.name)(target)
    return alone


def _find(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def overview() -> str:
    """`becket --help`."""
    verbs = [verb for verb in all_verbs() if verb.section]
    width = max(len(verb.name) for verb in verbs)
    parts = [words.USAGE]
    for section in dict.fromkeys((*SECTIONS, *(verb.section for verb in verbs))):
        listed = [f"  {verb.name:<{width}}  {verb.help}" for verb in verbs if verb.section == section]
        parts.append("\n".join([f"{section}:", *listed]))
    return "\n\n".join([*parts, words.GLOBAL_OPTIONS])


def _complain(error: BecketError, as_json: bool) -> None:
    findings = [
        {"file": found.file, "line": found.line, "column": found.column, "rule": found.rule,
         "message": found.message, "fix": found.fix}
        for found in (error.findings if isinstance(error, InvalidDocument) else ())
    ]  # fmt: skip
    if as_json:
        said = {"kind": type(error).__name__, "message": str(error), "findings": findings}
        print(json.dumps({"error": said}, indent=2, ensure_ascii=False))
        sys.stdout.flush()
    print(words.complaint(error), file=sys.stderr)


def _traceback() -> None:
    import traceback

    traceback.print_exc()
