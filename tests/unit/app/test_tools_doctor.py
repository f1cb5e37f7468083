"""What doctor learns by asking a program below HOME for its version, as a step would start it."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.app.sections import config_model
from becket.app.state import StateFolder
from becket.kernel.contract.config import SandboxConfig
from becket.parts.gates.tools_doctor import trouble

SHIM = """\
#!/bin/sh
test "$(cat .python-version)" = 3.11 && exit 0
echo "pyenv: version '3.9' is not installed"
exit 1
"""


def test_a_shim_that_leads_nowhere_is_told_by_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L13: the file is there, and whether it works depends on what the repository chooses."""
    shim = tmp_path / ".pyenv/shims/python9"
    shim.parent.mkdir(parents=True)
    shim.write_text(SHIM)
    shim.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{shim.parent}:/usr/bin:/bin")
    state = StateFolder(tmp_path / "repo", tmp_path / "repo/.git")
    state.common.mkdir(parents=True)
    choice = state.root / ".python-version"
    choice.write_text("3.9\n")
    config = config_model()(version=1, sandbox=SandboxConfig(use="none"))
    assert trouble(state, config, "python9") == "pyenv: version '3.9' is not installed"
    choice.write_text("3.11\n")
    assert trouble(state, config, "python9") == ""
    assert trouble(state, config, "sh") == ""
