"""The agents' programs, fake and real, and how a user configures each for a model at a local address."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from becket.testing.model import ScriptedModel
from becket_lab.clis import install

KEY = "SUITE_MODEL_KEY"


def settings(program: str, model: ScriptedModel) -> dict[str, Any]:
    """What stands in becket.yaml."""
    if program == "codex":
        return {"driver": "codex", "model": "scripted", "endpoint": f"{model.url}/v1", "key": KEY}
    if program == "claude":
        return {"driver": "claude", "model": "claude-sonnet-4-6", "endpoint": model.url, "key": KEY}
    return {
        "driver": "acp",
        "run": "gemini --acp --skip-trust -m gemini-2.5-pro",
        "model": "gemini-2.5-pro",
        "env": ["GEMINI_API_KEY"],
        "set": {"GOOGLE_GEMINI_BASE_URL": model.url},
        "hosts": [f"127.0.0.1:{model.port}"],
    }


def live_as_a_daemon(patch: pytest.MonkeyPatch, home: Path, programs: Path) -> None:
    """The environment in which Becket runs: the programs on PATH, a HOME, and the model's key."""
    home.mkdir(parents=True, exist_ok=True)
    patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    patch.setenv("HOME", str(home))
    patch.setenv(KEY, "key-of-the-model")
    patch.setenv("GEMINI_API_KEY", "key-of-the-model")


def fakes(folder: Path) -> Path:
    """A folder with the three fakes."""
    install(folder)
    return folder


def real(program: str) -> Path:
    """The folder with the real programs; the test fails if it was not told of one."""
    named = os.environ.get("BECKET_AGENTS", "")
    if not named or not Path(named, program).exists():
        pytest.fail(f"no {program} in BECKET_AGENTS={named!r}: run `make test-agents`, which installs the programs")
    return Path(named)
