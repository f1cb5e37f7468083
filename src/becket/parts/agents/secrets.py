"""The secrets that agents are given: by value, whatever their shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from becket.app.secrets import secrets_in
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import AgentConfig, Config

_LARGEST = 64_000
_NAMES_A_SECRET = re.compile(r"(?i)token|key|secret|password|credential|cookie")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([\w.-]+)\s*[=:]\s*[\"']?([^\s\"']+)")


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
    yield from secrets_in({name: environ[name] for name in agent.env if name in environ} | agent.set)
    for credential in agent.credentials:
        file = home / credential.file.removeprefix("~/")
        for where, value in _held_by(file):
            yield f"{file.name}.{where}", value


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
