"""What besides the tree can change a step's result, as one digest; and the key under which a green is remembered."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.globs import matches
from becket.kernel.contract.process import Holds
from becket.kernel.contract.variables import keyed
from becket.parts.gates.judging.tree import ProofTree
from becket.parts.gates.machine import seen_beside
from becket.parts.gates.section import GateStep

PATH = "PATH"
_ALWAYS = {"CI": "true"}


def step_env(step: GateStep, proof: ProofTree) -> dict[str, str]:
    """The variables a step sees beyond the sandbox's own few: nothing says that Becket is looking (L12, L21)."""
    return _ALWAYS | step.variables(os.environ)


def environment_digest(step: GateStep, proof: ProofTree, holds: Holds, env_file: Path | None) -> str:
    told: dict[str, Json] = {
        "run": step.run,
        "network": step.network,
        "env": _ALWAYS,
        "variables": keyed(step.variables(os.environ)),
        "env_file": _keyed(env_file),
        "setup": proof.setup_key,
        "tools": _tools(step.run),
        "toolchains": seen_beside(holds),
        "system": [platform.system(), platform.release(), platform.machine()],
        "sandbox": holds.kind,
        "report": step.report,
        "min_tests": step.min_tests,
    }
    return digest_of(told)


def cache_key(step: GateStep, gate: str, proof: ProofTree, environment: str, listing: Mapping[str, str]) -> str:
    """By commit: a step may read the history. One that declares its `inputs` is keyed by exactly those files.

    Inputs that name no file are a slip of the pen: then one green must not stand for every later commit (L11).
    """
    inputs: Json = {path: entry for path, entry in listing.items() if matches(path, step.inputs)} if step.inputs else {}
    about: Json = inputs or proof.workspace.sha
    return digest_of({"gate": gate, "step": step.name, "about": about, "environment": environment})


def _tools(command: str) -> list[Json]:
    """The programs that the command names, by what their files are: a new version is a new environment."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    found: list[Json] = []
    for word in dict.fromkeys(words):
        path = shutil.which(word) if word and not word.startswith("-") else None
        if path is not None:
            real = Path(path).resolve()
            stat = real.stat()
            found.append([word, str(real), stat.st_size, stat.st_mtime_ns])
    return found


def _keyed(env_file: Path | None) -> str:
    """A hash that tells whether the file changed and nothing of what is in it: keyed by this machine (L25)."""
    if env_file is None or not env_file.is_file():
        return ""
    key = f"becket env_file {platform.node()}".encode()
    return hashlib.blake2b(env_file.read_bytes(), key=key[:64]).hexdigest()
