"""What becket.yaml gives to contained programs besides their tree: variables, and places of this machine to read."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from becket.kernel.contract.base import KeyProblem, Record
from becket.kernel.contract.naming import PlaceBelow, is_variable

_OURS = frozenset({"BASH_ENV", "ENV", "HOME", "IFS", "PATH", "SHELLOPTS", "TMPDIR"})
_OURS_PREFIX = ("BECKET_", "DYLD_", "GIT_", "LD_")
_IDENTITY = ("GIT_AUTHOR_", "GIT_COMMITTER_")

_SYSTEM = ("/", "/dev", "/etc", "/proc", "/run", "/sys", "/var")
_NO_FILES = (("dev",), ("proc",), ("sys",))
"""What lies there is the machine itself: its processes with their variables, its devices."""

_LOGIN_NAMES = """
    .aws .azure .bash_history .boto .cargo/credentials .cargo/credentials.toml .claude .claude.json .codex
    .config/gcloud .config/gh .config/git .config/hub .config/op .config/pip .docker .git-credentials .gnupg
    .gradle/gradle.properties .kube .local/share/keyrings .m2/settings.xml .m2/settings-security.xml .netrc .npmrc
    .password-store .pgpass .pypirc .ssh .terraform.d .vault-token .yarnrc.yml
"""
LOGINS = tuple(_LOGIN_NAMES.split())
"""Where people's programs keep logins, below HOME."""


class Variables(Record):
    """`env` names variables of Becket's own environment that are passed on; `set` has variables with their values."""

    env: tuple[str, ...] = ()
    set: dict[str, str] = Field(default_factory=dict)

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {name: environ[name] for name in self.env if name in environ} | self.set

    @model_validator(mode="after")
    def _names_variables(self) -> Self:
        """Nothing that was written here is repeated unless it is a name: it may be the secret itself (L25)."""
        for number, name in enumerate(self.env):
            if not is_variable(name):
                fix = "write them like PIP_INDEX_URL, without `$` and values"
                raise KeyProblem("`env` lists names of variables", "env", number, fix=fix)
            if is_reserved(name):
                raise KeyProblem(f"{name} decides what is run, and is not passed on", "env", number, fix="remove it")
            if name.endswith("PATH"):
                fix = "write what is needed under `set`, with places of the tree"
                raise KeyProblem(f"{name} lists places of this machine, which are not there", "env", number, fix=fix)
        for name, value in self.set.items():
            if not is_variable(name) or "\0" in value:
                fix = "write it like {LOG_LEVEL: debug}"
                raise KeyProblem("`set` has names of variables and their values", "set", fix=fix)
            if is_reserved(name):
                fix = "remove it; the command itself can say `PATH=... program`"
                raise KeyProblem(f"{name} decides what is run, and is not set", "set", name, fix=fix)
        return self


class WithEnvFile(Record):
    """`env_file` names a file of variables below the repository."""

    env_file: PlaceBelow | None = None


def is_reserved(name: str) -> bool:
    return name in _OURS or (name.startswith(_OURS_PREFIX) and not name.startswith(_IDENTITY))


def keyed(variables: Mapping[str, str]) -> str:
    """Tells whether one of them changed and nothing of what they hold: keyed by this machine (L25)."""
    key = f"becket variables {platform.node()}".encode()
    told = json.dumps(sorted(variables.items())).encode(errors="surrogatepass")
    return hashlib.blake2b(told, key=key[:64]).hexdigest() if variables else ""


def place_problem(written: str, home: Path) -> str:
    """Why contained programs are not let read a place, links followed; empty if they may."""
    if not written.startswith(("/", "~/")) or "\0" in written:
        return "is neither absolute nor begins with `~/`"
    path = expanded(written, home)
    return next((problem for place in (path, path.resolve()) if (problem := _problem(place, home))), "")


def place_to_show(hidden: Path, home: Path) -> Path:
    """What to name in `sandbox.readable` so that contained programs see a file: its toolchain's folder, if they may."""
    whole = hidden.parent.parent if hidden.parent.name == "bin" else hidden.parent
    return hidden if place_problem(str(whole), home) else whole


def expanded(written: str, home: Path) -> Path:
    return home / written[2:] if written.startswith("~/") else Path(written)


def _problem(path: Path, home: Path) -> str:
    if ".." in path.parts:
        return "leads out of a folder by `..`"
    if str(path) in _SYSTEM or path.parts[1:2] in _NO_FILES:
        return "would show far more of this machine than a toolchain"
    if ".git" in path.parts:
        return "lies in a git directory"
    for root in (home, home.resolve()):
        if root.is_relative_to(path):
            return "would show the whole of HOME"
        for name in LOGINS:
            if path.is_relative_to(root / name) or (root / name).is_relative_to(path):
                return f"would show ~/{name}, where a login may be"
    return ""
