"""Toolchains that people keep below HOME: what of them a contained program has to see, and which version is chosen."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from becket.kernel.contract.base import Json


@dataclass(frozen=True, slots=True)
class Manager:
    """One that keeps toolchains in a folder: the one that `variable` names, or `folder` below HOME.

    Only `shown` of it is made visible, since logins may lie beside; `chosen` are the files that say which version runs.
    """

    name: str
    variable: str
    folder: str
    shown: tuple[str, ...] = (".",)
    chosen: tuple[str, ...] = ()


_SHIMS = ("bin", "lib", "libexec", "plugins", "shims", "version", "versions")

MANAGERS = (
    Manager("rustup", "RUSTUP_HOME", ".rustup", ("toolchains", "settings.toml", "update-hashes"),
            ("settings.toml", "update-hashes")),
    Manager("pyenv", "PYENV_ROOT", ".pyenv", (*_SHIMS, "pyenv.d"), ("version",)),
    Manager("rbenv", "RBENV_ROOT", ".rbenv", _SHIMS, ("version",)),
    Manager("nvm", "NVM_DIR", ".nvm", ("nvm.sh", "alias", "versions"), ("alias",)),
    Manager("asdf", "ASDF_DATA_DIR", ".asdf", ("asdf.sh", "bin", "lib", "installs", "plugins", "shims")),
    Manager("mise", "MISE_DATA_DIR", ".local/share/mise", ("installs", "plugins", "shims")),
    Manager("SDKMAN", "SDKMAN_DIR", ".sdkman", ("candidates",)),
    Manager("uv", "UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    Manager("uv tools", "UV_TOOL_DIR", ".local/share/uv/tools"),
    Manager("pipx", "PIPX_HOME", ".local/share/pipx", ("venvs",)),
    Manager("poetry", "POETRY_HOME", ".local/share/pypoetry", ("venv",)),
)  # fmt: skip

_HOMES = ("JAVA_HOME", "GOROOT")
"""Variables that name a toolchain by itself."""

_CERTIFICATES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO"
)  # fmt: skip
_SETTINGS = {
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "NPM_CONFIG_USERCONFIG": (".npmrc",),
    "GOENV": (".config/go/env",),
}
"""Where people name their registries. Shown unless there is a login in it."""

_SHARED_SETTINGS = (Path("/etc/pip.conf"), Path("/etc/npmrc"))
_CERTIFICATE, _KEY = re.compile(rb"-----BEGIN CERTIFICATE-----"), re.compile(rb"PRIVATE KEY-----")
_ANYTHING = re.compile(rb"\S")
_LOGIN = re.compile(rb"://[^/\s]*@|(?i:auth|passw|token|secret|credential)")
_LARGEST = 4_000_000


@dataclass(frozen=True, slots=True)
class Toolchains:
    """What was found: the places to show, the variables by which programs find them, the versions chosen now."""

    names: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    chosen: Json = None


def find(environ: Mapping[str, str]) -> Toolchains:
    """Nothing without a HOME."""
    if not environ.get("HOME", "").startswith("/"):
        return Toolchains()
    home = Path(environ["HOME"])
    names: list[str] = []
    places: list[Path] = []
    variables: dict[str, str] = {}
    chosen: list[Json] = []
    for manager in MANAGERS:
        folder = Path(environ.get(manager.variable) or home / manager.folder)
        there = [folder / name for name in manager.shown if _may_be_shown(folder / name, home)]
        if there:
            names.append(manager.name)
            places += there
            variables[manager.variable] = str(folder)
            chosen += [_fingerprint(path) for name in manager.chosen for path in _files(folder / name)]
    for name, path in _named(environ, home):
        names.append(name)
        places.append(path)
        variables[name] = str(path)
    places += [path for path in _SHARED_SETTINGS if _holds(path, _ANYTHING, _LOGIN)]
    return Toolchains(tuple(names), tuple(places), variables, chosen)


def _named(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path]]:
    """By the variable that leads programs there; what may hold a secret is left out (L25)."""
    for name in _HOMES:
        path = Path(environ.get(name, ""))
        if _may_be_shown(path / "bin", home) and _may_be_shown(path, home):
            yield name, path
    for name in _CERTIFICATES:
        path = Path(environ.get(name, ""))
        if _may_be_shown(path, home) and _holds(path, _CERTIFICATE, _KEY):
            yield name, path
    for name, places in _SETTINGS.items():
        paths = [Path(environ[name])] if name in environ else [home / place for place in places]
        path = next((path for path in paths if os.access(path, os.F_OK)), home)
        if _may_be_shown(path, home) and _holds(path, _ANYTHING, _LOGIN):
            yield name, path


def _holds(path: Path, wanted: re.Pattern[bytes], unwanted: re.Pattern[bytes]) -> bool:
    """The one and not the other; never where it is no plain file, or a large one."""
    try:
        seen = path.stat()
        return S_ISREG(seen.st_mode) and seen.st_size <= _LARGEST and _read(path, seen.st_mtime_ns, wanted, unwanted)
    except OSError:
        return False


@lru_cache(maxsize=64)  # asked for every program that is started
def _read(path: Path, _changed: int, wanted: re.Pattern[bytes], unwanted: re.Pattern[bytes]) -> bool:
    text = path.read_bytes()
    return wanted.search(text) is not None and unwanted.search(text) is None


def _may_be_shown(path: Path, home: Path) -> bool:
    return path.is_absolute() and os.access(path, os.R_OK) and not home.resolve().is_relative_to(path.resolve())


def _fingerprint(path: Path) -> Json:
    try:
        return [str(path), hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()]
    except OSError:
        return [str(path), None]


def _files(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError:  # a folder of somebody else
        return [path]
