"""The secrets that becket.yaml leads to: those that gates, services and alarms are given."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from becket.app.parts import ask, installed
from becket.kernel.contract.config import Config
from becket.kernel.engine.redact import secret_variables

_PLAIN_NAME = re.compile(
    r"(?i)^(?:LANG|LC_\w+|TERM|COLORTERM|TZ|USER|LOGNAME|SHELL|EDITOR|PAGER|PWD)$"
    r"|(?:^|_)(?:URL|HOST|ENDPOINT|PROXY|PATH|DIR|HOME|FILE|ROOT|MODEL|MODULE|REGION|MODE|LEVEL|FORMAT)$"
)
_PART = r"(?:[A-Z]?[a-z]+[0-9]{0,4}|[A-Z]+|[0-9]{1,4})"
_STEP = rf"/\.?{_PART}(?:[._+-]{_PART})*"
_PLAIN_VALUE = re.compile(
    r"[a-z][a-z0-9+.-]*://\S*"  # an address
    r"|v?[0-9]{1,8}(?:[.:][0-9]{1,5})*"  # a port, a version, an address in digits
    rf"|(?:~|\.{{1,2}})?(?:{_STEP})+/?(?::(?:~|\.{{1,2}})?(?:{_STEP})+/?)*"  # places, of words
)
_LOGIN_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://([^/@:\s]+)@")


def secrets_of(config: Config, root: Path) -> dict[str, str]:
    """Those that this becket.yaml leads to, and those that the parts know of."""
    given = given_secrets(config, root, os.environ)
    for part in installed():
        given |= ask(part, part.secrets, config, os.environ, Path.home()) if part.secrets else {}
    return given


def given_secrets(config: Config, root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """`root` is the repository, whose folders hold the files of variables."""
    given = dict(secrets_in(_variables({root / file for _, file in config.env_files()})))
    given |= _of_commands(config, environ)
    own = _words_of(root)
    given = {name: value for name, value in given.items() if value not in own}
    given |= {f"alarms.{number}.secret": each.secret for number, each in enumerate(config.alarms) if each.secret}
    return given


def _of_commands(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for user, one in config.given():
        for name, value in secrets_in(one.variables(environ)):
            yield f"{user}.{name}", value


def secrets_in(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from secret_variables(given).items()
    for name, value in given.items():
        if _may_be_secret(name, value):
            yield name, value
        elif login := _LOGIN_IN_URL.match(value):  # a token may stand where the user's name does
            yield name, login[1]


def _variables(files: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue  # whoever needs it says so
        pairs = (line.strip().removeprefix("export ").partition("=") for line in lines if not line.startswith("#"))
        found |= {name.strip(): value.strip().strip("\"'") for name, _, value in pairs if value.strip()}
    return found


def _may_be_secret(name: str, value: str) -> bool:
    """Whatever is given and does not say that it is something else: an address, a place, the name of a model."""
    return not _PLAIN_NAME.search(name) and not _PLAIN_VALUE.fullmatch(value)


def _words_of(root: Path) -> frozenset[str]:
    """What the project calls itself and its parts says nothing, and stands in every path."""
    own = {each.stem for folder in (root, root / "src") if folder.is_dir() for each in folder.iterdir()}
    return frozenset(each for each in {root.name, *own} if each.isalpha() and each.islower())
