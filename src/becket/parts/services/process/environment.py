"""The environment of a service: its own file, and never the watchdog's secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.errors import UsageError
from becket.parts.services.section import ServiceConfig

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")
_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


def read_env_file(path: Path) -> dict[str, str]:
    """NAME=VALUE lines; quotes around a value are taken off, nothing is expanded."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"`env_file` {path} is not there: make it, or take it out of becket.yaml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`env_file` {path} cannot be read: {error}") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("export ").strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name or not set(name) <= _BARE or name[0].isdigit():
            raise UsageError(f"{path}:{number}: not NAME=VALUE")
        found[name] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def service_environment(config: ServiceConfig, root: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """What a service sees: its env_file, its port and the usual few. Never the watchdog's own secrets (L25)."""
    env = {name: value for name, value in ours.items() if name in _KEPT or name.startswith("LC_")}
    env.setdefault("PATH", os.defpath)
    if config.env_file:
        env |= read_env_file(root / config.env_file)
    if config.port is not None:
        env["PORT"] = str(config.port)
    return env
