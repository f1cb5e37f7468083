"""The secrets that becket.yaml leads to: those that gates, services, alarms and agents are given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from becket.kernel.contract.base import Json
from becket.kernel.contract.config import AgentConfig, Config
from becket.kernel.engine.redact import secret_variables

_LARGEST = 64_000
_NAMES_A_SECRET = re.compile(r"(?i)token|key|secret|password|credential|cookie")
_PLAIN_NAME = re.compile(
    r"(?i)^(?:LANG|LC_\w+|TERM|COLORTERM|TZ|USER|LOGNAME|SHELL|EDITOR|PAGER|PWD)$"
    r"|(?:^|_)(?:URL|HOST|ENDPOINT|PROXY|PATH|DIR|HOME|FILE|ROOT|MODEL|NAME|VERSION|REGION|MODE|LEVEL|FORMAT|OPTIONS"
    r"|OPTS|ARGS|FLAGS)$"
)
_PLAIN_VALUE = re.compile(r"\s|^[a-z][a-z0-9+.-]*://|^[~./]|^[0-9.:]+$")
_LOGIN_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://([^/@:\s]+)@")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([\w.-]+)\s*[=:]\s*[\"']?([^\s\"']+)")


def given_secrets(config: Config, root: Path, environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """All of them. `root` is the repository, whose folders hold the files of variables."""
    given = secret_variables(_variables(root / name for name in _env_files(config)))
    given |= agent_secrets(config, environ, home)
    given |= dict(_of_commands(config, environ))
    given |= {f"alarms.{number}.secret": each.secret for number, each in enumerate(config.alarms) if each.secret}
    return given


def _of_commands(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for user, one in config.given():
        for name, value in _secrets_in(one.variables(environ)):
            yield f"{user}.{name}", value


def _secrets_in(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from secret_variables(given).items()
    for name, value in given.items():
        if _may_be_secret(name, value):
            yield name, value
        elif login := _LOGIN_IN_URL.match(value):  # a token may stand where the user's name does
            yield name, login[1]


def _env_files(config: Config) -> set[str]:
    of_steps = {step.env_file for gate in config.gates.values() for step in gate}
    return {name for name in of_steps | {service.env_file for service in config.services.values()} if name}


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


def agent_secrets(config: Config, environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """By value, whatever their shape: an agent can print what it is given, and what it prints is kept (L25)."""
    return {
        f"agents.{name}.{where}": value
        for name, agent in config.agents.items()
        for where, value in _of_agent(agent, environ, home)
    }


def _of_agent(agent: AgentConfig, environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    if agent.key and (value := environ.get(agent.key)):
        yield agent.key, value
    yield from _secrets_in({name: environ[name] for name in agent.env if name in environ} | agent.set)
    for credential in agent.credentials:
        file = home / credential.file.removeprefix("~/")
        for where, value in _held_by(file):
            yield f"{file.name}.{where}", value


def _may_be_secret(name: str, value: str) -> bool:
    """Whatever is given and does not say that it is something else: an address, a place, the name of a model."""
    return not _PLAIN_NAME.search(name) and not _PLAIN_VALUE.search(value)


def _held_by(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_LARGEST)
    except OSError:
        return  # whoever needs it says so
    try:
        yield from _leaves(json.loads(text), "")
    except (ValueError, RecursionError):
        yield from _lines(text)


def _leaves(value: Json, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{where}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{where}.{number}".lstrip("."))
    elif isinstance(value, str) and (not where or _NAMES_A_SECRET.search(_field(where))):
        yield where, value


def _field(where: str) -> str:
    """The last name on the way; an entry of a list has the list's."""
    return next((name for name in reversed(where.split(".")) if not name.isdecimal()), "")


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """A file of assignments, or the bare secret itself."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and not _ASSIGNMENT.match(lines[0]):
        yield "", lines[0].strip()
    for line in lines:
        if (found := _ASSIGNMENT.match(line)) and _NAMES_A_SECRET.search(found[1]):
            yield found[1], found[2]
