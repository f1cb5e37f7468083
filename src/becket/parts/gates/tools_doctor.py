"""Asks programs below HOME for their version, as a step would start them: a shim may be there and lead nowhere."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from becket.app.state import StateFolder
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.process import ChildSpec, SandboxKind
from becket.kernel.process import choose
from becket.parts.gates.reports.environment import mentions_environment, not_found

PATIENCE = 20.0
_CHOICES = (".tool-versions", "mise.toml", ".mise.toml", ".python-version", ".ruby-version", "rust-toolchain",
            "rust-toolchain.toml")  # fmt: skip
"""The files of a repository that choose a version."""


def trouble(state: StateFolder | None, config: Config, word: str) -> str:
    """The line with which it says that the machine lacks something; empty if it works, or fails for another reason."""
    found = shutil.which(word)
    if state is None or found is None or not Path(found).is_relative_to(Path.home()):
        return ""
    with tempfile.TemporaryDirectory() as folder:
        tree, said = Path(folder, "tree"), Path(folder, "said")
        tree.mkdir()
        for name in _CHOICES:
            if (state.root / name).is_file():
                shutil.copyfile(state.root / name, tree / name)
        hidden = (state.common, Path.home())
        spec = ChildSpec(argv=(word, "--version"), tree=tree, output=said, timeout=PATIENCE, hidden=hidden)
        use = config.sandbox.use
        try:
            chosen = choose("auto" if use == "auto" else SandboxKind(use), lambda: config.sandbox.places(state.common))
            result = asyncio.run(chosen.run(spec))
        except BecketError:
            return ""  # the check of the sandbox says so
        reason = None if result.ok else mentions_environment(said.read_bytes()) or not_found(result.exit_code)
    return reason.line if reason is not None else ""
