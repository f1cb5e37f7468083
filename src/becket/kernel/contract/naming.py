"""What a file may name: variables, hosts, addresses, branches, places, globs. Each check says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, StringConstraints

from becket.kernel.contract.base import InvalidValue
from becket.kernel.contract.globs import closes

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[1-9][0-9]{{0,4}}))?")
_MODEL = re.compile(r"[^\s\-][^\s\x00-\x1f\x7f]*")
_REMOTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_URL_PATH = re.compile(r"/[\x21-\x7e]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SET = re.compile(r"\[!?\]?[^\]]*\]")
_LONGEST_BRANCH = 200  # a file system's longest name is 255, and git puts `.lock` behind it
_POSTGRES = frozenset({"postgresql", "postgres", "postgresql+psycopg"})


def is_variable(name: str) -> bool:
    return _VARIABLE.fullmatch(name) is not None


def is_model(name: str) -> bool:
    """Not what a program would take for an option."""
    return _MODEL.fullmatch(name) is not None


def is_host(text: str) -> bool:
    """`host` or `host:port`: one place, so neither a wildcard nor an address with scheme and path."""
    found = _HOST.fullmatch(text)
    return found is not None and int(found["port"] or 1) < 1 << 16


def endpoint_problem(text: str) -> str:
    """What is wrong with the address of a model, or nothing. Never shows it: a login may stand in it."""
    parts = _http_address(text)
    if parts is None:
        return "`endpoint` is no address"
    if parts.username is not None or parts.password is not None:
        return "`endpoint` holds a login, which does not belong into this file; name its variable with `key`"
    return ""


def _http_address(text: str) -> SplitResult | None:
    parts = _address(text)
    return parts if parts is not None and parts.scheme in ("http", "https") and parts.hostname else None


def _address(text: str) -> SplitResult | None:
    """An address without blanks, whose port is one."""
    try:
        parts = urlsplit(text)
        return None if parts.port == 0 or re.search(r"[\s\x00-\x1f\x7f]", text) else parts
    except ValueError:
        return None


def is_below(place: str) -> bool:
    """A relative path that leads nowhere else."""
    path = PurePosixPath(place)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def is_place(place: str) -> bool:
    """A path below a folder, as a file may name one: a shell's `~` means nothing here."""
    return is_below(place) and not place.startswith("~") and not _CONTROL.search(place)


def ref_problem(ref: str) -> str | None:
    """What git's check-ref-format would say against a full ref name, or None."""
    if not ref.startswith("refs/"):
        return f"{ref!r} is not a full ref name; write it like refs/heads/main"
    if _NO_REF.search(ref):
        return f"{ref!r} holds a blank, a control character, or one of .. // @{{ ~ ^ : ? * [ \\"
    if ref.endswith((".", "/")):
        return f"{ref!r} ends with a dot or a slash"
    if any(part.startswith(".") or part.endswith(".lock") for part in ref.split("/")):
        return f"{ref!r} has a part that begins with a dot or ends with .lock"
    return None


def is_branch(name: str) -> bool:
    """As `git check-ref-format --branch` has it, and short enough for a file."""
    possible = bool(name) and not name.startswith("-") and name != "HEAD" and len(name.encode()) <= _LONGEST_BRANCH
    return possible and not name.startswith("refs/heads/") and ref_problem(f"refs/heads/{name}") is None


def alone(sha: str) -> str:
    """What stands for the branch of a commit that no branch is named for."""
    return sha[:12]


def glob_problem(pattern: str) -> str:
    """What is wrong with a glob over the repository's paths, or nothing."""
    if not pattern.strip("/") or _CONTROL.search(pattern):
        return "is empty or holds a control character"
    if pattern.startswith("!"):
        return "begins with `!`, and nothing can be taken out again"
    if ".." in PurePosixPath(pattern).parts:
        return "leads out of the repository"
    plain = _SET.sub(_checked_set, pattern)
    if "[" in plain:
        return "has a `[` without its `]`, or an empty or backward set"
    return "" if closes(plain) else "has a `{` or `}` without its other half"


def _checked_set(found: re.Match[str]) -> str:
    """Nothing in the place of a good set; a broken one stays."""
    inner = found[0][1:-1].removeprefix("!")
    backward = any(first > last for first, last in re.findall(r"(?s)(.)-(.)", inner))
    return found[0] if not inner or backward else ""


def _text(fits: Callable[[str], bool], problem: str, fix: str) -> AfterValidator:
    def check(text: str) -> str:
        if not fits(text):
            raise InvalidValue(problem, fix)
        return text

    return AfterValidator(check)


def _check_glob(pattern: str) -> str:
    if problem := glob_problem(pattern):
        raise InvalidValue(problem, "write a glob like tests/** or **/*_test.py")
    return pattern


VariableName = Annotated[
    str, _text(is_variable, "is no name of a variable", "write letters, digits and `_`, beginning with no digit")
]
BranchName = Annotated[
    str, _text(is_branch, "can be no branch of git", "write its short name, like main or release/next")
]
BranchOrNone = Annotated[
    str, _text(lambda name: not name or is_branch(name), "can be no branch of git", "write its short name, like main")
]
RemoteName = Annotated[
    str,
    _text(
        lambda name: _REMOTE.fullmatch(name) is not None and ref_problem(f"refs/remotes/{name}") is None,
        "can be no remote of git",
        "write its name, like origin; `git remote -v` lists them",
    ),
]
Line = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500, strip_whitespace=True),
    _text(lambda text: not _CONTROL.search(text), "holds a control character", "write one plain line"),
]
PlaceBelow = Annotated[
    str, _text(is_place, "is not a path below the repository", "write a relative path without `..`, like build/out.xml")
]
Glob = Annotated[str, AfterValidator(_check_glob)]
HttpUrl = Annotated[
    str,
    _text(
        lambda url: _http_address(url) is not None, "is no http address", "write it like https://hooks.example.org/a"
    ),
]
UrlPath = Annotated[
    str, _text(lambda path: _URL_PATH.fullmatch(path) is not None, "is no path of a service", "write it like /health")
]
DatabaseUrl = Annotated[
    str,
    _text(
        lambda url: (parts := _address(url)) is not None and parts.scheme in _POSTGRES,
        "is no URL of Postgres",
        "write it like postgresql://user@host/name, or leave `database` away for SQLite",
    ),
]


def _reads_below(report: str) -> str:
    kind, named, place = report.partition(":")
    if named and not (is_place(place) and not glob_problem(place)):
        raise InvalidValue("names no file below the repository", f"write it like {kind}:build/report.xml")
    return report


ReportFormat = Annotated[
    str, StringConstraints(pattern=r"^(plain|(junit|pytest|go|cargo|tap)(:.+)?)$"), AfterValidator(_reads_below)
]  # junit:FILE, or the format of the step's own output
