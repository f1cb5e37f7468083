"""Which versions of the programs the drivers were tested with. Others may work; a person is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

TESTED = {
    "codex": "0.166",
    "claude": "2.1",
    "gemini": "0.61",
}
"""Program -> the release line that our suite ran against."""

INSTALL = {
    "codex": "npm install -g @openai/codex@0.166.0",
    "claude": "npm install -g @anthropic-ai/claude-code@2.1.325",
    "gemini": "npm install -g @google/gemini-cli@0.61.0",
}

_VERSION = re.compile(r"(?<![\w.])v?(\d{1,6}\.\d{1,6}(?:\.\d{1,6})?(?:[-+][0-9A-Za-z.-]{1,40})?)(?![\w])")


def parse(text: str) -> str:
    """The version in what `--version` printed: `codex-cli 0.166.0`, `2.1.325 (Claude Code)`; empty if there is none."""
    found = _VERSION.search(text)
    return found[1] if found else ""


def of_package(program: Path) -> str:
    """The version by the package that the program lies in, without running it; empty if none tells."""
    real = program.resolve()
    for folder in list(real.parents)[:3]:
        try:
            described = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        version = described.get("version") if isinstance(described, dict) else None
        return parse(version) if isinstance(version, str) else ""
    return parse(real.name)


def warning(program: str, version: str) -> str:
    """What to tell a person about this version; empty if it is tested, or if nobody knows program or version."""
    tested = TESTED.get(program)
    if not tested or not version or version == tested or version.startswith(f"{tested}."):
        return ""
    return f"{program} {version} is not tested with Becket; {tested}.x is: {INSTALL[program]}"
