"""Toolchains that people keep below HOME: what of them a contained program has to see, and which version is chosen."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
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
_VERSIONS = ("release", "VERSION")
"""Where such a toolchain says which one it is."""

_CERTIFICATES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO"
)  # fmt: skip
_SETTINGS = {
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "NPM_CONFIG_USERCONFIG": (".npmrc",),
    "GOENV": (".config/go/env",),
}
"""Where people name their registries. Shown if all it says is known to be no login."""

_SHARED_SETTINGS = (Path("/etc/pip.conf"), Path("/etc/npmrc"))
_CERTIFICATE, _KEY = re.compile(rb"-----BEGIN CERTIFICATE-----"), re.compile(rb"PRIVATE KEY-----")
_LOGIN = re.compile(rb"://[^/\s]*@|(?i:auth|passw|token|secret|credential)")
_HARMLESS_KEYS = """
    audit break-system-packages cafile cert default-timeout disable-pip-version-check engine-strict extra-index-url
    fetch-retries fetch-retry-maxtimeout fetch-retry-mintimeout fetch-timeout find-links fund http-proxy https-proxy
    ignore-scripts index index-url legacy-peer-deps loglevel maxsockets no-index no-proxy node-linker noproxy
    only-binary package-lock prefer-binary prefer-offline progress proxy registry require-virtualenv retries save-exact
    save-prefix strict-ssl timeout trusted-host update-notifier
    cgo-enabled go111module goflags goinsecure gonoproxy gonosumdb goprivate goproxy gosumdb gotoolchain govcs
"""
_HARMLESS = frozenset(_HARMLESS_KEYS.split())
"""Keys of pip, npm and go that never name a login or a key. What is not listed here may: it keeps its file out."""
_SECTION = re.compile(r"\[[\w -]*\]")
_SETTING = re.compile(r"(?:@[\w.-]+:)?([A-Za-z][\w.-]*)(?:\[\])?\s*(?:[=:].*)?")
_MORE_OF_THE_SAME = re.compile(r"\s+(?:(?:https?|file)://\S+|[./~]\S*|[\w-]+(?:\.[\w-]+)+(?::\d+)?)\s*")
_LARGEST = 4_000_000


@dataclass(frozen=True, slots=True)
class Toolchains:
    """What was found: the places to show, the variables by which programs find them, the versions chosen now."""

    names: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    deciding: tuple[Path, ...] = ()  # files that say which versions run

    @property
    def chosen(self) -> Json:
        return [_fingerprint(path) for path in self.deciding]


def find(environ: Mapping[str, str]) -> Toolchains:
    """Nothing without a HOME. Asked for every program that is started, and twice for its key."""
    if not environ.get("HOME", "").startswith("/"):
        return Toolchains()
    home = Path(environ["HOME"])
    real = os.path.realpath(home)
    names: list[str] = []
    places: list[Path] = []
    variables: dict[str, str] = {}
    deciding: list[Path] = []
    for manager in MANAGERS:
        folder = environ.get(manager.variable) or f"{home}/{manager.folder}"
        there = [Path(folder, name) for name in manager.shown if _may_be_shown(f"{folder}/{name}", real)]
        if there:
            names.append(manager.name)
            places += there
            variables[manager.variable] = str(Path(folder))
            deciding += [path for name in manager.chosen for path in _files(Path(folder, name))]
    for name, path in _named(environ, home, real):
        names.append(name)
        places.append(path)
        variables[name] = str(path)
        deciding += [path / end for end in _VERSIONS] if name in _HOMES else [path]
    shared = [path for path in _SHARED_SETTINGS if _holds(path, _is_harmless)]
    return Toolchains(tuple(names), (*places, *shared), variables, (*deciding, *shared))


def _named(environ: Mapping[str, str], home: Path, real: str) -> Iterator[tuple[str, Path]]:
    """By the variable that leads programs there; what may hold a secret is left out (L25)."""
    for name in _HOMES:
        path = environ.get(name, "")
        if _may_be_shown(f"{path}/bin", real) and _may_be_shown(path, real):
            yield name, Path(path)
    for name in _CERTIFICATES:
        path = environ.get(name, "")
        if _may_be_shown(path, real) and _holds(Path(path), _is_certificates):
            yield name, Path(path)
    for name, places in _SETTINGS.items():
        paths = [environ[name]] if name in environ else [f"{home}/{place}" for place in places]
        path = next((path for path in paths if os.access(path, os.F_OK)), "")
        if _may_be_shown(path, real) and _holds(Path(path), _is_harmless):
            yield name, Path(path)


def _holds(path: Path, wanted: Callable[[bytes], bool]) -> bool:
    """Never where it is no plain file, or a large one."""
    try:
        seen = path.stat()
        return S_ISREG(seen.st_mode) and seen.st_size <= _LARGEST and _read(path, seen.st_mtime_ns, wanted)
    except OSError:
        return False


@lru_cache(maxsize=64)  # asked for every program that is started
def _read(path: Path, _changed: int, wanted: Callable[[bytes], bool]) -> bool:
    return wanted(path.read_bytes())


def _is_certificates(text: bytes) -> bool:
    return _CERTIFICATE.search(text) is not None and _KEY.search(text) is None


def _is_harmless(text: bytes) -> bool:
    """By the keys that are allowed: nobody knows all that a login can be called."""
    if not text.strip() or _LOGIN.search(text) or _KEY.search(text):
        return False
    return all(_says_nothing_secret(line) for line in text.decode("utf-8", "replace").splitlines())


def _says_nothing_secret(line: str) -> bool:
    said = line.strip()
    if not said or said.startswith(("#", ";")) or _SECTION.fullmatch(said) or _MORE_OF_THE_SAME.fullmatch(line):
        return True
    key = _SETTING.fullmatch(said)
    return key is not None and key[1].lower().replace("_", "-") in _HARMLESS


def _may_be_shown(path: str, home: str) -> bool:
    """Never what holds HOME as well; `home` is its real path."""
    if not (path.startswith("/") and os.access(path, os.R_OK)):
        return False
    real = os.path.realpath(path)
    return real not in ("/", home) and not home.startswith(f"{real}/")


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
