"""What a configuration may name: variables, hosts, addresses, places below a HOME. Each check says what to write."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[1-9][0-9]{{0,4}}))?")
_MODEL = re.compile(r"[^\s\-][^\s\x00-\x1f\x7f]*")


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
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return "`endpoint` is no address"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or text != text.strip():
        return "`endpoint` is no address"
    if parts.username is not None or parts.password is not None:
        return "`endpoint` holds a login, which does not belong into this file; name its variable with `key`"
    return ""


def is_below(place: str) -> bool:
    """A relative path that leads nowhere else."""
    path = PurePosixPath(place)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts
