"""Toolchains that people keep below HOME: what of them a contained program has to see, and which version is chosen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from becket.contract.base import Json


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
            chosen += [[str(path), _content(path)] for name in manager.chosen for path in _files(folder / name)]
    for name, path in _named(environ, home):
        names.append(name)
        places.append(path)
        variables[name] = str(path)
    return Toolchains(tuple(names), tuple(places), variables, chosen)


def is_certificates(file: Path) -> bool:
    """Certificates are public; a bundle with a private key in it is not."""
    try:
        with file.open("rb") as stream:
            text = stream.read(_LARGEST + 1)
    except OSError:
        return False
    return len(text) <= _LARGEST and b"-----BEGIN CERTIFICATE-----" in text and b"PRIVATE KEY-----" not in text


def _named(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path]]:
    for name in (*_HOMES, *_CERTIFICATES):
        path = Path(environ.get(name, ""))
        fits = (path / "bin").is_dir() if name in _HOMES else is_certificates(path)
        if path.is_absolute() and fits and _may_be_shown(path, home):
            yield name, path


def _may_be_shown(path: Path, home: Path) -> bool:
    return path.is_absolute() and os.access(path, os.R_OK) and not home.resolve().is_relative_to(path.resolve())


def _files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""
